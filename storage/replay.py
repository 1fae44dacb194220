"""Deciding recorded cycles again: the same inputs to the same core, digest by digest.

Nothing here depends on the process, the hash seed, the event loop or the number of workers: a cycle is a function of
the view, the configuration, now, the seed and the carry, and all five come from the journal.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from config.load import default_text, parse_scheduler_config
from core import digest as digests
from core.actions import ACTIONS
from core.cycle import run_cycle
from core.digest import as_row, digest
from core.messages.decisions import Bind
from core.messages.orders import WriteStatus
from core.plugins import PLUGINS
from core.session.carry import Carry, Clock, SessionOptions
from core.state.view import View
from storage import codec
from storage import journal as kinds
from storage.checkpoint import State, read_checkpoint
from storage.errors import CodecError
from storage.history import CycleReader
from storage.past import Past
from storage.scan import leniently

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Mapping

    from config.schema import SchedulerConfig
    from core.digest import Covered
    from core.messages.decisions import CycleResult, Decision
    from core.messages.events import CycleRecord
    from storage.history import RecordedCycle
    from storage.journal import ChainReport, Journal, Stored

Plain = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """The first thing that came out otherwise. `task`: "namespace/name" (a queue: its name; "": the cycle as a whole).

    `recorded` and `decided` are what the journal and the core say of it; None: nothing.
    """

    cycle: int
    task: str
    recorded: Plain | None
    decided: Plain | None

    def to_dict(self) -> Plain:
        """Plain data, as `pumice replay` prints it."""
        return {"cycle": self.cycle, "task": self.task, "recorded": self.recorded, "decided": self.decided}


@dataclass
class ReplayReport:
    """How a replay went. `events`: records read, those after `begun`; `seconds` is the caller's to measure.

    `chain` tells whether the journal itself is whole; a record that was changed may also show as a difference.
    """

    cycles: int = 0
    events: int = 0
    first_cycle: int = 0
    last_cycle: int = 0
    first_difference: Difference | None = None
    chain: ChainReport | None = None
    begun: int = 0

    @property
    def identical(self) -> bool:
        """Every cycle came out as recorded, from a journal that is whole."""
        return self.first_difference is None and (self.chain is None or self.chain.whole)


class Configurations:
    """Configurations by digest, parsed once each."""

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self.texts: dict[str, str] = dict(texts or {})
        self._parsed: dict[tuple[str, int], SchedulerConfig] = {}

    def note(self, digest: str, text: str) -> None:
        """The text behind a digest."""
        if digest:
            self.texts[digest] = text

    def of(self, digest: str, rules: int) -> SchedulerConfig:
        """The configuration as that version of the rules reads it; the stock one where the journal has none.

        Raises NewerVersionError.
        """
        parsed = self._parsed.get((digest, rules))
        if parsed is None:
            text = self.texts.get(digest) or default_text()
            parsed = self._parsed[digest, rules] = parse_scheduler_config(
                text,
                source=f"configuration {digest[:12]}",
                lenient=True,
                built_plugins=PLUGINS,
                built_actions=ACTIONS,
                rules=rules,
            )
        return parsed


class Replayer:
    """Follows a journal record by record and stops at every complete cycle, with the view as that cycle saw it."""

    def __init__(self, past: Past | None = None, texts: Mapping[str, str] | None = None) -> None:
        self.past = past or Past(View())
        self.configurations = Configurations(texts)
        self._reader = CycleReader(self.past.note)

    def follow(self, stored: Stored) -> RecordedCycle | None:
        """Take in a record. When it completes a cycle, the view is where that cycle found it."""
        cycle = self._reader.follow(stored)
        if stored.kind == kinds.CONFIG and self._reader.config is not None:
            self.configurations.note(self._reader.config.digest, self._reader.config.text)
        if cycle is None:
            return None
        self.past.to_cycle(cycle.record)
        self.past.decide(cycle.record.cycle, cycle.decisions)
        return cycle

    def decide(
        self, record: CycleRecord, *, options: SessionOptions | None = None, report: bool = False
    ) -> CycleResult:
        """Decide the cycle again on the view as it is now."""
        if self.past.view is None:
            self.past.materialised()
        assert self.past.view is not None
        config = self.configurations.of(record.config_digest, record.rules)
        clock = Clock(record.cycle, record.now, record.seed)
        carry = Carry.from_dict(record.carry_before)
        return run_cycle(self.past.view.snapshot(), config, clock, carry, options, report=report)


async def start(journal: Journal, first: int = 1) -> tuple[Replayer, int]:
    """A replayer before cycle `first`, as late as possible, and the last record before that.

    It has no view until one is asked of it: up to there records are only folded, which is cheap.

    That is at the newest checkpoint before the cycle, else at the beginning of what the journal still holds.
    """
    head = await journal.head()
    oldest: State | None = None
    for checkpoint in await journal.checkpoints():  # newest first
        if checkpoint.sequence >= head.cut:
            oldest = read_checkpoint(checkpoint)
            if oldest.recovered.cycle < first:
                return Replayer(oldest.past, oldest.texts), oldest.sequence
    if head.cut and oldest is not None:
        return Replayer(oldest.past, oldest.texts), oldest.sequence
    return Replayer(Past() if first > 1 else None), head.cut


async def recorded(
    journal: Journal, report: ReplayReport, *, first: int = 1
) -> AsyncGenerator[tuple[Replayer, RecordedCycle]]:
    """Every cycle from `first` on (or a little earlier) with the view as it saw it.

    `report` learns what was read and whether it was whole.
    """
    replayer, after = await start(journal, first)
    report.begun = after
    async with aclosing(leniently(journal, after)) as chunks:
        async for chunk, chain in chunks:
            report.chain = chain
            for stored in chunk:
                report.events += 1
                try:
                    cycle = replayer.follow(stored)
                except CodecError:
                    if chain.whole:
                        raise
                    return  # a record that was changed, as the chain says, into something that is none
                if cycle is not None:
                    yield replayer, cycle


async def verify(
    journal: Journal,
    *,
    first: int = 1,
    last: int | None = None,
    advance: Callable[[int], None] = lambda events: None,
) -> ReplayReport:
    """Decide the cycles first..last again; stops at the first difference. `advance` hears how many events were read."""
    report, told = ReplayReport(), 0
    async with aclosing(recorded(journal, report, first=first)) as cycles:
        async for replayer, cycle in cycles:
            if last is not None and cycle.record.cycle > last:
                break
            if cycle.record.cycle < first:
                told = report.events
                continue
            report.cycles += 1
            report.first_cycle = report.first_cycle or cycle.record.cycle
            report.last_cycle = cycle.record.cycle
            report.first_difference = compare(cycle, replayer.decide(cycle.record))
            if report.first_difference is not None:
                break
            advance(report.events - told)
            told = report.events
    return report


def compare(cycle: RecordedCycle, result: CycleResult) -> Difference | None:
    """The first difference, decisions before statuses before the digest; None when all is the same.

    Only what the digest covered when the cycle was recorded counts. Raises NewerVersionError.
    """
    record, number = cycle.record, cycle.record.cycle
    covered = digests.covered(record.digest_version)
    recorded, result_digest = _parts(covered, cycle.decisions), _digest(result, record.digest_version)
    decided = _parts(covered, (*result.binds, *result.evicts))
    for theirs, ours in zip_longest(recorded, decided):
        if theirs is None or ours is None or theirs.said != ours.said:
            return _difference(number, theirs, ours)
    if record.digest == result_digest and _carry(record.carry) == _carry(result.carry):
        return None
    return _status_difference(record, covered, result) or _whole_difference(record, result, result_digest)


class _Part(NamedTuple):
    """Something that was decided, and what of it is covered."""

    what: Any
    said: Any


def _parts(covered: Covered, decisions: Iterable[Decision]) -> list[_Part]:
    bind, evict = as_row(covered.bind), as_row(covered.evict)
    return [_Part(each, bind(each) if isinstance(each, Bind) else evict(each)) for each in decisions]


def _digest(result: CycleResult, version: int) -> str:
    if version == digests.VERSION:
        return result.digest
    return digest(result.binds, result.evicts, result.pod_conditions, result.pod_groups, result.queues, version)


def _carry(plain: Plain) -> Any:
    """As the carry of today says it: what older ones did not have starts fresh."""
    return _plain(Carry.from_dict(plain).to_dict())


def _difference(number: int, recorded: _Part | None, decided: _Part | None) -> Difference:
    theirs, ours = recorded and recorded.what, decided and decided.what
    return Difference(number, _name(theirs or ours), _plain(theirs), _plain(ours))


def _status_difference(record: CycleRecord, covered: Covered, result: CycleResult) -> Difference | None:
    written = codec.decode(record.statuses, WriteStatus) if record.statuses else WriteStatus(result.cycle)
    for fields, theirs, ours in (
        (covered.pod, written.pod_conditions, result.pod_conditions),
        (covered.pod_group, written.pod_groups, result.pod_groups),
        (covered.queue, written.queues, result.queues),
    ):
        row = as_row(fields)
        before, after = ({_name(each): _Part(each, row(each)) for each in some} for some in (theirs, ours))
        for name in [*before, *after]:
            was, came = before.get(name), after.get(name)
            if was is None or came is None or was.said != came.said:
                return _difference(record.cycle, was, came)
    return None


def _whole_difference(record: CycleRecord, result: CycleResult, result_digest: str) -> Difference:
    if record.digest != result_digest:
        return Difference(record.cycle, "", {"digest": record.digest}, {"digest": result_digest})
    return Difference(record.cycle, "", {"carry": record.carry}, {"carry": result.carry})


def _name(what: Any) -> str:
    namespace = getattr(what, "namespace", "")
    return f"{namespace}/{what.name}" if namespace else str(what.name)


def _plain(what: Any) -> Any:
    return None if what is None else msgspec.to_builtins(what)


__all__ = ["Difference", "ReplayReport", "Replayer", "compare", "recorded", "start", "verify"]
