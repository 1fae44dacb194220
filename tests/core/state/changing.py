"""A small cluster of every sort of object that columns are derived from, and what may happen to it."""

from __future__ import annotations

from hypothesis import strategies as st

from pumice.core.objects.metadata import Object
from pumice.core.objects.node_usage import KIND as METRICS
from tests.kit import node, node_affinity, pod, pod_group, queue, taint, toleration
from tests.kit.hyper_nodes import hyper_node

NOW = "2026-01-01T12:00:00Z"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def a_node(number: int, variant: int) -> Object:
    found = node(
        f"n{number}",
        cpu=("8", "4")[variant % 2],
        gpus=(0, 0, 2)[variant % 3],
        labels={"zone": f"z{variant % 2}", "volcano.sh/nodegroup-name": f"g{variant % 3}"},
        taints=[taint("soft", effect="PreferNoSchedule"), taint("hard")][: variant % 3],
        unschedulable=variant == 5,
        ready=variant != 4,
    )
    found["status"]["images"] = [{"names": ["image:1"], "sizeBytes": 400_000_000 * variant}]
    return found


def a_queue(number: int, variant: int) -> Object:
    found = queue(
        f"q{number}",
        weight=1 + variant % 2,
        guarantee={"cpu": str(variant)},
        capability={"cpu": "20", f"example.com/{variant}": "1"},
    )
    found["spec"]["affinity"] = {"nodeGroupAffinity": {REQUIRED: ["g0", "g1", "g2"]}}
    found["status"]["allocated"] = {"cpu": str(variant)}
    return found


def a_metrics(number: int, variant: int) -> Object:
    usage = {"cpu": str(variant), "memory": "1Gi"}
    return {"kind": METRICS, "metadata": {"name": f"n{number}"}, "timestamp": NOW, "usage": usage}


def a_csi_node(number: int, variant: int) -> Object:
    """What a node can attach is allocatable there."""
    driver = {"name": "disks", "allocatable": {"count": variant}}
    return {"kind": "CSINode", "metadata": {"name": f"n{number}"}, "spec": {"drivers": [driver][: variant % 3]}}


def a_rack(number: int, variant: int) -> Object:
    return hyper_node(f"r{number}", 1, nodes=[f"n{number}", f"n{variant}"][: 1 + (variant > 3)])


def a_group(number: int, variant: int) -> Object:
    return pod_group(f"j{number}", queue=f"q{variant % 2}", phase=("Pending", "Inqueue")[variant % 2])


def a_pod(number: int, variant: int) -> Object:
    affinity = [None, node_affinity("zone", "z0"), node_affinity("zone", "z1", weight=3)][variant % 3]
    found = pod(
        f"p{number}",
        group=f"j{number % 2}",
        node=f"n{number % 3}" if variant > 2 else None,
        gpus=variant % 2,
        extra={"example.com/card": "1"} if variant == 5 else None,
        affinity=affinity,
        tolerations=[toleration()] if variant % 2 else (),
        host_ports=[80] if variant == 3 else (),
        labels={"app": f"a{variant}"},
    )
    found["spec"]["containers"][0]["image"] = "image:1"
    if variant % 3 == 0:
        spread: Object = {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {},
        }
        found["spec"]["topologySpreadConstraints"] = [spread]
    if variant % 2:
        term = {"labelSelector": {"matchLabels": {"app": "a4"}}, "topologyKey": "zone"}
        found["spec"]["affinity"] = {**(affinity or {}), "podAntiAffinity": {REQUIRED: [term]}}
    return found


MAKERS = [a_node, a_node, a_node, a_queue, a_metrics, a_csi_node, a_rack, a_group, a_pod, a_pod, a_pod]
EVENTS = st.tuples(
    st.sampled_from(MAKERS), st.integers(0, 3), st.integers(0, 5), st.sampled_from(["MODIFIED", "MODIFIED", "DELETED"])
)
BEGINNING = [
    *(a_node(number, number) for number in range(3)),
    queue("root"),
    *(a_queue(number, number) for number in range(2)),
    *(a_group(number, 1) for number in range(2)),
    *(a_pod(number, number) for number in range(6)),
]
