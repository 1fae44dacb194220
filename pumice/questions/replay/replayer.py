# SPDX-License-Identifier: Apache-2.0
"""Following a journal from cycle to cycle, with the view of each and the means to decide it again.

Nothing here depends on the process, the hash seed, the event loop or the number of workers: a cycle is a function of
the view, the configuration, the rules, now, the seed and the carry, and all six come from the journal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pumice.config.load import default_text
from pumice.core.configuration import parse_scheduler_config
from pumice.core.cycle import run_cycle
from pumice.core.fold.past import Past
from pumice.core.messages.events import ActorEvent, ActorStarted, CycleRecord
from pumice.core.outside import Ask, Recorded
from pumice.core.session.carry import Carry, CycleClock, SessionOptions
from pumice.core.session.trail.trail import NULL_TRAIL, NullTrail
from pumice.core.state.volumes import volume_rules
from pumice.storage import codec
from pumice.storage import journal as kinds
from pumice.storage.checkpoint import read_checkpoint
from pumice.storage.errors import DamagedError
from pumice.storage.history import CycleReader
from pumice.storage.journal import ACTOR, CONFIG, CYCLE, OUTCOME, Stored
from pumice.storage.records import read_as

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.config.schema import SchedulerConfig
    from pumice.core.messages.decisions import CycleResult
    from pumice.storage.history import RecordedCycle
    from pumice.storage.journal import Checkpoint, Journal

# --- Processes

FIRST: Final = "recorder"
"""An actor that starts once in the life of a process."""
AT_A_START: Final = (CONFIG, OUTCOME)
"""Kinds of records that a process may write before its actors start."""


@dataclass(frozen=True, slots=True)
class NextProcess:
    """A process ended and another one went on from its journal (seconds since the epoch)."""

    down_at: float
    up_at: float


class ProcessReader:
    """Follows a journal. `last_at`: the last sign of a running process; None before the first."""

    def __init__(self) -> None:
        self.last_at: float | None = None

    def follow(self, stored: Stored) -> NextProcess | None:
        """Follow the next record, and return the restart that it is the first sign of."""
        event = read_as(stored, ActorEvent) if stored.kind == ACTOR else None
        if isinstance(event, ActorStarted):
            down_at, begins = self.last_at, event.actor == FIRST
            if begins:
                self.last_at = stored.at
            return NextProcess(down_at, stored.at) if begins and down_at is not None else None
        if stored.kind not in AT_A_START:
            self.last_at = stored.at
        return None


class Configurations:
    """Configurations by digest, parsed once each."""

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        self.texts: dict[str, str] = dict(texts or {})
        self._parsed: dict[tuple[str, int], SchedulerConfig] = {}

    def note(self, digest: str, text: str) -> None:
        """Note the text behind a digest."""
        if digest:
            self.texts[digest] = text

    def of(self, digest: str, rules: int) -> SchedulerConfig:
        """Return the configuration as that version of the rules reads it; the stock one where the journal has none.

        Raises NewerVersionError.
        """
        parsed = self._parsed.get((digest, rules))
        if parsed is None:
            text = self.texts.get(digest) or default_text()
            parsed = self._parsed[digest, rules] = parse_scheduler_config(
                text,
                source=f"configuration {digest[:12]}",
                lenient=True,
                rules=rules,
            )
        return parsed


class Replayer:
    """Follows a journal record by record and stops at every complete cycle, with the view as that cycle saw it."""

    def __init__(self, past: Past | None = None, texts: Mapping[str, str] | None = None) -> None:
        self.past = past or Past(codec.unpack, with_view=True)
        self.configurations = Configurations(texts)
        self._reader = CycleReader(self.past.note)
        self.builds_anew = False  # whether each cycle has a session of its own, as a reference for those that are kept

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
        self,
        record: CycleRecord,
        *,
        options: SessionOptions | None = None,
        report: bool = False,
        ask: Ask | None = None,
        trail: NullTrail = NULL_TRAIL,
    ) -> CycleResult:
        """Decide the cycle again on the view as it is now. `ask`: processes to ask beside the record."""
        if self.past.view is None:
            self.past.materialised()
        assert self.past.view is not None
        config = self.configurations.of(record.config_digest, record.rules)
        clock = CycleClock(record.cycle, record.now, record.seed)
        carry = Carry.from_dict(record.carry_before)
        snapshot = self.past.view.snapshot(volume_rules(config), kept=not self.builds_anew)
        asked = ask or Recorded(record.answers, in_order=True)
        options = replace(options or SessionOptions(), failed=record.failed)
        whose = record.scheduler
        return run_cycle(
            snapshot, config, clock, carry, options, report=report, ask=asked, scheduler=whose, trail=trail
        )


async def start(journal: Journal, first: int = 1) -> tuple[Replayer, int]:
    """Return a replayer before cycle `first`, as late as possible, and the last record before that.

    It has no view until one is asked of it: up to there records are only folded, which is cheap.

    That is at the newest checkpoint before the cycle, else at the beginning of what the journal still holds.
    """
    head = await journal.head()
    there = [each for each in await journal.checkpoints() if each.sequence >= head.cut]
    for checkpoint in there:  # newest first
        if await _is_before(journal, checkpoint, first) or (head.cut and checkpoint is there[-1]):
            state = read_checkpoint(checkpoint)
            return Replayer(state.past, state.texts), state.sequence
    return Replayer(Past(codec.unpack) if first > 1 else None), head.cut


async def _is_before(journal: Journal, checkpoint: Checkpoint, cycle: int) -> bool:
    """Return whether a checkpoint was taken before that cycle: the cycle after it tells, and is read in less time than
    a large cluster's checkpoint.
    """
    try:
        following = await journal.read(checkpoint.sequence, (CYCLE,), 1)
        if following:
            return read_as(following[0], CycleRecord).cycle <= cycle
    except DamagedError:
        pass  # the next reader of these records reports it
    return read_checkpoint(checkpoint).recovered.cycle < cycle
