# SPDX-License-Identifier: Apache-2.0
"""Deciding recorded cycles again: the same inputs to the same core, digest by digest."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pumice.core.shadow.guide import Guide
from pumice.core.shadow.standing import wishes_of
from pumice.questions.replay.agreement import Agreement, AgreementTold
from pumice.questions.replay.compare import CycleDifference, compare
from pumice.questions.replay.replayer import start
from pumice.results import Result
from pumice.storage.chain import leniently
from pumice.storage.errors import CodecError, DamagedError
from pumice.storage.journal import FirstBad
from pumice.storage.sqlite.failures import MANGLED

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from pumice.questions.replay.replayer import Replayer
    from pumice.storage.history import RecordedCycle
    from pumice.storage.journal import ChainReport, Journal


class Verified(Result, kw_only=True, tag="replay/1"):
    """Recorded cycles, decided again: see `ReplayReport`. `first_bad`: the first damaged record; `equal_through`: the
    record up to which every cycle came out as recorded; `changed_plugins`: sentences on users' plugins that have
    changed.
    """

    cycles: int
    first_cycle: int
    last_cycle: int
    events: int
    events_per_s: float
    seconds: float
    identical: bool
    first_difference: CycleDifference | None
    first_bad: FirstBad | None
    equal_through: int
    agreement: AgreementTold | None
    changed_plugins: list[str]


@dataclass
class ReplayReport:
    """Result of a replay. `events`: records read, those after `begun`, up to `position`; the caller measures `seconds`.

    `chain` tells whether the journal itself is whole; a record that was changed may also show as a difference.
    `equal_through`: the last record of the newest cycle that came out as recorded with nothing bad before it.
    `agreement`: of cycles that were another cluster's; None: there were none.
    """

    cycles: int = 0
    events: int = 0
    first_cycle: int = 0
    last_cycle: int = 0
    first_difference: CycleDifference | None = None
    chain: ChainReport | None = None
    begun: int = 0
    position: int = 0
    equal_through: int = 0
    agreement: Agreement | None = None

    @property
    def first_bad(self) -> FirstBad | None:
        """Return the first damaged record."""
        return None if self.chain is None else self.chain.first_bad

    @property
    def identical(self) -> bool:
        """Return whether every cycle that was decided here came out as recorded, from a whole journal."""
        return self.first_difference is None and (self.chain is None or self.chain.whole)

    def result(self, seconds: float, changed_plugins: Sequence[str]) -> Verified:
        """Return it as `pumice replay --verify` prints it."""
        return Verified(
            cycles=self.cycles,
            first_cycle=self.first_cycle,
            last_cycle=self.last_cycle,
            events=self.events,
            events_per_s=self.events / seconds if seconds else 0.0,
            seconds=seconds,
            identical=self.identical,
            first_difference=self.first_difference,
            first_bad=self.first_bad,
            equal_through=self.equal_through,
            agreement=None if self.agreement is None else self.agreement.told(),
            changed_plugins=list(changed_plugins),
        )


async def recorded(
    journal: Journal, report: ReplayReport, *, first: int = 1, standing: tuple[Replayer, int] | None = None
) -> AsyncGenerator[tuple[Replayer, RecordedCycle]]:
    """Yield every cycle from `first` on (or a little earlier) with the view as it saw it.

    `report` learns what was read and whether it was whole. `standing`: a replayer that has taken in everything up to a
    record, and goes on from there.
    """
    replayer, after = standing or await start(journal, first)
    report.begun = after
    async with aclosing(leniently(journal, after)) as chunks:
        async for chunk, chain in chunks:
            report.chain = chain
            for stored in chunk:
                report.events += 1
                report.position = stored.sequence
                try:
                    cycle = replayer.follow(stored)
                except (CodecError, DamagedError, *MANGLED):
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
    anew: bool = False,
    advance: Callable[[int], None] = lambda events: None,
) -> ReplayReport:
    """Decide the cycles first..last again; stop at the first difference. `anew`: each by a session built for it alone.
    `advance` is called with the number of read events.
    """
    report, told = ReplayReport(), 0
    async with aclosing(recorded(journal, report, first=first)) as cycles:
        async for replayer, cycle in cycles:
            replayer.builds_anew = anew
            if last is not None and cycle.record.cycle > last:
                break
            if cycle.record.cycle < first:
                told = report.events
                continue
            report.cycles += 1
            report.first_cycle = report.first_cycle or cycle.record.cycle
            report.last_cycle = cycle.record.cycle
            _decide_again(report, replayer, cycle)
            if report.first_difference is not None:
                break
            if report.first_bad is None or report.position < report.first_bad.sequence:
                report.equal_through = report.position
            advance(report.events - told)
            told = report.events
    return report


def _decide_again(report: ReplayReport, replayer: Replayer, cycle: RecordedCycle) -> None:
    if cycle.record.observed:
        guide = Guide(wishes_of(cycle.decisions))
        report.agreement = report.agreement or Agreement()
        report.agreement.note(cycle, replayer.decide(cycle.record, trail=guide), guide)
    else:
        report.first_difference = compare(cycle, replayer.decide(cycle.record))
