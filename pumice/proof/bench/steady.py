# SPDX-License-Identifier: Apache-2.0
"""`steady`: cycles on a full cluster with a little work and with none; and the running system when nothing changes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

import anyio

from pumice.actors.runtime.clock import RealClock
from pumice.actors.system.settings import SystemSettings
from pumice.actors.system.system import System
from pumice.core.cycle import open_session
from pumice.core.messages.decisions import CycleResult
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object
from pumice.core.session.carry import Carry, CycleClock
from pumice.core.state.view import View
from pumice.proof.bench import cluster
from pumice.proof.bench.cycle import measured_cycle, stock_config
from pumice.proof.bench.figures import Advance, Parameters, Samples, settled
from pumice.questions.oneshot.between import pod_group_after
from pumice.storage.memory import MemoryJournal

# --- Idling

MOST_NODES: Final = 100
MOST_PODS: Final = 800
"""A runner that is not woken looks at neither; a small house fills sooner."""

PERIOD_S: Final = 0.1
PERIODS: Final = 5
"""Schedule periods in one sample."""


def measure_idling(parameters: Parameters, samples: Samples) -> None:
    """Measure `idle_cycle_s`, as many samples as runs. AssertionError when a cycle was run although nothing changed."""
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


def _endless(obj: Object) -> Object:
    if obj["kind"] == "Pod":
        obj["metadata"]["annotations"]["pumice.dev/duration"] = "0"
    return obj


DEFAULTS: Final = Parameters(nodes=10_000, running=100_000, pods=160, gang=8)
CHANGED_SHARE: Final = 0.01
"""Number of running pods that change between two cycles."""


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure runs: a hundredth of the running pods changes, the last run's gangs leave, new ones come; then a cycle.

    At the end, what the running system costs while nothing changes.
    """
    config, view = stock_config(), fill(parameters, samples)
    with settled():
        with samples.timed("first_open_s"):
            open_session(view.snapshot(), config, CycleClock(cycle=0, now=cluster.NOW), Carry())
        _apply_statuses(view, measured_cycle(view, config, Samples()), parameters)
        first = cluster.jobs_of(parameters.running, parameters.gang)
        for number in range(1, parameters.runs + 1):
            arrivals = list(cluster.pending_jobs(first, parameters.pods, parameters.gang))
            with samples.timed("apply_s"):
                change(view, parameters, number)
                for obj in arrivals:
                    view.apply("ADDED", obj)
            result = measured_cycle(view, config, samples, number=number)
            samples.add("bound", len(result.binds), "pods")
            samples.add("pods_per_s", len(result.binds) / samples.values["cycle_s"][-1], "pods/s")
            for obj in arrivals:
                view.apply("DELETED", obj)
            first += cluster.jobs_of(parameters.pods, parameters.gang)
            _apply_statuses(view, result, parameters)
            _quiet_cycle(view, samples)
            advance(1)
    measure_idling(parameters, samples)


def _quiet_cycle(view: View, samples: Samples) -> None:
    """Run a full cycle with nothing to place."""
    scratch = Samples()
    measured_cycle(view, stock_config(), scratch)
    samples.add("nothing_pending_cycle_s", scratch.values["cycle_s"][0], "s")


def _apply_statuses(view: View, result: CycleResult, parameters: Parameters) -> None:
    """Apply the statuses that the cycle wrote, as the API would, so that the next cycle need not write them again."""
    for written in result.pod_groups:
        job = int(written.name.removeprefix("j"))
        if job < cluster.jobs_of(parameters.running, parameters.gang):
            group = cluster.pod_group(job, parameters.gang, "Running")
            view.apply("MODIFIED", pod_group_after(group, written, cluster.NOW))


def fill(parameters: Parameters, samples: Samples) -> View:
    """Return the full house: nodes, queues, running gangs."""
    view = View()
    with samples.timed("load_s"):
        for obj in cluster.nodes(parameters.nodes):
            view.apply("ADDED", obj)
        count = parameters.queues or len(cluster.QUEUES)
        for obj in cluster.queues(count):
            view.apply("ADDED", obj)
        for obj in cluster.running_jobs(parameters.running, parameters.gang, parameters.nodes, queue_count=count):
            view.apply("ADDED", obj)
    return view


def change(view: View, parameters: Parameters, number: int) -> None:
    """Let a hundredth of the running pods report something new."""
    for obj in _changed(parameters, number):
        view.apply("MODIFIED", obj)


def _changed(parameters: Parameters, number: int) -> Iterator[Object]:
    count = int(parameters.running * CHANGED_SHARE)
    jobs = cluster.jobs_of(parameters.running, parameters.gang)
    for step in range(count):
        job = (number * count + step * 7) % jobs
        index = step % parameters.gang
        obj = cluster.pod(job, index, f"n{(job * parameters.gang + index) % parameters.nodes:05d}")
        obj["status"]["message"] = f"change {number}"
        yield obj
