# SPDX-License-Identifier: Apache-2.0
"""The candidates for eviction, and how the plugins' answers are merged. Source: Volcano `framework/session_plugins.go`
(Preemptable, Reclaimable, UnifiedEvictable, VictimTasks; reference section 3).

A plugin states its rule once: as a Mask over the tasks of many nodes, or as a plain function of the tasks of one node.
A mask is asked about one node as well as about a thousand; where a plugin has a plain rule, nodes are asked about one
by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, final

import numpy as np
from msgspec import Struct

from pumice.core.cached import cached
from pumice.core.session.points.point import Point
from pumice.core.session.points.votes import Vote

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import BoolArray, TaskBatch
    from pumice.core.session.points.point import Listed
    from pumice.core.session.trail.trail import Elections
    from pumice.core.state.jobs import Job

S = TypeVar("S")
Answer = tuple[list["Task"], Vote]
Plain = Callable[[S, "Sequence[Task]"], Answer]
"""(who needs room, the candidates on one node) -> who may go, in any order; an abstention is as not asked."""
AsBatch = Callable[["Sequence[Task]"], "TaskBatch"]


@final
class Mask(Struct, Generic[S], frozen=True):
    """(preemptor, candidates on several nodes) -> bool [M]: the tasks that may go. Each node is decided by itself, and
    the candidates before another on its node count as asked before it; a task of an unknown job has no job row.

    `filters`: it takes candidates out before any tier is asked, and decides no tier. Users' plugins have no such masks.
    """

    ask: Callable[[S, TaskBatch], BoolArray]
    filters: bool = False

    def on_node(self, subject: S, candidates: Sequence[Task], batch: TaskBatch) -> Answer:
        """Return the mask as a plain rule about the candidates on one node (the batch). It never abstains."""
        return batch.chosen(candidates, self.ask(subject, batch)), Vote.PERMIT


class GangEvictor(Protocol):
    """The gang that evicts: `kind` is "gangpreempt" or "gangreclaim", `job` the one that needs room."""

    @property
    def kind(self) -> str: ...
    @property
    def job(self) -> Job: ...


class TieredIntersection(Point["Mask[S] | Plain[S]"], Generic[S]):
    """The merge rule of victims: the plugins of a tier must agree, and the first tier with victims decides.

    An empty answer ends its tier without victims (fix empty-answer-vetoes: it ends the search); an intersection that
    becomes empty is started anew by the next plugin (fix intersection-stays-empty: it is not). Masks that filter are
    asked before all tiers.
    """

    __slots__ = ("_as_batch", "_empty_vetoes", "_stays_empty", "heard_by")

    def __init__(self, name: str, listed: Listed, fixes: frozenset[str], as_batch: AsBatch) -> None:
        super().__init__(name, listed)
        self._empty_vetoes = "empty-answer-vetoes" in fixes
        self._stays_empty = "intersection-stays-empty" in fixes
        self._as_batch = as_batch
        self.heard_by: Elections | None = None

    def __call__(self, subject: S, candidates: Sequence[Task], batch: TaskBatch | None = None) -> list[Task]:
        """Return the victims on one node, in the order of the first plugin that counts. `batch`: the candidates as
        columns, where the caller has them.
        """
        for mask in self._filters:
            # The candidates have changed, so columns of the earlier ones are worth nothing.
            candidates, batch = mask.on_node(subject, candidates, batch or self._as_batch(candidates))[0], None
        if self._filters and (not candidates or self._filters_only):
            return list(candidates)
        heard = None if self.heard_by is None else self.heard_by.hear(self.name, subject, candidates)
        for number, tier in zip(self.tier_numbers, self.tiers, strict=True):
            victims: list[Task] | None = None
            for plugin, rule in tier:
                if isinstance(rule, Mask):
                    if rule.filters:
                        continue
                    batch = batch or self._as_batch(candidates)
                    answer, vote = rule.on_node(subject, candidates, batch)
                else:
                    answer, vote = rule(subject, candidates)
                # Rejecting and permitting are alike here: Volcano looks at the list alone (Reclaimable).
                if vote == Vote.ABSTAIN:
                    if heard is not None:
                        heard.abstained(number, plugin)
                    continue
                if heard is not None:
                    heard.gave(number, plugin, answer)
                if not answer:
                    if self._empty_vetoes:
                        return []
                    victims = None
                    break
                # Go's nil and an emptied slice are the same to the next plugin.
                starts = victims is None or not (victims or self._stays_empty)
                victims = answer if victims is None or starts else _intersection(victims, answer)
            if victims:
                if heard is not None:
                    heard.decided(number, victims)
                return victims
        return []

    @cached
    def _filters(self) -> list[Mask[S]]:
        return [rule for tier in self.tiers for _, rule in tier if isinstance(rule, Mask) and rule.filters]

    @cached
    def _filters_only(self) -> bool:
        return len(self._filters) == sum(map(len, self.tiers))

    @cached
    def _masks(self) -> list[list[tuple[str, Mask[S]]]] | None:
        tiers = [[(name, rule) for name, rule in tier if isinstance(rule, Mask)] for tier in self.tiers]
        plain = [len(masks) < len(tier) for masks, tier in zip(tiers, self.tiers, strict=True)]
        mended = self._empty_vetoes or self._stays_empty or bool(self._filters)
        return None if any(plain) or mended else tiers

    @property
    def by_columns(self) -> bool:
        """Return whether many nodes can be asked about together: every rule is a mask."""
        return self._masks is not None

    def over(self, subject: S, batch: TaskBatch) -> BoolArray:
        """Return the victims on many nodes, [M], each node decided by itself. Only where `by_columns`."""
        assert self._masks is not None
        heard = None if self.heard_by is None else self.heard_by.hear_many(self.name, subject, batch)
        victims = np.zeros(len(batch.rows), dtype=np.bool_)
        decided = np.zeros(batch.count, dtype=np.bool_)
        for number, tier in zip(self.tier_numbers, self._masks, strict=True):
            so_far = np.zeros(len(batch.rows), dtype=np.bool_)
            out = decided.copy()
            for plugin, mask in tier:
                answer = mask.ask(subject, batch)
                if heard is not None:
                    heard.gave(number, plugin, answer, out)
                starts = batch.per_node(so_far) == 0  # no plugin answered yet, or no candidate was left: start anew
                # In one pass over all nodes, what `__call__` does on one: cut to the answer, or started anew where
                # nothing is left.
                so_far = answer & (so_far | starts[batch.node])
                # Where one plugin gives none, the tier ends without victims on that node.
                out |= batch.per_node(answer) == 0
            so_far &= ~out[batch.node]
            if heard is not None:
                heard.decided(number, so_far)
            victims |= so_far
            decided |= batch.per_node(so_far) > 0
            if decided.all():
                break
        return victims


def _intersection(victims: list[Task], answer: Sequence[Task]) -> list[Task]:
    # A set: Volcano compares every pair, which for 1,000 candidates makes a million comparisons.
    names = {task.uid for task in answer}
    return [task for task in victims if task.uid in names]


class FirstTierUnion(Point["Sequence[Callable[[Sequence[Task]], Sequence[Task]]]"]):
    """The merge rule: union inside a tier, and the first tier with a victim decides. A plugin gives several
    functions.
    """

    __slots__ = ("heard_by",)

    def __init__(self, name: str, listed: Listed) -> None:
        super().__init__(name, listed)
        self.heard_by: Elections | None = None

    def __call__(self, candidates: Sequence[Task]) -> list[Task]:
        """Return the victims, in the order in which they were named."""
        heard = None if self.heard_by is None else self.heard_by.hear(self.name, None, candidates)
        for number, tier in zip(self.tier_numbers, self.tiers, strict=True):
            # In order and by uid: Volcano collects them in a map of pointers, which has no order.
            victims: dict[str, Task] = {}
            for plugin, functions in tier:
                named = {task.uid: task for ask in functions for task in ask(candidates)}
                victims.update(named)
                if heard is not None:
                    heard.gave(number, plugin, list(named.values()))
            if victims:
                if heard is not None:
                    heard.decided(number, list(victims.values()))
                return list(victims.values())
        return []


class VictimPoints:
    """The points that preempt, reclaim, the gang actions and shuffle ask."""

    def __init__(self, listed: Listed, fixes: frozenset[str], as_batch: AsBatch) -> None:
        given: tuple[Any, ...] = (listed, fixes, as_batch)
        self.preemptable: TieredIntersection[Task] = TieredIntersection("Preemptable", *given)
        self.reclaimable: TieredIntersection[Task] = TieredIntersection("Reclaimable", *given)
        self.unified_evictable: TieredIntersection[GangEvictor] = TieredIntersection("UnifiedEvictable", *given)
        self.victim_tasks = FirstTierUnion("VictimTasks", listed)
