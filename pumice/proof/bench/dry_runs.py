"""Dry-run workers without the rest of a system, for measuring what they cost and what they bring."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

import anyio

from pumice.actors.dry_run.crew import DryRunCrew
from pumice.actors.dry_run.driver import DryRunDriver
from pumice.actors.runtime.clock import RealClock
from pumice.actors.runtime.context import Context
from pumice.actors.runtime.mailbox import Mailbox
from pumice.actors.runtime.supervisor import Child, Supervisor
from pumice.actors.system.ports import DryRunPort
from pumice.actors.system.settings import SystemSettings
from pumice.config.schema import SchedulerConfig
from pumice.core.actions import DRY_RUNNING
from pumice.core.cycle import Carry, CycleClock, close_session, open_session, run_action
from pumice.core.messages.commands import DryRunCommand
from pumice.core.messages.decisions import CycleResult
from pumice.core.messages.events import ActorEvent
from pumice.core.messages.replies import Candidates, DryRunFailed
from pumice.core.state.view import View


@asynccontextmanager
async def driving(workers: int) -> AsyncGenerator[DryRunDriver]:
    """A driver over so many workers."""
    crew, context = DryRunCrew(SystemSettings()), Context(RealClock())
    boxes: list[DryRunPort] = [
        Mailbox(f"dry-run-worker:{number}", DryRunCommand, Candidates | DryRunFailed) for number in range(workers)
    ]
    children = [Child(box.name, box, partial(crew.worker, box.name, box, context)) for box in boxes]
    supervisor = Supervisor(children, context, _noted_nowhere)
    async with anyio.create_task_group() as tasks:
        await tasks.start(supervisor.run)
        yield crew.driver(boxes, supervisor.mailbox)
        supervisor.stop()


async def driven_cycle(
    view: View, config: SchedulerConfig, clock: CycleClock, driver: DryRunDriver, took: Callable[[float], None]
) -> CycleResult:
    """One cycle whose dry runs go out to workers; `took` hears how many seconds such an action has taken."""
    session = open_session(view.snapshot(), config, clock, Carry())
    for action in config.actions:
        started = time.perf_counter()
        if action in DRY_RUNNING:
            session.action = action
            await driver.drive(DRY_RUNNING[action](session))
            took(time.perf_counter() - started)
        else:
            run_action(session, action)
    return close_session(session)


async def _noted_nowhere(events: Sequence[ActorEvent]) -> None:
    del events
