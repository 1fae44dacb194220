"""Choices of victims as they are made, plugin by plugin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pumice.core.objects.pod import Task
from pumice.core.session.trail.records import Election, Opinion

if TYPE_CHECKING:
    from pumice.core.session.points.batches import BoolArray, TaskBatch
    from pumice.core.session.session import Session
    from pumice.core.session.trail.trail import Trail


class Hearing:
    """The choice on one node, while it is being made."""

    def __init__(self, election: Election) -> None:
        self._election = election

    def gave(self, tier: int, plugin: str, answer: Sequence[Task]) -> None:
        """The plugin would let these go."""
        self._election.opinions.append(Opinion(tier, plugin, frozenset(task.key for task in answer)))

    def abstained(self, tier: int, plugin: str) -> None:
        """The plugin does not care."""
        self._election.opinions.append(Opinion(tier, plugin, abstained=True))

    def decided(self, tier: int, victims: Sequence[Task]) -> None:
        """The tier decided."""
        self._election.tier, self._election.victims = tier, tuple(task.key for task in victims)


class HearingOfMany:
    """The choices on many nodes at once. `elections`: by the nodes' places in the batch."""

    def __init__(self, elections: dict[int, Election], batch: TaskBatch) -> None:
        self._elections, self._bounds = elections, batch.bounds()
        self._keys = [task.key for task in batch.facts.tasks(batch.rows)]

    def gave(self, tier: int, plugin: str, answer: BoolArray, over: BoolArray) -> None:
        """`answer` bool [M]; `over` bool [count]: the nodes where it does not count any more."""
        for place, election in self._elections.items():
            if not over[place]:
                election.opinions.append(Opinion(tier, plugin, frozenset(self._on(place, answer))))

    def decided(self, tier: int, victims: BoolArray) -> None:
        """`victims` bool [M]: who may go by this tier."""
        for place, election in self._elections.items():
            found = self._on(place, victims)
            if found:
                election.tier, election.victims = tier, tuple(found)

    def _on(self, place: int, mask: BoolArray) -> list[str]:
        first, last = self._bounds[place : place + 2]
        return [key for key, holds in zip(self._keys[first:last], mask[first:last].tolist(), strict=True) if holds]


class Elections:
    """Those that a trail is about, in order. Merge rules tell them what plugins say."""

    def __init__(self, trail: Trail) -> None:
        self._trail = trail
        self.held: list[Election] = []

    def hear(self, point: str, subject: Any, candidates: Sequence[Task]) -> Hearing | None:
        """A choice among candidates on one node begins; None when there are none, or nobody asks about it."""
        election = self._begin(point, subject, candidates) if candidates else None
        return None if election is None else Hearing(election)

    def hear_many(self, point: str, subject: Any, batch: TaskBatch) -> HearingOfMany | None:
        """A choice among candidates on many nodes begins; None when there are none, or nobody asks about it."""
        found: dict[int, Election] = {}
        for place, here in enumerate(batch.by_node()):
            election = self._begin(point, subject, here) if here else None
            if election is not None:
                found[place] = election
        return HearingOfMany(found, batch) if found else None

    def _begin(self, point: str, subject: Any, candidates: Sequence[Task]) -> Election | None:
        trail = self._trail
        preemptor, job = _who(subject)
        if trail.brief:
            return None
        if preemptor not in trail.tasks and job not in trail.jobs and not any(c.key in trail.tasks for c in candidates):
            return None
        keys = tuple(task.key for task in candidates)
        election = Election(trail.session.action, point, preemptor, keys, _node_of(trail.session, candidates))
        self.held.append(election)
        return election

    def of(self, victim: str, preemptor: str = "") -> Election | None:
        """The last choice in which the pod was offered, for that preemptor if there was one for it."""
        offered = [election for election in reversed(self.held) if victim in election.candidates]
        return next((election for election in offered if election.preemptor == preemptor), next(iter(offered), None))


def _who(subject: Any) -> tuple[str, str]:
    """Who needs room, and the job: a task, or an eviction for a whole gang; nobody where tasks are to go anyway."""
    if isinstance(subject, Task):
        return subject.key, subject.job
    return ("", "") if subject is None else (subject.job.key, subject.job.key)


def _node_of(session: Session, candidates: Sequence[Task]) -> str:
    rows = {session.jobs.node[task.row] for task in candidates}
    return session.nodes.names[rows.pop()] if len(rows) == 1 and min(rows) >= 0 else ""
