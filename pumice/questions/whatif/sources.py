# SPDX-License-Identifier: Apache-2.0
"""Sources of a fork: objects passed in, or a journal up to some cycle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final

from pumice.cluster.kernel.fork import Fork
from pumice.cluster.kubelets.container_plans import read_life
from pumice.cluster.kubelets.pod_runs import DURATION
from pumice.config.errors import ConfigError
from pumice.core.configuration import parsed
from pumice.core.messages.events import ConfigLoaded, CycleRecord, Mutation
from pumice.core.objects.metadata import Object, section, text_map
from pumice.errors import InputError
from pumice.questions.replay.handover import Beginnings
from pumice.runtime.arrivals import ARRIVAL, arrival_at, arriving
from pumice.storage import codec
from pumice.storage.chain import verified
from pumice.storage.checkpoint import Recovered, read_checkpoint
from pumice.storage.journal import Head, Journal, Stored
from pumice.storage.records import content
from pumice.storage.sqlite import open_history
from pumice.storage.truth import Truth

UNTOLD: Final = frozenset(("Event", "Lease"))
"""Kinds that no decision depends on."""


async def journaled(file: Path, cycle: int | None = None, default_duration_s: float | None = None) -> Fork:
    """Return the cluster as that cycle found it (None: at the end of the journal). `default_duration_s` None: as pods
    without a duration ran there. ConfigError when the cycle does not exist; DamagedError, OpenError.
    """
    async with open_history(file) as journal:
        found = _Folded()
        await found.follow(journal, cycle)
    if not found.recovered.records and not found.truth.kinds:
        raise ConfigError("the journal is empty", source=str(file))
    if cycle is not None and not found.reached:
        raise ConfigError(f"the journal has no cycle {cycle}", source=str(file), path="--cycle")
    return found.fork(str(file), default_duration_s)


def handed_in(objects: Sequence[Object], now: float, told: ConfigLoaded, default_duration_s: float = 0.0) -> Fork:
    """Return the loaded objects as a fork, with later arrivals. Pods without a duration (0.0) run beyond every horizon.
    Raises InputError for an arrival that is not a time.
    """
    there, later = arrivals((with_deadline(obj) for obj in objects if obj["kind"] not in UNTOLD), now)
    return Fork(tuple(there), now, parsed(told), told, default_duration_s=default_duration_s, later=tuple(later))


def arrivals(objects: Iterable[Object], now: float) -> tuple[list[Object], list[tuple[float, Object]]]:
    """Return the objects that are there at `now` (seconds since the epoch), and those that come so many seconds later.
    Raises InputError.
    """
    there, later = list[Object](), list[tuple[float, Object]]()
    for obj in objects:
        said = arriving(obj)
        at = now if said is None else arrival_at(said, now)
        if at is None:
            expected = "expected a duration such as 1h30m or a time such as 2026-01-31T12:00:00Z"
            who = f"{obj['kind']} {obj['metadata'].get('name')}"
            raise InputError(f"{expected}, was {said!r}", path=f"{who}: {ARRIVAL}")
        if at <= now:
            there.append(obj)
        else:
            later.append((at - now, obj))
    return there, later


def with_deadline(obj: Object) -> Object:
    """Return a pod that has only a deadline with a run until then."""
    if obj["kind"] != "Pod":
        return obj
    deadline, annotations = (
        section(obj, "spec").get("activeDeadlineSeconds"),
        text_map(obj["metadata"].get("annotations")),
    )
    if not isinstance(deadline, int) or DURATION in annotations or read_life(obj, 0.0) is not None:
        return obj
    return {**obj, "metadata": {**obj["metadata"], "annotations": {**annotations, DURATION: f"{deadline}s"}}}


class _Folded:
    """The end of the folding. `reached`: the requested cycle has come."""

    def __init__(self) -> None:
        self.truth, self.recovered, self.beginnings = Truth(), Recovered(), Beginnings()
        self.now, self.reached = 0.0, False

    async def follow(self, journal: Journal, cycle: int | None) -> None:
        head = await journal.head()
        after = await self._begin(journal, head, cycle)
        async with aclosing(verified(journal, head, after)) as chunks:
            async for chunk in chunks:
                for stored in chunk:
                    if self._note(stored, cycle):
                        return

    async def _begin(self, journal: Journal, head: Head, cycle: int | None) -> Stored | None:
        """Begin at the newest checkpoint that is old enough."""
        for checkpoint in await journal.checkpoints():
            if not head.cut <= checkpoint.sequence <= head.sequence:
                continue
            state = read_checkpoint(checkpoint)
            if cycle is None or state.recovered.cycle < cycle:
                self.truth, self.recovered, self.now = state.truth, state.recovered, checkpoint.at
                self.beginnings.told(state.recovered.config)
                beyond = checkpoint.sequence > head.cut
                return (await journal.read(checkpoint.sequence - 1, limit=1))[0] if beyond else None
        return None

    def _note(self, stored: Stored, cycle: int | None) -> bool:
        """Note a record, and return True for the wanted cycle."""
        found = content(stored)
        if isinstance(found, CycleRecord):
            self.beginnings.decided(found)
            if found.cycle == cycle:
                self.now, self.reached = found.now, True
                return True
        self.recovered.note(stored, found, self.truth.apply)
        if isinstance(found, Mutation):
            self.beginnings.note(found, stored.at)
        elif isinstance(found, ConfigLoaded):
            self.beginnings.told(found)
        self.now = stored.at or self.now
        return False

    def fork(self, source: str, default_duration_s: float | None) -> Fork:
        """Return the cluster at that moment."""
        rows = sorted(self.truth.rows(), key=lambda row: row[2].revision)
        told = self.recovered.config or ConfigLoaded("", "", source)
        lasts_s = self.beginnings.default_duration_s if default_duration_s is None else default_duration_s
        return Fork(
            tuple(codec.unpack(held.blob) for kind, _, held in rows if kind not in UNTOLD),
            self.now,
            parsed(told),
            told,
            cycle=self.recovered.cycle,
            carry=self.recovered.carry,
            in_flight=tuple(decision for _, decision in self.recovered.unresolved.values()),
            default_duration_s=lasts_s,
        )
