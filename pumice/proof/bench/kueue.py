# SPDX-License-Identifier: Apache-2.0
"""`kueue`: the workloads of Kueue's performance test, as PodGroups in 30 queues that are admitted against quota.

Each queue has 20 cpu, may borrow, and gets small, medium and large workloads in the mix and at the pace of Kueue's
baseline (`test/performance/scheduler/configs/baseline`). Kueue measures a minute of it with an API server on the real
clock, preemption included; here it is cycles of the core on a clock of their own, and nothing is preempted.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Final, NamedTuple

from pumice.core.configuration import parse_scheduler_config
from pumice.core.objects.metadata import Object
from pumice.proof.bench import cluster
from pumice.proof.bench.figures import Advance, Parameters, Samples, settled
from pumice.proof.bench.rounds import Rounds

DEFAULTS: Final = Parameters(queues=30, runs=1)
QUOTA_CPU: Final = 20
BORROWED_CPU: Final = 100
PERIOD_S: Final = 0.1
"""Time between two cycles."""
MOST_CYCLES: Final = 20_000
CONFIG: Final = """\
actions: "enqueue"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: overcommit
    arguments:
      overcommit-factor: 1.0
  - name: proportion
"""


class WorkloadSort(NamedTuple):
    """Workloads of one sort in a queue: how many, how long after each other they come, and what one takes."""

    name: str
    workloads: int
    every_s: float
    cpu: int
    runs_s: float


SORTS: Final = (
    WorkloadSort("small", 350, 0.1, 1, 0.2),
    WorkloadSort("medium", 100, 0.5, 5, 0.5),
    WorkloadSort("large", 50, 1.2, 20, 1.0),
)


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure `cpu_s`, processor seconds until the last workload has ended, `workloads_per_s` of these seconds, and
    `makespan_s`, the time that went by for the workloads. Raises RuntimeError when some are never admitted.
    """
    for _ in range(parameters.runs):
        work = sorted(arrivals(parameters.queues))
        rounds = Rounds(parse_scheduler_config(CONFIG, source="bench"), quota(parameters.queues))
        with settled():
            makespan_s = lived(rounds, work)
        samples.add("cpu_s", rounds.cpu_s, "s")
        samples.add("workloads_per_s", len(work) / rounds.cpu_s, "workloads/s")
        samples.add("makespan_s", makespan_s, "s")
        samples.add("cycles", rounds.cycles, "cycles")
        advance(1)


def lived(rounds: Rounds, work: list[tuple[float, str, int, float, int]]) -> float:
    """Return the time at which all work has come, was admitted and has ended."""
    coming, running, waiting = work[::-1], list[tuple[float, str]](), dict[str, float]()
    for number in range(MOST_CYCLES):
        at_s = number * PERIOD_S
        while running and running[0][0] <= at_s:
            rounds.remove(("PodGroup", heapq.heappop(running)[1]))
        while coming and coming[-1][0] <= at_s:
            _, name, cpu, runs_s, queue = coming.pop()
            waiting[name] = runs_s
            rounds.add([_group(len(coming), name, cpu, queue)])
        if not (coming or running or waiting):
            return at_s
        for written in rounds.cycle(cluster.NOW + at_s).pod_groups:
            if written.phase == "Inqueue" and written.name in waiting:
                heapq.heappush(running, (at_s + waiting.pop(written.name), written.name))
    raise RuntimeError(f"{len(waiting)} workloads were not admitted in {MOST_CYCLES} cycles")


def arrivals(queues: int) -> Iterator[tuple[float, str, int, float, int]]:
    """Yield (moment, name, cpu, seconds it runs, queue) of every workload."""
    for queue in range(queues):
        for sort in SORTS:
            for number in range(sort.workloads):
                name = f"{sort.name}-{queue:02d}-{number:03d}"
                yield round(number * sort.every_s, 3), name, sort.cpu, sort.runs_s, queue


def quota(queues: int) -> Iterator[Object]:
    """Yield a node for the cpu of each queue, and the queues, which may hold more than their own."""
    for queue in cluster.queues(queues):
        yield {**queue, "spec": {"weight": 1, "capability": {"cpu": str(QUOTA_CPU + BORROWED_CPU)}}}
    for node in cluster.nodes(queues):
        amounts = {"cpu": str(QUOTA_CPU), "memory": "512Gi", "pods": "110"}
        yield {**node, "status": {**node["status"], "allocatable": amounts, "capacity": amounts}}


def _group(number: int, name: str, cpu: int, queue: int) -> Object:
    group = cluster.pod_group(number, 1, "Pending")
    metadata = {**group["metadata"], "name": name, "uid": name}
    spec = {"minMember": 1, "queue": f"q{queue}", "minResources": {"cpu": str(cpu)}}
    return {**group, "metadata": metadata, "spec": spec}
