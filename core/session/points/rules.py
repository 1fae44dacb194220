# SPDX-License-Identifier: Apache-2.0
"""The two forms in which a plugin states a rule about nodes: the column rule and the per-node function.

A **column rule** says what it reads, and gives a function over rows: reason numbers of a filter, scores of a scorer.
How it is asked follows from what it reads (`Volatility`, `follow`):

    reads                                          is asked                                           for example
    node specs and the task alone (STATIC)         once about all nodes; the answers are kept         taints, tdm
    what is on that very node (ROW)                again about the nodes that were touched            cards, room
    what is placed anywhere (GLOBAL)               again about all nodes at every placement           task-topology
    that, with a version to `follow`               again about all nodes at every new version         affinity, claims
    what may differ at each choice (MOMENT)        about the nodes that nothing else refuses          extender

An array [N] in place of the function is an answer that is there already. What is said of one row is the function asked
about a slice of one. A function with a cheaper way has it as `one`: an expression over columns reads numbers where it
reads arrays of many (columns.py). A scorer that depends on the candidates as a set says so by `finish`.

A **per-node function** says of one task and one node whether, or how well, they go together: what is written first in a
plugin of one's own, and what cannot be said in columns. `ByNode` asks it row by row, so that it is a function over rows
like any other. A point lifts a plain `(task, node)` function by itself (per_node.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from pumice.core.cached import cached
from pumice.core.session.points.columns import Expression
from pumice.core.session.points.nodes import Volatility
from pumice.core.state.dimensions import cells_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.session.points.nodes import FloatArray, RowArray, Rows

A = TypeVar("A", bound="np.int32 | np.float64")
ALL = slice(None)


class ColumnRule(Generic[A]):
    """A filter (int32: reason numbers of `Session.reasons`, 0 where the node passes) or a scorer (float64: weighted
    scores, raw ones with a `finish`), prepared for one task.

    `answer`: (rows) -> [len(rows)], a new array; or the answers [N] themselves, which are good for the whole session.
    `follow`: called before anything is answered; brings what the rule reads up to date and returns its version. The
    answers of a GLOBAL rule are kept while the version stays. `finish`: NormalizeScore over the candidates' raw scores,
    times the weight. `constant`: the finished score where it is the same for every node, whatever the candidates are.
    `pre_filter`: the part of PreFilter that placements change: asked before each further task that shares the rule,
    raises FitFailure when no node can do now. `lasts`: False where a later session on the same columns must prepare the
    rule again.

    `is_static`, `is_followed`: whether the answers about all nodes are kept for good, while a version stays;
    `is_normalised`: whether the finished score depends on the candidates as a set.
    """

    def __init__(
        self,
        answer: Callable[[Rows], npt.NDArray[A]] | npt.NDArray[A],
        volatility: Volatility = Volatility.ROW,
        *,
        follow: Callable[[], int] | None = None,
        finish: Callable[[FloatArray], FloatArray] | None = None,
        constant: float | None = None,
        pre_filter: Callable[[], None] | None = None,
        lasts: bool = True,
    ) -> None:
        given: Any = answer
        is_there = isinstance(given, np.ndarray)
        self.answer: Callable[[Rows], npt.NDArray[A]] = given.__getitem__ if is_there else given
        # Ready answers are never asked again, whatever volatility was given with them.
        self.volatility = Volatility.STATIC if is_there else volatility
        self.follow, self.finish, self.constant, self.pre_filter = follow, finish, constant, pre_filter
        self.lasts = lasts
        self.is_static = self.volatility is Volatility.STATIC
        self.is_followed = follow is not None and volatility is Volatility.GLOBAL
        # A constant score needs no NormalizeScore, and so no second pass over the candidates.
        self.is_normalised = finish is not None and constant is None

    @cached
    def many(self) -> Callable[[Rows], npt.NDArray[A]]:
        """Return a function (rows) -> answers [len(rows)]. Kept answers are a view for all rows, which is read-only."""
        if self.is_static:
            return self._static.__getitem__
        if self.is_followed:
            return self._followed.many
        return _following(self.answer, self.follow)

    @cached
    def one(self) -> Callable[[int], Any]:
        """Return a function (row) -> the answer, a plain number, equal to that of `many` to the last bit."""
        if self.is_static:
            # A memoryview: it gives a plain number in a third of the time that numpy's `item` takes.
            return self._static.data.__getitem__
        if self.is_followed:
            return self._followed.one
        ask = self.answer
        return _following(getattr(ask, "one", None) or (lambda row: ask(slice(row, row + 1)).item()), self.follow)

    @cached
    def _static(self) -> npt.NDArray[A]:
        return np.asarray(self.answer(ALL))

    @cached
    def _followed(self) -> Followed[A]:
        assert self.follow is not None
        return Followed(self.answer, self.follow)


Check = ColumnRule[np.int32]
"""A filter's."""
Score = ColumnRule[np.float64]
"""A scorer's."""

T = TypeVar("T")
R = TypeVar("R", int, "Rows")


def _following(ask: Callable[[R], T], follow: Callable[[], int] | None) -> Callable[[R], T]:
    if follow is None:
        return ask

    def asked(at: R) -> T:
        follow()
        return ask(at)

    return asked


class Followed(Generic[A]):
    """Answers about all nodes, kept while the version stays."""

    def __init__(self, ask: Callable[[Rows], npt.NDArray[A]], follow: Callable[[], int]) -> None:
        self._ask, self._follow = ask, follow
        self._version: int | None = None
        self._answers: npt.NDArray[A]

    def _current(self) -> npt.NDArray[A]:
        version = self._follow()
        if version != self._version:
            # Before the version: if asking fails, the next question must ask again.
            self._answers = self._ask(ALL)
            self._version = version
        return self._answers

    def many(self, rows: Rows, /) -> npt.NDArray[A]:
        """Return answers [len(rows)]; for all rows a view."""
        return self._current()[rows]

    def one(self, row: int, /) -> Any:
        """Return the answer about one row, as a plain number."""
        return self._current().item(row)


class ByNode(Generic[A]):
    """A per-node function as one over rows, of `count` nodes."""

    def __init__(self, count: int, one: Callable[[int], float], dtype: type[A]) -> None:
        self.one = one
        self._count, self._dtype = count, dtype

    def __call__(self, rows: Rows, /) -> npt.NDArray[A]:
        """Return the answers row by row."""
        return np.array([self.one(row) for row in numbers(self._count, rows)], dtype=self._dtype)


def numbers(count: int, rows: Rows) -> range | list[int]:
    """Return the row numbers behind rows, of so many nodes."""
    return range(count)[rows] if isinstance(rows, slice) else rows.tolist()


def of_candidates(
    count: int, scores: Callable[[RowArray], FloatArray], volatility: Volatility = Volatility.GLOBAL
) -> Score:
    """Return a scorer whose scores depend on all candidates together: `scores` returns the weighted score of each of
    their rows.

    The raw score of a node is its row number, so NormalizeScore sees who the candidates are.
    """
    rows = cells_of(np.arange(count, dtype=np.float64))
    return ColumnRule(
        Expression(lambda read: read.of(rows).__getitem__), volatility, finish=lambda raw: scores(raw.astype(np.intp))
    )
