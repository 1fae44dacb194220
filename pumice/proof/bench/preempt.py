# SPDX-License-Identifier: Apache-2.0
"""`preempt`: pods of high priority on a full cluster, topology-aware, every node a candidate.

Running pods ask for cpu 3 and memory 12Gi, with more than ten a node for cpu 1 and 4Gi; preemptors for cpu 8 and 32Gi.
`preemptAffinity`: preemptors keep away from the pods of every fourth job, so that each node is tried by itself.
`preemptFew`: not topology-aware, and only the pods on one node of a hundred may be evicted, which do for some of the
gangs.

Topology-aware cycles are decided twice, with the same result: in one piece, and through workers.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import anyio

from pumice.actors.dry_run.crew import DryRunCrew
from pumice.actors.dry_run.pool import DryRunDriver
from pumice.actors.runtime.actor import Context
from pumice.actors.runtime.clock import RealClock
from pumice.actors.runtime.mailbox import Mailbox
from pumice.actors.runtime.supervisor import Child, Supervisor
from pumice.actors.system.ports import DryRunPort
from pumice.actors.system.settings import SystemSettings
from pumice.config.schema import SchedulerConfig
from pumice.core.actions import DRY_RUNNING
from pumice.core.configuration import parse_scheduler_config
from pumice.core.cycle import Carry, CycleClock, close_session, open_session, run_action
from pumice.core.messages.commands import DryRunCommand
from pumice.core.messages.decisions import CycleResult
from pumice.core.messages.events import ActorEvent
from pumice.core.messages.replies import Candidates, DryRunFailed
from pumice.core.objects.metadata import Object
from pumice.core.objects.pod import GROUP_NAME
from pumice.core.state.view import View
from pumice.proof.bench import cluster
from pumice.proof.bench.cycle import measured_cycle
from pumice.proof.bench.figures import Advance, Parameters, Samples, settled

# --- Dry-run workers


@asynccontextmanager
async def driving(workers: int) -> AsyncGenerator[DryRunDriver]:
    """Return a driver over so many workers."""
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
    """Return one cycle whose dry runs go out to workers; `took` is called with the seconds of such an action."""
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


async def _noted_nowhere(_events: Sequence[ActorEvent]) -> None:
    pass


TEN_A_NODE: Final = ("3", "12Gi")  # what a running pod asks for where ten of them fill a node
MORE_A_NODE: Final = ("1", "4Gi")
DEFAULTS: Final = Parameters(nodes=1000, running=10_000, pods=32, gang=8)
AFFINITY_DEFAULTS: Final = Parameters(nodes=1000, running=10_000, pods=8, gang=8)
FEW_DEFAULTS: Final = Parameters(nodes=1000, running=10_000, pods=64, gang=8)

CONFIG: Final = """\
actions: "preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
  - name: predicates
  - name: nodeorder
configurations:
- name: preempt
  arguments:
    enableTopologyAwarePreemption: true
    minCandidateNodesPercentage: 100
    minCandidateNodesAbsolute: 100
- name: pumice
  arguments:
    percentageOfNodesToFind: 100
"""

ONE_BY_ONE: Final = CONFIG.replace("enableTopologyAwarePreemption: true", "enableTopologyAwarePreemption: false")

Change = Callable[[Object], Object]


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure runs: each fills a fresh view and runs one cycle; `preemptor_s` is the action's time for each
    preemptor.
    """
    anyio.run(_driven, parameters, samples, *_measure(parameters, samples, advance, CONFIG, lambda obj: obj))


def measure_affinity(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure preemption with preemptors that keep away from some of the running pods."""
    anyio.run(_driven, parameters, samples, *_measure(parameters, samples, advance, CONFIG, _choosy))


def measure_few(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure preemption node by node where nearly all nodes are full of pods that may not be evicted."""
    _measure(parameters, samples, advance, ONE_BY_ONE, _fixed)


def _measure(
    parameters: Parameters, samples: Samples, advance: Advance, text: str, change: Change
) -> tuple[View, SchedulerConfig]:
    config = parse_scheduler_config(text, source="bench")
    objects = [change(obj) for obj in _objects(parameters)]
    view = View()
    for _ in range(parameters.runs):
        view = View()
        with samples.timed("load_s"):
            for obj in objects:
                view.apply("ADDED", obj)
        with settled():
            result = measured_cycle(view, config, samples)
        samples.add("victims", len(result.evicts), "pods")
        samples.add("preemptor_s", samples.values["preempt_s"][-1] / parameters.pods, "s")
        advance(1)
    return view, config


async def _driven(parameters: Parameters, samples: Samples, view: View, config: SchedulerConfig) -> None:
    """Measure `pooled_preemptor_s`: a preemptor's time when its dry run goes out to workers."""
    seconds: list[float] = []
    async with driving(config.pumice.dry_run_workers) as driver:
        for _ in range(parameters.runs):
            with settled():
                result = await driven_cycle(view, config, CycleClock(1, cluster.NOW), driver, seconds.append)
            samples.add("pooled_victims", len(result.evicts), "pods")
            samples.add("pooled_preemptor_s", seconds[-1] / parameters.pods, "s")


def _fixed(obj: Object) -> Object:
    """Forbid the eviction of running pods except on every hundredth node."""
    if int(obj.get("spec", {}).get("nodeName", "n0")[1:]) % 100:
        obj["metadata"]["annotations"]["volcano.sh/preemptable"] = "false"
    return obj


def _choosy(obj: Object) -> Object:
    """Mark a running pod of every fourth job; a preemptor refuses nodes with one."""
    if obj["kind"] != "Pod":
        return obj
    labels: dict[str, str] = obj["metadata"].setdefault("labels", {})
    if obj["spec"]["priority"] == 10:
        labels["job"] = str(int(obj["metadata"]["annotations"][GROUP_NAME].removeprefix("j")) % 4)
        return obj
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"job": "0"}}}
    obj["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return obj


def _objects(parameters: Parameters) -> Iterator[Object]:
    size = TEN_A_NODE if parameters.running <= 10 * parameters.nodes else MORE_A_NODE
    yield from cluster.nodes(parameters.nodes)
    yield next(cluster.queues())
    yield from (_priority_class(value) for value in (10, 1000))
    for obj in cluster.running_jobs(parameters.running, parameters.gang, parameters.nodes):
        yield _sized(obj, *size, 10)
    first = cluster.jobs_of(parameters.running, parameters.gang)
    for obj in cluster.pending_jobs(first, parameters.pods, parameters.gang):
        yield _sized(obj, "8", "32Gi", 1000)


def _priority_class(value: int) -> Object:
    metadata = {"name": f"p{value}"}
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": value}


def _sized(obj: Object, cpu: str, memory: str, priority: int) -> Object:
    """Size the cluster: everything in one queue; running pods can be preempted one by one, waiting ones are
    admitted.
    """
    running = priority == 10
    if obj["kind"] == "PodGroup":
        obj["spec"]["queue"] = cluster.QUEUES[0]
        obj["spec"]["minMember"] = 1 if running else obj["spec"]["minMember"]
        obj["spec"]["priorityClassName"] = f"p{priority}"
        obj["status"]["phase"] = "Running" if running else "Inqueue"
        return obj
    obj["spec"]["priority"] = priority
    obj["spec"]["containers"][0]["resources"]["requests"] = {"cpu": cpu, "memory": memory}
    if running:
        obj["metadata"]["annotations"]["volcano.sh/preemptable"] = "true"
    return obj
