# SPDX-License-Identifier: Apache-2.0
"""The reasons for refused nodes, as data: interned codes in an int32 column, with texts only on demand.

Sources: Volcano `api/unschedule_info.go` (FitErrors) and kube-scheduler's status codes.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int32]


class Code(IntEnum):
    """The kind of a filter's refusal. Evictions may cure plain Unschedulable, but not Unresolvable."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5


@dataclass(frozen=True, slots=True)
class Reason:
    """One status: its filter's name, its code, and Kubernetes' or Volcano's text to the letter."""

    plugin: str
    code: Code
    text: str

    @property
    def words(self) -> str:
        """Return the text for people: some reasons have an empty one."""
        return self.text or f"{self.plugin} gives no reason"


class ReasonTable:
    """Interns tuples of reasons; 0 stands for "passes". Numbers are stable within one session.

    `names_empty`: whether messages count reasons without a text, which Volcano leaves out (StatusSets.Reasons).
    """

    def __init__(self, *, names_empty: bool = False) -> None:
        self.names_empty = names_empty
        self._tuples: list[tuple[Reason, ...]] = [()]
        self._index: dict[tuple[Reason, ...], int] = {(): 0}
        self._terminal: list[bool] = [False]

    def intern(self, *reasons: Reason) -> int:
        """Return the number of this list of reasons."""
        number = self._index.get(reasons)
        if number is None:
            number = self._index[reasons] = len(self._tuples)
            self._tuples.append(reasons)
            self._terminal.append(any(r.code != Code.UNSCHEDULABLE for r in reasons))
        return number

    def reasons(self, number: int) -> tuple[Reason, ...]:
        """Return the reasons behind a number."""
        return self._tuples[number]

    def is_terminal(self, number: int) -> bool:
        """Return whether filtering of a node stops here: every code does that, except plain Unschedulable."""
        return self._terminal[number]

    def are_terminal(self, numbers: IntArray) -> npt.NDArray[np.bool_]:
        """Return whether filtering stops there, for a column of numbers: what evicting pods cannot cure."""
        return np.array(self._terminal, dtype=np.bool_)[numbers]

    def join(self, first: int, second: int) -> int:
        """Return both lists, in order: a later filter adds to an earlier plain Unschedulable."""
        return self.intern(*self._tuples[first], *self._tuples[second])


@dataclass(slots=True)
class FitErrors:
    """The reasons why a task found no node. `codes`: int32 over the session's node rows (0: not refused or not looked
    at); `text` replaces the counts where no single node is the reason; `hyper_node` names the domain that was tried.
    """

    table: ReasonTable
    codes: IntArray | None = None
    text: str = ""
    hyper_node: str = ""
    _message: str = ""

    def histogram(self) -> dict[str, int]:
        """Return reason text -> number of nodes that gave it."""
        counts: dict[str, int] = {}
        # Counted by number first: texts are read once a reason, not once a node.
        for number, nodes in enumerate([] if self.codes is None else np.bincount(self.codes).tolist()):
            if number and nodes:
                for reason in self.table.reasons(number):
                    counts[reason.text] = counts.get(reason.text, 0) + nodes
        return counts

    def message(self) -> str:
        """Return Kubernetes' one-line summary:

        ``0/4 nodes are unavailable: 3 Insufficient cpu, 1 node(s) were unschedulable.``
        """
        if not self._message:
            self._message = self._format()
        return self._message

    def _format(self) -> str:
        refused = 0 if self.codes is None else int(np.count_nonzero(self.codes))
        head = self.text or f"0/{refused} nodes are unavailable"
        if not refused:
            return head
        lines = sorted([f"{n} {text}" for text, n in self.histogram().items() if text or self.table.names_empty])
        body = f"{head}: {', '.join(lines)}."
        return f"In hyperNode {self.hyper_node}: {body}" if self.hyper_node else body

    def unresolvable_rows(self) -> npt.NDArray[np.bool_]:
        """Return the mask over node rows of the nodes that no eviction can free."""
        assert self.codes is not None
        # Asked once for each reason number, then spread over the nodes by index.
        hopeless = [
            any(r.code == Code.UNRESOLVABLE for r in self.table.reasons(n)) for n in range(int(self.codes.max()) + 1)
        ]
        return np.array(hopeless, dtype=np.bool_)[self.codes]


class FitFailure(Exception):  # noqa: N818 - a verdict that travels as an exception through PreFilter, not an error of ours
    """A task that no node can take (PrePredicate): the same reason counts for every node."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.text)
        self.reason = reason
