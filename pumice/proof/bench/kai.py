# SPDX-License-Identifier: Apache-2.0
"""`kai`: the rows of KAI's scale tests that ask for things Volcano does: jobs of GPUs on nodes of eight.

KAI measures them in a cluster with an API server and simulated nodes, from the first job handed in until the last pod
runs; here they are cycles of the core, with what they decided. Consolidation (Volcano moves no running pods) and the
NCCL mix (its times are those of the pods) are not among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from pumice.core.configuration import parse_scheduler_config
from pumice.core.objects.metadata import Object
from pumice.proof.bench import cluster
from pumice.proof.bench.figures import Advance, Parameters, Samples, settled
from pumice.proof.bench.rounds import Rounds
from pumice.proof.bench.topology import hyper_nodes

DEFAULTS: Final = Parameters(nodes=500, runs=3)
GPU: Final = "nvidia.com/gpu"
A_NODE: Final = 8
MOST_CYCLES: Final = 2_000
LOTS: Final = 10
"""Parts in which jobs are handed in where submission goes on."""
GANG_NODES: Final = 512
CONFIG: Final = """\
actions: "enqueue, allocate, backfill, reclaim"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
  - name: capacity
  - name: binpack
    arguments:
      binpack.resources: nvidia.com/gpu
  - name: network-topology-aware
configurations:
- name: pumice
  arguments:
    percentageOfNodesToFind: 100
"""


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure processor seconds of each row, from the jobs handed in until all pods are bound: `ROW_s`."""
    rows = rows_of(parameters.nodes)
    for _ in range(parameters.runs):
        for name, row in rows.items():
            with settled():
                samples.add(f"{name}_s", row(), "s")
        advance(1)


def rows_of(nodes: int) -> dict[str, Callable[[], float]]:
    """Return the rows by name; each returns its processor seconds."""
    gpus = nodes * A_NODE
    return {
        "fill": lambda: placed(nodes, jobs(gpus, 1, 1)),
        "fill_while_submitting": lambda: placed(nodes, jobs(gpus, 1, 1), lots=LOTS),
        "fill_beside_waiting": lambda: placed(nodes, jobs(gpus + gpus // 10, 1, 1), pods=gpus),
        "gang": lambda: placed(gang_nodes(nodes), jobs(1, gang_nodes(nodes), A_NODE)),
        "gang_preferring_a_rack": lambda: placed(gang_nodes(nodes), jobs(1, gang_nodes(nodes), A_NODE, soft=True)),
        "known_unschedulable": lambda: refused(nodes),
        "reclaim_one": lambda: reclaimed(nodes, jobs(1, 1, 1)),
        "reclaim_single_gpus": lambda: reclaimed(nodes, jobs(gpus, 1, 1)),
        "reclaim_gangs": lambda: reclaimed(nodes, jobs(max(nodes // 10, 1), min(10, nodes), A_NODE)),
        "reclaim_half": lambda: reclaimed(nodes, jobs(1, max(nodes // 2, 1), A_NODE)),
        "reclaim_all": lambda: reclaimed(nodes, jobs(1, nodes, A_NODE)),
    }


def gang_nodes(nodes: int) -> int:
    """Return the nodes of the rows with one large gang."""
    return GANG_NODES if nodes == DEFAULTS.nodes else nodes


def placed(nodes: int, work: list[Object], *, pods: int = 0, lots: int = 1) -> float:
    """Return the seconds until `pods` (0: all) of the work are bound in an empty cluster; it comes in so many lots."""
    rounds = Rounds(parse_scheduler_config(CONFIG, source="bench"), clean(nodes))
    step = -(-len(work) // lots)
    for first in range(0, len(work), step):
        rounds.add(work[first : first + step])
        rounds.cycle()
    wanted = pods or _pods(work)
    if rounds.bound < wanted:
        rounds.until_bound(wanted, MOST_CYCLES)
    return rounds.cpu_s


def refused(nodes: int) -> float:
    """Return the seconds until a gang for 80 GPUs gets the answer that a full cluster has no room for it."""
    rounds = full(nodes)
    rounds.add(jobs(1, 10, A_NODE, queue="q0", first=1_000_000))
    for _ in range(MOST_CYCLES):
        result = rounds.cycle()
        if any(one.name == _name(1_000_000) and one.conditions for one in result.pod_groups):
            return rounds.cpu_s
    raise RuntimeError("the gang got no answer that it cannot start")


def reclaimed(nodes: int, work: list[Object]) -> float:
    """Return the seconds until work of a queue that deserves everything runs in place of another's."""
    rounds = full(nodes)
    rounds.add(work)
    rounds.until_bound(_pods(work), MOST_CYCLES)
    return rounds.cpu_s


def full(nodes: int) -> Rounds:
    """Return a cluster in which single GPUs of the other queue take all there are."""
    held = jobs(nodes * A_NODE, 1, 1, queue="q0", first=2_000_000)
    for place, obj in enumerate(held):
        if obj["kind"] == "Pod":
            obj["spec"]["nodeName"] = f"n{place // 2 // A_NODE:05d}"
        obj["status"]["phase"] = "Running"
    return Rounds(parse_scheduler_config(CONFIG, source="bench"), [*clean(nodes), *held])


def clean(nodes: int) -> Iterator[Object]:
    """Yield nodes of eight GPUs in racks, a queue that deserves nothing, and one that deserves all of them."""
    yield from (_queue("q0", 0), _queue("q1", nodes * A_NODE))
    yield from hyper_nodes(nodes)
    for node in cluster.nodes(nodes):
        amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: str(A_NODE)}
        yield {**node, "status": {**node["status"], "allocatable": amounts, "capacity": amounts}}


def _queue(name: str, gpus: int) -> Object:
    queue = next(iter(cluster.queues(1)))
    deserved = {"cpu": str(8 * gpus), "memory": "100Ti" if gpus else "0", GPU: str(gpus)}
    spec = {"weight": 1, "reclaimable": True, "deserved": deserved}
    return {**queue, "metadata": {**queue["metadata"], "name": name}, "spec": spec}


def jobs(count: int, pods: int, gpus: int, *, soft: bool = False, queue: str = "q1", first: int = 0) -> list[Object]:
    """Return gangs of so many pods of so many GPUs; `soft`: each prefers one rack."""
    made: list[Object] = []
    for number in range(first, first + count):
        group = cluster.pod_group(number, pods, "Pending")
        group["metadata"]["name"] = name = _name(number)
        group["spec"]["queue"] = queue
        if soft:
            group["spec"]["networkTopology"] = {"mode": "soft", "highestTierAllowed": 1}
        made.append(group)
        for index in range(pods):
            pod = cluster.pod(number, index)
            notes = {"scheduling.k8s.io/group-name": name, "volcano.sh/preemptable": "true"}
            pod["metadata"] = {**pod["metadata"], "name": f"{name}-{index}", "annotations": notes}
            pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "1", GPU: str(gpus)}
            made.append(pod)
    return made


def _name(number: int) -> str:
    return f"g{number:07d}"


def _pods(work: list[Object]) -> int:
    return sum(obj["kind"] == "Pod" for obj in work)
