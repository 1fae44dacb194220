"""What the running system costs while nothing changes: processor time of the whole process per schedule period."""

from __future__ import annotations

import time
from typing import Any, Final

import anyio

from pumice.actors.runtime.clock import RealClock
from pumice.actors.system.settings import SystemSettings
from pumice.actors.system.system import System
from pumice.core.messages.replies import Refused
from pumice.proof.bench import cluster
from pumice.proof.bench.figures import Parameters, Samples
from pumice.storage.memory import MemoryJournal

MOST_NODES: Final = 100
MOST_PODS: Final = 800
"""A runner that is not woken looks at neither; a small house fills sooner."""

PERIOD_S: Final = 0.1
PERIODS: Final = 5
"""Schedule periods in one sample."""


def measure_idling(parameters: Parameters, samples: Samples) -> None:
    """`idle_cycle_s`, as many samples as runs. AssertionError when a cycle was run although nothing changed."""
    anyio.run(_idle, parameters, samples)


async def _idle(parameters: Parameters, samples: Samples) -> None:
    settings = SystemSettings(config_text=cluster.STOCK, schedule_period_s=PERIOD_S)
    async with System(settings, MemoryJournal(), RealClock()).running() as system:
        await _fill(system, parameters)
        await system.until_idle()
        cycles = await system.cycles()
        for _ in range(parameters.runs):
            started = time.process_time()
            await anyio.sleep(PERIODS * PERIOD_S)
            samples.add("idle_cycle_s", (time.process_time() - started) / PERIODS, "s")
        if await system.cycles() != cycles:
            raise AssertionError("nothing changed, and a cycle was run")


async def _fill(system: System, parameters: Parameters) -> None:
    pods = min(parameters.running, MOST_PODS)
    house = [*cluster.queues(), *cluster.nodes(min(parameters.nodes, MOST_NODES))]
    for answer in await system.submit([*house, *map(_endless, cluster.pending_jobs(0, pods, parameters.gang))]):
        if isinstance(answer, Refused):
            raise RuntimeError(answer.message)


def _endless(obj: dict[str, Any]) -> dict[str, Any]:
    if obj["kind"] == "Pod":
        obj["metadata"]["annotations"]["pumice.dev/duration"] = "0"
    return obj
