# SPDX-License-Identifier: Apache-2.0
"""`whatif`: both futures of a full cluster, an hour ahead: half of the pods run, for 5 to 60 minutes each, three of ten
wait for room, and the others have ended.
"""

from __future__ import annotations

import random
from typing import Final

from pumice.cluster.kernel.fork import Fork
from pumice.core.messages.events import ConfigLoaded
from pumice.core.objects.metadata import Object
from pumice.proof.bench import cluster
from pumice.proof.bench.cycle import stock_config
from pumice.proof.bench.figures import Advance, Parameters, Samples, settled
from pumice.questions.whatif.ask import another_process, what_if
from pumice.questions.whatif.changes import nodes_like
from pumice.units import format_moment

DEFAULTS: Final = Parameters(nodes=1000, pods=10_000, gang=8, runs=3)
HORIZON_S: Final = 3600.0
SHORTEST_S: Final = 300
LONGEST_S: Final = 3600
CPU: Final = ("3", "6", "1500m", "12")
"""CPU that the pods of job j ask for: entry j mod 4, so that the running ones fill seven eighths of the nodes."""


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure a question: a twentieth more nodes, against the cluster as it is, which another process simulates if
    there are cores.
    """
    fork = full(parameters)
    change = nodes_like("n00000", max(parameters.nodes // 20, 1))
    with another_process(len(fork.objects), None) as executor:
        if executor is not None:
            executor.submit(int).result()  # it is there before the clock starts
        for _ in range(parameters.runs):
            with settled(), samples.timed("total_s"):
                found = what_if(fork, [change], HORIZON_S, executor=executor)
            samples.add("cycles", found.before.cycles + found.after.cycles, "cycles")
            samples.add("changed", len(found.jobs), "jobs")
            advance(1)


def full(parameters: Parameters) -> Fork:
    """Return the cluster."""
    chance = random.Random(0)
    running, waiting = parameters.pods // 2, parameters.pods * 3 // 10
    first = cluster.jobs_of(running, parameters.gang)
    second = first + cluster.jobs_of(waiting, parameters.gang)
    ended = parameters.pods - running - waiting
    objects: list[Object] = [*cluster.queues(), *cluster.nodes(parameters.nodes)]
    jobs = [
        *cluster.running_jobs(running, parameters.gang, parameters.nodes),
        *cluster.pending_jobs(first, waiting, parameters.gang),
        *cluster.running_jobs(ended, parameters.gang, parameters.nodes, first=second),
    ]
    for place, obj in enumerate(jobs):
        if obj["kind"] == "Pod":
            _lasting(obj, chance)
        if int(obj["metadata"]["name"][1:6]) >= second:
            jobs[place] = _ended(obj)
    told = ConfigLoaded("", cluster.STOCK, "bench")
    return Fork((*objects, *jobs), cluster.NOW, stock_config(), told)


def _lasting(pod: Object, chance: random.Random) -> None:
    lasts_s = chance.randint(SHORTEST_S, LONGEST_S)
    pod["metadata"]["annotations"]["pumice.dev/duration"] = f"{lasts_s}s"
    if "startTime" in pod["status"]:
        pod["status"]["startTime"] = format_moment(cluster.NOW - chance.randint(0, lasts_s))
    job = int(pod["metadata"]["name"][1:6])
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = CPU[job % len(CPU)]


def _ended(obj: Object) -> Object:
    phase = "Succeeded" if obj["kind"] == "Pod" else "Completed"
    return {**obj, "status": {**obj["status"], "phase": phase}}
