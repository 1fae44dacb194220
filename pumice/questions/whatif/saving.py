# SPDX-License-Identifier: Apache-2.0
"""A future as a journal: the whole system, with all its actors, runs it and writes it down."""

from __future__ import annotations

from pathlib import Path

import anyio

from pumice.actors.outside.over_http import supposing
from pumice.actors.runtime.clock import VirtualClock
from pumice.actors.system.settings import SystemSettings
from pumice.actors.system.system import System
from pumice.cluster.kernel.fork import Fork
from pumice.cluster.kernel.life import Life
from pumice.core.messages.commands import Announced
from pumice.runtime.determinism import deterministic
from pumice.runtime.journals import keep
from pumice.runtime.leaping import leaping
from pumice.storage import codec
from pumice.storage.journal import API, Record
from pumice.storage.memory import MemoryJournal


def save(fork: Fork, horizon_s: float, seed: int, file: Path) -> None:
    """Save the future from the fork to the horizon, into a new file. Raises OpenError."""
    records: list[Record] = []
    Life(
        fork,
        seed,
        lambda mutation, at: records.append(Record(API, codec.encode(mutation), 0, at)),
        lambda result, at: None,
    )
    memory = MemoryJournal()
    settings, options = leaping(_settings(fork, seed))
    with deterministic(seed):
        anyio.run(_lived, fork, horizon_s, settings, memory, records, backend="trio", backend_options=options)
    keep(memory, file)


def _settings(fork: Fork, seed: int) -> SystemSettings:
    return SystemSettings(
        config_text=fork.told.text,
        lenient=True,
        seed=seed,
        uid_seed=fork.uid_seed(seed) + 1,
        default_duration_s=fork.default_duration_s,
        user_plugins=fork.told.plugins,
        arrivals=bool(fork.later),
        post=supposing,
    )


async def _lived(
    fork: Fork, horizon_s: float, settings: SystemSettings, memory: MemoryJournal, records: list[Record]
) -> None:
    await memory.append(records)
    async with System(settings, memory, VirtualClock(fork.now)).running() as system:
        if fork.later:
            await system.announce([Announced(fork.now + after, codec.pack(obj)) for after, obj in fork.later])
        await anyio.sleep(horizon_s)
