"""The openb trace on deviceshare's cards: objects as they are read, and published runs to the second decimal."""

from __future__ import annotations

import csv
import gzip
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from core.cycle import run_action
from core.plugins import PLUGINS
from pumice.load.openb import OpenbRow
from pumice.load.openb_cards import card_node, card_pod, class_of, typical_pods
from tests.core.plugins.world import configuration, open_world
from tests.kit import queue

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from core.session.session import Session
    from tests.core.plugins.world import Option

Object = dict[str, Any]
TRACES = Path(__file__).parents[3].parent / "shared" / "traces" / "openb"
BINPACK = {"deviceshare.VGPUEnable": True, "deviceshare.SchedulePolicy": "binpack"}


def rows(name: str) -> list[OpenbRow]:
    path = TRACES / name
    with gzip.open(f"{path}.gz", "rt") if not path.exists() else path.open() as file:
        return [OpenbRow(row, path, line) for line, row in enumerate(csv.DictReader(file), 2)]


def order(trace: str, seed: int) -> dict[str, list[int]]:
    with gzip.open(TRACES / "orders" / f"{trace}.txt.gz", "rt") as file:
        lines = [line.split() for line in file]
    return {words[2]: list(map(int, words[3:])) for words in lines if words[1] == str(seed)}


def published(trace: str, policy: str, seed: int) -> list[float]:
    with gzip.open(TRACES / "analysis_allo_discrete.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            if (row["workload"], row["seed"]) == (f"openb_pod_list_{trace}", str(seed)) and policy in row["sc_policy"]:
                return [float(row[str(x)]) for x in range(131)]
    raise AssertionError(policy)


def arrivals(pods: Sequence[OpenbRow], drawn: Sequence[int]) -> Iterator[Object]:
    """The pods in their order, each in a group of its own."""
    for place, index in enumerate(drawn):
        pod = card_pod(pods[index], f"p{place:05}", place)
        meta = pod["metadata"]
        meta["annotations"]["scheduling.k8s.io/group-name"] = meta["name"]
        named = {name: meta[name] for name in ("name", "namespace", "creationTimestamp")}
        spec, status = {"minMember": 1, "queue": "default"}, {"phase": "Inqueue"}
        yield {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": named,
            "spec": spec,
            "status": status,
        }
        yield pod


def curve(session: Session, pods: Sequence[OpenbRow], drawn: Sequence[int], capacity: int) -> list[float]:
    """Allocated by arrived demand, both in per cent of the capacity."""
    bound = {bind.name for bind in session.binds}
    arrived = allocated = 0
    found: dict[int, list[float]] = defaultdict(list)
    for place, index in enumerate(drawn):
        pod = class_of(pods[index])
        arrived += pod.cards * pod.milli
        allocated += pod.cards * pod.milli * (f"p{place:05}" in bound)
        found[round(100 * arrived / capacity)].append(round(100 * allocated / capacity, 2))
    near = [found.get(x) or [y for beside in (x - 1, x, x + 1) for y in found.get(beside, ())] for x in range(131)]
    return [round(sum(each) / len(each), 2) for each in near]


@pytest.mark.slow
@pytest.mark.skipif(not TRACES.exists(), reason="the openb trace is not beside the repository")
@pytest.mark.parametrize("policy", ["FGD", "BestFit", "DotProd", "GpuClustering", "GpuPacking"])
def test_a_published_run_comes_out(policy: str) -> None:
    trace, seed = "multigpu50", 42
    drawn, nodes, pods = order(trace, seed), rows("openb_node_list_gpu_node.csv"), rows(f"openb_pod_list_{trace}.csv")
    name = policy.lower()
    typical = typical_pods(Counter(map(class_of, pods)))
    arguments = {"fgd.typicalPods": typical} if name == "fgd" else {}
    tier: list[Option] = ["predicates", {"name": "deviceshare", "arguments": BINPACK}]
    assert name in PLUGINS
    session = open_world(
        configuration([*tier, {"name": name, "arguments": arguments}]),
        queue("default"),
        [card_node(nodes[index], f"n{place:05}") for place, index in enumerate(drawn["nodes"])],
        list(arrivals(pods, drawn["pods"])),
    )
    run_action(session, "allocate")
    capacity = 1000 * sum(row.number("gpu") for row in nodes)
    ours, theirs = curve(session, pods, drawn["pods"], capacity), published(trace, policy, seed)
    assert max(abs(one - other) for one, other in zip(ours, theirs, strict=True)) < 0.011


def test_a_node_registers_its_cards_and_a_pod_asks_for_shares() -> None:
    columns = {"cpu_milli": "64000", "memory_mib": "1024", "gpu": "2", "model": "T4"}
    node = card_node(OpenbRow(columns, Path("n"), 2), "n0")
    assert node["metadata"]["annotations"]["volcano.sh/node-vgpu-register"].count("NVIDIA-T4") == 2
    assert node["status"]["allocatable"]["volcano.sh/vgpu-memory"] == "2000"
    asks = {"cpu_milli": "10", "memory_mib": "1", "num_gpu": "1", "gpu_milli": "460", "gpu_spec": "T4|P100"}
    pod = card_pod(OpenbRow(asks, Path("p"), 2), "p0", 60)
    assert pod["metadata"]["annotations"] == {"nvidia.com/use-gputype": "T4,P100"}
    assert pod["metadata"]["creationTimestamp"] == "2020-01-01T00:01:00Z"
    limits = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "460"}
    assert pod["spec"]["containers"][0]["resources"]["limits"] == limits
    plain = card_pod(OpenbRow({**asks, "num_gpu": "0", "gpu_spec": ""}, Path("p"), 2), "p0", 0)
    assert (plain["metadata"]["annotations"], plain["spec"]["containers"][0]["resources"]["limits"]) == ({}, {})
