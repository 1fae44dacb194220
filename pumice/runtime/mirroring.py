# SPDX-License-Identifier: Apache-2.0
"""A mirror from its plan to its end: start the system, report when the cluster is here, wait, stop in order, sum up."""

from __future__ import annotations

import signal
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import anyio

from pumice.actors.errors import RemoteError
from pumice.actors.metrics.summary import RunSummary
from pumice.actors.runtime.clock import RealClock
from pumice.actors.system.settings import SystemSettings
from pumice.actors.system.system import System
from pumice.config.input_file import demand_output
from pumice.runtime.allocator import give_back, live_long
from pumice.runtime.journals import file_journal
from pumice.runtime.waiting import Until, reached

LOOK_S = 1.0
"""Seconds between two checks that the journal still exists."""


@dataclass(frozen=True, slots=True)
class MirrorPlan:
    """Plan of a mirror: source, journal, and end."""

    settings: SystemSettings
    db: Path
    until: Until
    backend: Literal["asyncio", "trio"] = "asyncio"


@dataclass(slots=True)
class MirrorOutcome:
    """Outcome of a mirror: the summary of a run, whether Ctrl-C ended it, and whether the cluster was seen as a
    whole."""

    summary: RunSummary
    db: Path
    interrupted: bool
    seen: bool

    def demand_seen(self) -> None:
        """Check that an uninterrupted mirror has seen the cluster. Raises RemoteError."""
        if not self.interrupted and not self.seen:
            raise RemoteError(f"the cluster was not seen as a whole in that time: {self.db} has nothing new of it")


def mirror_plan(plan: MirrorPlan) -> MirrorOutcome:
    """Run until a signal. Raises OpenError, ConfigError, or what a vital actor died of."""
    demand_output(plan.db)
    live_long()
    gateway = plan.settings.gateway
    # The socket listens since the settings were read, so it is closed even if the system never starts.
    with closing(gateway.listener) if gateway is not None else nullcontext():
        return anyio.run(_mirror, plan, backend=plan.backend)


async def _mirror(plan: MirrorPlan) -> MirrorOutcome:
    async with file_journal(plan.db, plan.settings.retention, mirror=plan.settings.mirror is not None) as journal:
        system = System(replace(plan.settings, journal_look_s=LOOK_S), journal, RealClock())
        async with system.running():
            interrupted = await _until(plan.until, system)
            # While the actors still run: both ask them.
            summary, seen = await system.summary(), await system.has_seen()
    return MirrorOutcome(summary, plan.db, interrupted, seen=seen)


async def _until(until: Until, system: System) -> bool:
    """Wait for the end, and return whether a signal came first."""
    interrupted = False

    async def listen(scope: anyio.CancelScope) -> None:
        nonlocal interrupted
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                interrupted = True
                break
        scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen, tasks.cancel_scope)
        tasks.start_soon(give_back)
        await reached(until, system)
        tasks.cancel_scope.cancel()
    return interrupted
