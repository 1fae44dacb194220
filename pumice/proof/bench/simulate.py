# SPDX-License-Identifier: Apache-2.0
"""`simulate`: a day's work through the library: gangs come, wait, run and end on virtual time; the same while others
wait that are never admitted.
"""

from __future__ import annotations

import random
import time
from typing import Final

from pumice.core.objects.metadata import Object
from pumice.lab import builders
from pumice.lab.cluster import Cluster
from pumice.proof.bench.figures import Advance, Parameters, Samples, settled

DEFAULTS: Final = Parameters(nodes=20, pods=1_000, gang=4, runs=3)
CPU_A_NODE: Final = 8
SHORTEST_S: Final = 30
LONGEST_S: Final = 600
LOAD: Final = 0.9
"""Part of all cpu that the jobs ask for while they come: some of them wait."""
WAITING: Final = (0, 10, 1_000)
"""Jobs that wait from the beginning to the end, for more than the cluster has."""


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure `jobs` a second and `speed`, virtual seconds a second, from the first job to the last one's end; by
    processor time, in one thread.

    `jobs_W`: jobs a second while W others wait. Raises AssertionError when a job has not ended, or two runs differ.
    """
    jobs = jobs_of(parameters)
    ends: dict[int, set[tuple[float | None, ...]]] = {waiting: set() for waiting in WAITING}
    for _ in range(parameters.runs):
        for waiting in WAITING:
            ends[waiting].add(_run(parameters, jobs, waiting, samples))
        advance(1)
    for found in ends.values():
        assert len(found) == 1, "every run is the same"
        assert None not in found.pop(), "every job ends"


def _run(parameters: Parameters, jobs: list[Object], waiting: int, samples: Samples) -> tuple[float | None, ...]:
    """Return the ends of the jobs."""
    beside = [builders.gang(f"w{number:05d}", 1, cpu=1_000 * parameters.nodes) for number in range(waiting)]
    cluster = Cluster(builders.nodes(parameters.nodes, cpu=CPU_A_NODE), beside, jobs)
    cluster.run("1s")  # those beside have come, and wait
    with settled():
        began = time.process_time()
        lived = cluster.run("idle")
        took_s = time.process_time() - began
    name = f"jobs_{waiting}" if waiting else "jobs"
    samples.add(name, len(jobs) / took_s, "jobs/s")
    if not waiting:
        samples.add("cpu_s", took_s, "s")
        samples.add("speed", cluster.time / took_s, "times real time")
        samples.add("cycles", len(cluster.cycles), "cycles")
    beside_names = {each["metadata"]["name"] for each in beside}
    return tuple([each.ended for each in lived.jobs if each.job.rpartition("/")[2] not in beside_names])


def jobs_of(parameters: Parameters) -> list[Object]:
    """Return gangs of 1 to twice `gang` pods less one, each with its arrival and duration."""
    chance = random.Random(0)
    made: list[Object] = []
    pods, at_s = 0, 0.0
    while pods < parameters.pods:
        size = chance.randint(1, 2 * parameters.gang - 1)
        lasts_s = chance.randint(SHORTEST_S, LONGEST_S)
        name = f"j{len(made):05d}"
        made.append(builders.gang(name, size, duration=f"{lasts_s}s", arrival=f"{round(at_s)}s"))
        pods += size
        mean_s = size * (SHORTEST_S + LONGEST_S) / 2 / (parameters.nodes * CPU_A_NODE * LOAD)
        at_s += chance.expovariate(1 / mean_s)
    return made
