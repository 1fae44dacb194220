# SPDX-License-Identifier: Apache-2.0
"""The common part of a record and another configuration: every recorded cycle is decided again under that one. As long
as the decisions are the same, the record shows what would have happened.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import structs, to_builtins

from pumice.actors.scheduling.commit import statuses_of
from pumice.core import digest as digests
from pumice.core.messages.commands import WriteStatus
from pumice.core.messages.decisions import Bind, CycleResult, Decision
from pumice.core.messages.events import ConfigLoaded, CycleRecord, Mutation
from pumice.core.objects.metadata import Object, section
from pumice.core.outside import AskedOutside, Supposing
from pumice.questions.replay.compare import CycleDifference, compare
from pumice.questions.replay.replayer import ProcessReader, Replayer, start
from pumice.storage import codec
from pumice.storage.chain import verified
from pumice.storage.history import RecordedCycle
from pumice.storage.journal import API, CONFIG, CYCLE, DECISION, Journal, Record, Stored
from pumice.storage.records import read_as

Advance = Callable[[int], None]
UNSEEN: Final = "Pending"
"""The phase of a PodGroup that has none yet."""


@dataclass(frozen=True)
class Parting:
    """The first cycle with other decisions, and when (seconds since the epoch)."""

    cycle: int
    at: float
    difference: CycleDifference


@dataclass
class Shared:
    """Records that both runs have in common: those after number `begun`, as the other configuration would write them;
    all records, when the decisions never part.
    """

    begun: int
    records: list[Record] = field(default_factory=list[Record])
    parting: Parting | None = None
    seed: int = 0


async def shared(journal: Journal, told: ConfigLoaded, advance: Advance = lambda records: None) -> Shared:
    """Follow a journal until the decisions part; `told` is the other configuration. Raises DamagedError."""
    replayer, begun = await start(journal)
    head = await journal.head()
    after = (await journal.read(begun - 1, limit=1))[0] if begun > head.cut else None
    follower = _Follower(replayer, told, begun)
    async with aclosing(verified(journal, head, after)) as chunks:
        async for chunk in chunks:
            if any(follower.follows(stored) for stored in chunk):
                return follower.shared
            advance(len(chunk))
    follower.end()
    return follower.shared


class _Follower:
    """Compares cycle by cycle. `_closed`: the number of records up to the last whole cycle; `_wake_at`: when the other
    configuration would have had a cycle of its own.
    """

    def __init__(self, replayer: Replayer, told: ConfigLoaded, begun: int) -> None:
        self.shared = Shared(begun)
        self._replayer = replayer
        self._told = told
        self._revisions: list[int] = []
        self._closed = 0
        self._carry: Object | None = None
        self._wake_at: float | None = None
        self._cycle = 0
        self._lives = ProcessReader()
        replayer.configurations.note(told.digest, told.text)

    def follows(self, stored: Stored) -> bool:
        """Follow the next record, and return whether the decisions part there."""
        self.shared.records.append(self._as_told(stored))
        self._revisions.append(read_as(stored, Mutation).revision if stored.kind == API else 0)
        restart = self._lives.follow(stored)
        if restart is not None:
            if self._woke_before(restart.down_at):
                return True
            self._wake_at = None  # the process that would have woken was gone by then
        cycle = self._replayer.follow(stored)
        if cycle is None:
            return False
        if self._woke_before(cycle.record.now):
            return True
        record = structs.replace(cycle.record, config_digest=self._told.digest)
        if self._carry is not None:
            record = structs.replace(record, carry_before=self._carry)
        ask = AskedOutside(Supposing(record.answers))
        result = self._replayer.decide(record, ask=ask)
        difference = self._other_times(cycle.record) or _other_decisions(cycle, result)
        difference = difference or _other_phases(cycle.record, result, self._replayer)
        if difference is not None:
            place = cycle.sequence - self.shared.begun - 1
            unseen = (row for row in range(self._closed, place) if self._revisions[row] > record.revision)
            self._part(next(unseen, place), cycle.record.now, difference)
            return True
        self._keep(cycle, structs.replace(record, answers=ask.answers()), result)
        return False

    def end(self) -> None:
        """End the comparison: no records are left."""
        records = self.shared.records
        if records:
            self._woke_before(records[-1].at)

    def _woke_before(self, at: float) -> bool:
        wake_at = self._wake_at
        if wake_at is None or wake_at >= at:
            return False
        late = (row for row, record in enumerate(self.shared.records) if row >= self._closed and record.at > wake_at)
        difference = CycleDifference(self._cycle + 1, "", {"wake_at": None}, {"wake_at": wake_at})
        self._part(next(late, len(self.shared.records)), wake_at, difference)
        return True

    def _part(self, kept: int, at: float, difference: CycleDifference) -> None:
        del self.shared.records[kept:]
        self.shared.parting = Parting(difference.cycle, at, difference)

    def _keep(self, cycle: RecordedCycle, record: CycleRecord, result: CycleResult) -> None:
        """Keep the cycle as the other configuration would write it."""
        shared = self.shared
        shared.seed, self._cycle = record.seed, record.cycle
        if record != cycle.record or compare(cycle, result) is not None:
            first = cycle.sequence - shared.begun - 1
            ours = structs.replace(
                record,
                digest=result.digest,
                digest_version=digests.VERSION,
                carry=result.carry,
                statuses=statuses_of(result, record.revision),
                wake_at=result.wake_at,
            )
            said = [(CYCLE, codec.encode(ours))]
            said += [(DECISION, codec.encode(decision)) for decision in (*result.binds, *result.evicts)]
            for row, (kind, payload) in enumerate(said, first):
                shared.records[row] = structs.replace(shared.records[row], kind=kind, payload=payload)
        self._closed = len(shared.records)
        self._carry = result.carry
        self._wake_at = None if result.wake_at == cycle.record.wake_at else result.wake_at

    def _as_told(self, stored: Stored) -> Record:
        record = Record(stored.kind, stored.payload, stored.cause, stored.at)
        if stored.kind != CONFIG:
            return record
        loaded = read_as(stored, ConfigLoaded)
        if loaded.error or (loaded.digest, loaded.plugins) == (self._told.digest, self._told.plugins):
            return record
        return structs.replace(record, payload=codec.encode(self._told))

    def _other_times(self, record: CycleRecord) -> CycleDifference | None:
        """Return whether the times of cycles differ: cycles of another period are other cycles from the first on."""
        of = self._replayer.configurations.of
        was = of(record.config_digest, record.rules).pumice.schedule_period_s
        now = of(self._told.digest, record.rules).pumice.schedule_period_s
        if was == now:
            return None
        return CycleDifference(record.cycle, "", {"schedule_period_s": was}, {"schedule_period_s": now})


def _other_decisions(cycle: RecordedCycle, result: CycleResult) -> CycleDifference | None:
    """Return the first differing decision: another pod, or another node for it. The texts may differ."""
    decided: tuple[Decision, ...] = (*result.binds, *result.evicts)
    for row in range(max(len(decided), len(cycle.decisions))):
        theirs = cycle.decisions[row] if row < len(cycle.decisions) else None
        ours = decided[row] if row < len(decided) else None
        if _essence(theirs) != _essence(ours):
            pod = theirs or ours
            name = f"{pod.namespace}/{pod.name}" if pod else ""
            return CycleDifference(cycle.record.cycle, name, _plain(theirs), _plain(ours))
    return None


def _essence(decision: Decision | None) -> Any:
    return decision and (isinstance(decision, Bind), decision.uid, decision.node)


def _plain(decision: Decision | None) -> Object | None:
    return None if decision is None else to_builtins(decision)


def _other_phases(record: CycleRecord, result: CycleResult, replayer: Replayer) -> CycleDifference | None:
    """Return the first PodGroup that is let in, or not, by one only."""
    written = codec.decode(record.statuses, WriteStatus) if record.statuses else WriteStatus(record.cycle)
    before = {(group.namespace, group.name): group.phase for group in written.pod_groups}
    after = {(group.namespace, group.name): group.phase for group in result.pod_groups}
    for name in (*before, *(name for name in after if name not in before)):
        was, now = (phases.get(name) or _phase(name, replayer) for phases in (before, after))
        if was != now:
            return CycleDifference(record.cycle, "/".join(name), {"phase": was}, {"phase": now})
    return None


def _phase(name: tuple[str, str], replayer: Replayer) -> str:
    blob = replayer.past.seen["PodGroup"].get(name)
    return str(section(codec.unpack(blob), "status").get("phase") or UNSEEN) if blob else UNSEEN
