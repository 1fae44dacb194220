# SPDX-License-Identifier: Apache-2.0
"""The records of a trail."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from pumice.core.objects.metadata import Object

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from pumice.core.session.points.nodes import BoolArray, FloatArray
    from pumice.core.session.reasons import IntArray, Reason, ReasonTable

FITS = "fits"
UNSEEN = "not looked at"


class Ending(StrEnum):
    """The point where an action ended for a job, a task or a node."""

    # of a job
    ADMITTED = "admitted"
    NOT_ADMITTED = "not admitted"
    NO_TURN = "another job of its queue comes first"
    NOT_VALID = "not valid"
    QUEUE_OVERUSED = "its queue has all it may have"
    TOPOLOGY_UNFIT = "the tree of HyperNodes cannot be used"
    ASKS_FOR_TOPOLOGY = "it asks for a network topology, which this action does not heed"
    NOTHING_TO_PLACE = "no task of it is to be placed"
    NOT_STARVING = "not starving"
    COMMITTED = "committed"
    PROMISED = "promised room to come"
    DISCARDED = "too few of its tasks found room, so all were undone"
    NOT_IN_DOMAIN = "not enough of it found room in this HyperNode"
    NO_DOMAIN = "no HyperNode may hold it"
    WOULD_BREAK = "only by breaking gangs would there be room, which allowWholeBundle forbids"
    TRIAL_FAILED = "all of them gone, it would still not find room"
    # of a task
    PLACED = "placed"
    QUEUE_HAS_NO_ROOM = "its queue has no room for it"
    GATED = "gated"
    ROLE_FAILED = "another task of its role found no node"
    NO_NODE = "no node"
    PLACEMENT_REFUSED = "a plugin refused its placement"
    NEVER_PREEMPTS = "its preemption policy is Never"
    ROOM_IS_MADE = "room is being made for it already"
    MAY_NOT_TAKE = "its queue may not take from others"
    NO_CANDIDATES = "evictions would help on no node"
    AS_BEFORE = "a task alike has just failed in the same state"
    NO_VICTIMS = "no pod may be evicted for it"
    ROOM_MADE = "room was made"
    ROOM_TO_COME = "it had room to come without evictions"
    # of a node, for one task
    TOO_LITTLE = "evictions would not make enough room"
    NO_CANDIDATES_THERE = "no pod there may be asked to go"
    STILL_NO_ROOM = "all victims gone, its queue or the node has no room for it"


@dataclass(frozen=True, slots=True)
class Ended:
    """An ending. `who`: the job ("namespace/name"), or its task; `node` where it ended there, a HyperNode where room is
    made for a gang. `tasks`: the number of the job's tasks by status at that moment, of at least `minimum`; `held`: the
    amounts that its queue holds then, by resource in the scheduler's units, where they decided.
    """

    action: str
    who: str
    ending: Ending
    detail: str = ""
    node: str = ""
    tasks: dict[str, int] = field(default_factory=dict[str, int])
    minimum: int = 0
    held: dict[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True)
class Precedence:
    """The reason why a job comes before the next one of its queue, `over`: the first plugin whose order tells the two
    apart, and its numbers for both where it orders by numbers (the smaller comes first). "creation" or "name" where no
    plugin does.
    """

    over: str
    plugin: str
    numbers: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of a job: an action took it out of its queue, or (`tried` False) left it there when the queue got no more
    turns. `share`: the queue's at that moment, where a plugin knows one.
    """

    action: str
    job: str
    queue: str
    tried: bool = True
    share: float | None = None
    ahead: Precedence | None = None


@dataclass(slots=True)
class Opinion:
    """The answer of one plugin about the candidates for eviction: it `gave` some and kept the others, or it
    `abstained`. A plugin has no opinion when earlier ones had decided.
    """

    tier: int
    plugin: str
    gave: frozenset[str] = frozenset()
    abstained: bool = False


@dataclass(slots=True)
class Election:
    """One choice of victims, pods "namespace/name" throughout. `tier` (from 1) decided, 0 when none did; `victims` may
    be evicted, which does not mean that they were.
    """

    action: str
    point: str
    preemptor: str
    candidates: tuple[str, ...]
    node: str = ""
    victims: tuple[str, ...] = ()
    tier: int = 0
    opinions: list[Opinion] = field(default_factory=list[Opinion])

    def to_dict(self) -> Object:
        """Return plain data, sorted."""
        return {**asdict(self), "opinions": [{**asdict(each), "gave": sorted(each.gave)} for each in self.opinions]}


@dataclass(slots=True)
class AdmissionVotes:
    """Votes about an admission. `votes`: (tier, plugin, "permits", "abstains" or "rejects") of the asked plugins."""

    job: str
    votes: list[tuple[int, str, str]] = field(default_factory=list["tuple[int, str, str]"])


@dataclass(slots=True)
class FilterAnswer:
    """The answer of one filter: reason numbers, int32 [N], 0 where the filter does not refuse."""

    plugin: str
    codes: IntArray


@dataclass(slots=True)
class Look:
    """One look at the nodes for a task. `action` is "" without an action.

    `codes` int32 [N]: the reason number that counted, of the first plugin that refuses, 0 too for a node that was not
    looked at; `every`: what each filter says by itself now, room first, where that was asked for. `scores`: plugin ->
    float64 over the rows `fitting`. `lacking`: resource -> (what the task asks for, the most that any node has to
    come). `seen`: bool [N], none of the other nodes was looked at; None: all were. `chosen`, `nominated`: names of
    nodes, or "".
    """

    action: str
    task: str
    names: list[str]
    table: ReasonTable
    codes: IntArray
    fitting: npt.NDArray[np.intp]
    chosen: str = ""
    nominated: str = ""
    every: list[FilterAnswer] = field(default_factory=list[FilterAnswer])
    scores: dict[str, FloatArray] = field(default_factory=dict[str, "FloatArray"])
    lacking: dict[str, tuple[float, float]] = field(default_factory=dict[str, "tuple[float, float]"])
    seen: BoolArray | None = None

    @property
    def nodes(self) -> int:
        """Return how many nodes there are."""
        return len(self.names)

    @property
    def looked_at(self) -> int:
        """Return how many of the nodes were looked at."""
        return self.nodes if self.seen is None else int(np.count_nonzero(self.seen))

    def refused(self) -> dict[str, tuple[Reason, ...]]:
        """Return node -> the reasons that counted; every other node that was looked at fits."""
        return {self.names[row]: self.table.reasons(int(self.codes[row])) for row in np.flatnonzero(self.codes)}

    def refusers(self, node: str) -> tuple[Reason, ...]:
        """Return all reasons against a node, also those of filters behind the deciding one: first those that counted,
        which may be remembered from an earlier look when no filter refuses the node any more. Empty for a node that was
        not looked at.
        """
        row = self.names.index(node)
        return tuple(dict.fromkeys(self._reasons_at(row))) if self.seen is None or self.seen[row] else ()

    def _reasons_at(self, row: int) -> Iterator[Reason]:
        for codes in (self.codes, *[answer.codes for answer in self.every]):
            yield from self.table.reasons(int(codes[row]))

    def by_reason(self) -> dict[str, int]:
        """Return reason -> nodes, and how many fit or were not looked at: the counts add up to all nodes."""
        counts = Counter(" and ".join(r.words for r in reasons) for reasons in self.refused().values())
        others = {FITS: self.looked_at - counts.total(), UNSEEN: self.nodes - self.looked_at}
        return {**dict(counts.most_common()), **{what: count for what, count in others.items() if count}}

    def by_filter(self) -> dict[str, int]:
        """Return filter -> nodes that it was the first to refuse: the counts add up to the nodes that do not fit."""
        return dict(Counter(reasons[0].plugin for reasons in self.refused().values()).most_common())

    def score_of(self, node: str) -> dict[str, float]:
        """Return plugin -> its part of the node's total; {} for a node that does not fit."""
        # A search, not an index by row: scores exist only for the nodes that fit.
        at = np.flatnonzero(self.fitting == self.names.index(node))
        return {plugin: float(column[at[0]]) for plugin, column in self.scores.items()} if len(at) else {}

    def totals(self) -> dict[str, float]:
        """Return node -> sum of its scores, of the nodes that fit."""
        if not self.scores:
            return {}
        sums = np.add.reduce(list(self.scores.values()))
        return {self.names[row]: total for row, total in zip(self.fitting.tolist(), sums.tolist(), strict=True)}
