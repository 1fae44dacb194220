"""Hypothesis strategies for nodes, volumes and claims in which little is to be had."""

from typing import Any

from hypothesis import strategies as st

from pumice.core.objects.metadata import Object
from tests.core.kube.clusters import expression
from tests.core.kube.slow_volumes import BOUND, SELECTED

NODES = st.sampled_from(["n0", "n1", "n2"])
ZONES = st.sampled_from(["z0", "z1"])
SIZES = st.sampled_from(["1Gi", "2Gi", "3Gi"])
CLASSES = st.sampled_from(["local", "cloud", "zonal"])
ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"

ONLY_Z0: list[Object] = [{"matchLabelExpressions": [{"key": ZONE, "values": ["z0"]}]}]


def storage_class(name: str, provisioner: str, **more: Any) -> Object:
    found: Object = {"kind": "StorageClass", "metadata": {"name": name}, "provisioner": provisioner}
    return found | {"volumeBindingMode": "WaitForFirstConsumer"} | more


storage_classes: list[Object] = [
    storage_class("local", "kubernetes.io/no-provisioner"),
    storage_class("cloud", "csi.example.com"),
    storage_class("zonal", "csi.example.com", allowedTopologies=ONLY_Z0),
]


@st.composite
def node_objects(draw: st.DrawFn, name: str) -> Object:
    labels = {"kubernetes.io/hostname": name, draw(st.sampled_from([ZONE, ZONE, OLD_ZONE, "other"])): draw(ZONES)}
    status = {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"}}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {}, "status": status}


@st.composite
def volume_objects(draw: st.DrawFn, name: str) -> Object:
    spec: Object = {"capacity": {"storage": draw(SIZES)}, "storageClassName": draw(CLASSES), "accessModes": ["RWO"]}
    place = draw(st.integers(0, 3))
    if place:
        on = (
            expression("kubernetes.io/hostname", "In", [draw(NODES)])
            if place < 3
            else expression(ZONE, "In", [draw(ZONES)])
        )
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [on]}]}}
    if draw(st.integers(0, 4)) == 0:
        spec["claimRef"] = {"namespace": "a", "name": draw(st.sampled_from(["c0", "c1", "other"]))}
    if draw(st.integers(0, 4)) == 0:
        spec["volumeMode"] = "Block"
    labels = {draw(st.sampled_from([ZONE, OLD_ZONE])): draw(st.sampled_from(["z0", "z1", "z0__z1"]))}
    phase = draw(st.sampled_from(["Available", "Available", "Available", "Released"]))
    return {
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels if draw(st.booleans()) else {}},
        "spec": spec,
        "status": {"phase": phase},
    }


@st.composite
def claim_objects(draw: st.DrawFn, name: str) -> Object:
    spec: Object = {"resources": {"requests": {"storage": draw(SIZES)}}, "storageClassName": draw(CLASSES)}
    spec["accessModes"] = draw(st.sampled_from([["RWO"], ["RWO"], ["RWX"], []]))
    marks: dict[str, str] = {}
    state = draw(st.integers(0, 6))
    if state == 0:
        spec["volumeName"], marks[BOUND] = draw(st.sampled_from(["v0", "v1", "v2", "v9"])), "yes"
    elif state == 1:
        marks[SELECTED] = draw(NODES)
    meta = {"name": name, "namespace": "a", "annotations": marks}
    return {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec, "status": {}}


def pod_using(name: str, claims: list[str]) -> Object:
    volumes: list[Object] = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
    spec = {"containers": [{"name": "c"}], "volumes": volumes}
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "a"}, "spec": spec, "status": {"phase": "Pending"}}


some_claims: st.SearchStrategy[list[str]] = st.lists(
    st.sampled_from(["c0", "c1", "c2", "c3"]), unique=True, min_size=1, max_size=3
)


@st.composite
def stores(draw: st.DrawFn) -> tuple[list[Object], list[Object], list[Object], list[list[str]]]:
    """Nodes n0 …, volumes v0 …, claims c0 …, and the claims of each of three pods."""
    nodes = [draw(node_objects(f"n{i}")) for i in range(3)]
    volumes = [draw(volume_objects(f"v{i}")) for i in range(draw(st.integers(0, 6)))]
    claims = [draw(claim_objects(f"c{i}")) for i in range(4)]
    return nodes, volumes, claims, [draw(some_claims) for _ in range(3)]
