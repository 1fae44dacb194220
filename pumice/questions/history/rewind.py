# SPDX-License-Identifier: Apache-2.0
"""A journal wound back to the moment before a cycle: that cycle's input, to the last assumption."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pumice.cluster.api.kinds import MAKERS
from pumice.config.errors import ConfigError
from pumice.core.messages.decisions import Bind, Evict
from pumice.core.messages.events import CycleRecord, Mutation
from pumice.core.objects.metadata import Object
from pumice.core.state.view import View
from pumice.questions.replay.replayer import Replayer
from pumice.questions.replay.verify import ReplayReport, recorded
from pumice.storage import codec
from pumice.storage.checkpoint import read_checkpoint
from pumice.storage.history import RecordedCycle
from pumice.storage.journal import API, CYCLE, FirstBad, Journal
from pumice.storage.records import read_as
from pumice.storage.sqlite import open_history

# --- Owners

BATCH: Final = 5_000


async def owners_at(db: Path, sequence: int) -> list[Object]:
    """Return the objects that controllers make others for, as they were before the record of that number, by
    arrival."""

    found: dict[tuple[str, str, str], bytes] = {}
    async with open_history(db, record=sequence) as journal:
        after = 0
        for checkpoint in await journal.checkpoints():
            if after <= checkpoint.sequence < sequence:
                after = checkpoint.sequence
                rows = read_checkpoint(checkpoint).truth.rows()
                found = {(kind, *name): held.blob for kind, name, held in rows if kind in MAKERS}
        while batch := await journal.read(after, (API,), BATCH):
            for stored in batch:
                change = read_as(stored, Mutation)
                if stored.sequence >= sequence:
                    return [codec.unpack(blob) for blob in found.values()]
                if change.kind in MAKERS:
                    who = (change.kind, change.namespace, change.name)
                    if change.type == "DELETED":
                        found.pop(who, None)
                    else:
                        found[who] = change.blob
            after = batch[-1].sequence
    return [codec.unpack(blob) for blob in found.values()]


NEAR: Final = 64
"""Number of cycles that are read one by one; for more, a checkpoint is nearer."""


@dataclass(slots=True)
class Rewound:
    """The cycle as recorded, and the replayer with the very view of it. `config`: the text in force; `position`: the
    last record that was read; `first_bad`: the first damaged one before the cycle, if any.
    """

    cycle: RecordedCycle
    replayer: Replayer
    config: str
    position: int
    first_bad: FirstBad | None = None

    @property
    def view(self) -> View:
        """Return the scheduler's view when the cycle opened."""
        view = self.replayer.past.view
        assert view is not None
        return view

    @property
    def in_flight(self) -> tuple[Bind | Evict, ...]:
        """Return decisions that the objects do not show yet; their cycles are not remembered."""
        self.replayer.past.prune()
        flights = self.replayer.past.flights
        binds = [Bind(*pod, uid, node, "", flights.promised.get(pod)) for pod, (uid, node) in flights.binds.items()]
        return (*binds, *(Evict(*pod, uid, "", "", "") for pod, uid in flights.evictions.items()))

    @property
    def objects(self) -> list[Object]:
        """Return the objects of the view, references first."""
        return [codec.unpack(blob) for _, blob in self.replayer.past.objects()]


async def rewind(
    journal: Journal, cycle: int, source: str, *, path: str = "--cycle", before: Rewound | None = None
) -> Rewound:
    """Return the state that the cycle of that number saw. ConfigError naming `source` when the journal has no such
    cycle. `before`: an earlier cycle of the same journal, which is used up if it is near enough to go on from.
    """
    report = ReplayReport()
    standing = await _standing(journal, cycle, before)
    async with aclosing(recorded(journal, report, first=cycle, standing=standing)) as cycles:
        async for replayer, found in cycles:
            if found.record.cycle == cycle:
                if replayer.past.view is None:
                    replayer.past.materialised()
                text = replayer.configurations.texts.get(found.record.config_digest, "")
                first_bad = report.chain.first_bad if report.chain is not None else None
                bad_before = first_bad if first_bad is not None and first_bad.sequence <= found.sequence else None
                return Rewound(found, replayer, text, report.position, bad_before)
    bad = report.chain.first_bad if report.chain is not None else None
    why = f" that can be read: record {bad.sequence} is bad ({bad.why})" if bad is not None else ""
    raise ConfigError(f"the journal has no cycle {cycle}{why}", source=source, path=path)


async def _standing(journal: Journal, cycle: int, before: Rewound | None) -> tuple[Replayer, int] | None:
    """Return the position to go on from, if that is cheaper than a checkpoint and everything up to there was whole."""
    if before is None or not 0 < cycle - before.cycle.record.cycle <= NEAR or before.first_bad is not None:
        return None
    whole = before.position >= (await journal.head()).cut
    return (before.replayer, before.position) if whole else None


async def rewind_file(db: Path, cycle: int, *, path: str = "--cycle", before: Rewound | None = None) -> Rewound:
    """Rewind from a file, which is only read."""
    async with open_history(db, cycle=cycle) as journal:
        return await rewind(journal, cycle, str(db), path=path, before=before)


def demand_volcano(past: Rewound, path: str = "--cycle") -> None:
    """Refuse a cycle of Kubernetes' own scheduler, which Volcano's could not have decided. Raises ConfigError."""
    record = past.cycle.record
    if record.scheduler:
        whose = f"cycle {record.cycle} is {record.scheduler}'s; the one of Volcano's before it is {record.cycle - 1}"
        raise ConfigError(whose, path=path)


async def newest_cycle(db: Path) -> int:
    """Return the number of the newest cycle of Volcano's. ConfigError when the journal has none."""
    async with open_history(db) as journal:
        newest = await journal.last(CYCLE)
    if newest is None:
        raise ConfigError("the journal has no cycle", source=str(db))
    return newest_of_volcano(read_as(newest, CycleRecord))


def newest_of_volcano(record: CycleRecord) -> int:
    """Return the number of the cycle, or of the one before: a cycle of another scheduler follows one of Volcano's."""
    return record.cycle - 1 if record.scheduler else record.cycle


def warn_of_damage(past: Rewound, db: Path, warn: Callable[[str], None]) -> None:
    """Warn when the answer rests on records that were changed."""
    if past.first_bad is not None:
        bad = past.first_bad
        warn(f"{db}: not as it was written: record {bad.sequence} is bad ({bad.why}); what follows rests on it")
