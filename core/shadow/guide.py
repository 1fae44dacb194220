# SPDX-License-Identifier: Apache-2.0
"""A session beside another scheduler's decisions: of equally good nodes it takes the one that was taken there.

Volcano takes any of the best nodes by chance, Pumice the first by name: the choice among them is not a mistake, and
what is compared after it must begin from the same. Where a node was taken that would do here too, but scores less, the
difference is noted, and (`follows`) gone along with: so one difference is one, not all that come of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pumice.core.session.search.node_search import NodeSearch
from pumice.core.session.trail.trail import NullTrail

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import BoolArray
    from pumice.core.session.reasons import IntArray
    from pumice.core.session.session import Session
    from pumice.core.session.trail.records import Ending
    from pumice.core.state.jobs import Job


class OtherChoice(NamedTuple):
    """A node taken here where the other scheduler took another one. `scores`: of both, where both are known; `tie`:
    they are equal, and the other's node was taken. `against`: why the other node would not do here, "" where it would.
    """

    node: str
    wished: str
    scores: tuple[float, float] | None = None
    tie: bool = False
    against: str = ""

    def words(self) -> str:
        """Return why it was this one."""
        if self.against:
            return f"{self.wished} would not do: {self.against}"
        if self.scores is None:
            return f"{self.wished} was not among the candidates"
        return f"{self.node} scores {self.scores[0]:g}, {self.wished} {self.scores[1]:g}"


class GuidedSearch(NodeSearch):
    """A NodeSearch that asks the session's guide which of the best nodes to take."""

    _group: BoolArray | None = None  # the candidates of the last choice, where it was by `best_of`

    def choose(self) -> tuple[int, IntArray]:
        """Return the best node's row (-1 without one) and the reason numbers of the nodes that were looked at and
        refused.
        """
        self._group = None
        node, codes = super().choose()
        # Where super() chose by `best_of`, the guide has been asked already.
        return node if self._group is not None else self._instead(node, self.idle), codes

    def best_of(self, group: BoolArray) -> int:
        """Return the best of a group of candidates without kept scores; -1 when it is empty or has no scores; a single
        candidate is not scored.
        """
        self._group = group
        return self._instead(super().best_of(group), group)

    def _instead(self, node: int, group: BoolArray) -> int:
        guide = self.session.trail
        assert isinstance(guide, Guide)
        wished = guide.row(self.task)
        if node < 0 or wished < 0:
            return node
        if wished == node:
            # An earlier try of the task in this session may have noted a difference.
            guide.choices.pop(self.task.uid, None)
            return node
        choice = self._compared(node, wished, group)
        guide.choices[self.task.uid] = choice
        granted = choice.tie or (guide.follows and choice.scores is not None)
        return wished if granted else node

    def _compared(self, node: int, wished: int, group: BoolArray) -> OtherChoice:
        names = self.session.nodes.names
        if not group[wished]:
            reasons = self.session.reasons.reasons(int(self.codes[wished]))
            against = " and ".join(each.words for each in reasons)
            return OtherChoice(names[node], names[wished], against=against)
        candidates = group.nonzero()[0]
        totals = dict(zip(candidates.tolist(), self.scoring.totals(candidates).tolist(), strict=True))
        scores = totals[node], totals[wished]
        return OtherChoice(names[node], names[wished], scores, tie=scores[0] == scores[1])


class Guide(NullTrail):
    """Follows another scheduler's choices. `wishes`: by uid of a pod, the node that was taken there. `choices`: by uid,
    where another node would have been taken here; `endings`: where the last action with a reason ended, by
    "namespace/name" of a pod or its job.
    """

    search = GuidedSearch

    def __init__(self, wishes: Mapping[str, str], *, follows: bool = True) -> None:
        self.wishes, self.follows = wishes, follows
        self.choices: dict[str, OtherChoice] = {}
        self.endings: dict[str, str] = {}
        self._session: Session | None = None

    def begin(self, session: Session) -> None:
        """Note that the session opens."""
        self._session = session

    def end(self) -> None:
        """Note that the last action has ended."""
        self._session = None

    def row(self, task: Task) -> int:
        """Return the row of the node that the other scheduler chose for the task; -1 without one."""
        assert self._session is not None
        return self._session.nodes.row.get(self.wishes.get(task.uid, ""), -1)

    def job_ended(self, job: Job, ending: Ending, detail: str = "", domain: str = "") -> None:
        """Note that the action is done with the job for now, or with one HyperNode for it."""
        self._ended(job.key, ending, detail)

    def task_ended(self, task: Task, ending: Ending, detail: str = "", node: int = -1) -> None:
        """Note that the action is done with the task, or with one node for it."""
        if node < 0 and task.uid in self.wishes:
            self._ended(task.key, ending, detail)

    def _ended(self, who: str, ending: Ending, detail: str) -> None:
        assert self._session is not None
        self.endings[who] = f"{self._session.action}: {ending}" + (f" ({detail})" if detail else "")
