"""On which node volumes and devices are reserved, and that a refused pod leaves no trace."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.core.kube.devices import DeviceId
from pumice.core.objects.metadata import Object
from pumice.core.session.session import Session
from tests.core.plugins.world import configuration, open_world, task_of
from tests.kit import gang, node, queue

FIX = ("promises-reserve",)
NOTHING: set[str] = set()
STORAGE_CLASS: Object = {
    "kind": "StorageClass",
    "metadata": {"name": "local"},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}
DEVICE_CLASS: Object = {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}


def volume(name: str, on: str) -> Object:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}]}
    spec: Object = {"capacity": {"storage": "1Gi"}, "storageClassName": "local"}
    spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    return {"kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec, "status": {"phase": "Available"}}


def slice_on(name: str) -> Object:
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d", "pool": pool, "nodeName": name, "devices": [{"name": "card"}]}
    return {"kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def session_with(kind: str, fix: tuple[str, ...]) -> Session:
    """Job j has one pod, which asks for a claim of the kind; both nodes can serve it."""
    meta = {"name": "c", "namespace": "default"}
    group, member = gang("j", queue="q", pods=1, phase="Inqueue")
    spec: dict[str, Any] = member["spec"]
    if kind == "volume":
        asked = {"resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "local"}
        objects = [STORAGE_CLASS, volume("v0", "n0"), volume("v1", "n1")]
        objects.append({"kind": "PersistentVolumeClaim", "metadata": meta, "spec": asked, "status": {}})
        spec["volumes"] = [{"name": "c", "persistentVolumeClaim": {"claimName": "c"}}]
    else:
        requests = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
        objects = [DEVICE_CLASS, slice_on("n0"), slice_on("n1")]
        objects.append({"kind": "ResourceClaim", "metadata": meta, "spec": {"devices": {"requests": requests}}})
        spec["resourceClaims"] = [{"name": "c", "resourceClaimName": "c"}]
    nodes = [node(name, labels={"kubernetes.io/hostname": name}) for name in ("n0", "n1")]
    return open_world(configuration(["gang"], ["predicates"], fix=fix), nodes, queue("q"), objects, group, member)


def reserving(session: Session) -> Any:
    """VolumeBinding and DynamicResources: the last filters."""
    return session.points.predicate.rules[0][-2:]


def reserved(session: Session) -> set[str]:
    """The volumes and the devices' nodes that are reserved."""
    volumes, devices = reserving(session)
    given: list[DeviceId] = [one.device for each in devices.reserved.values() for one in each]
    return {*volumes.promises.volumes, *(device.pool for device in given)}


@pytest.mark.parametrize("kind", ["volume", "device"])
@pytest.mark.parametrize("fix", [(), FIX])
def test_an_allocation_reserves_where_it_is(kind: str, fix: tuple[str, ...]) -> None:
    session = session_with(kind, fix)
    statement = session.statement()
    assert statement.allocate(task_of(session, "j-0"), 1)
    assert reserved(session) == {"v1" if kind == "volume" else "n1"}
    statement.discard()
    assert reserved(session) == set()


@pytest.mark.parametrize(
    ("kind", "fix", "promised", "found"),
    [
        ("volume", (), True, NOTHING),
        ("volume", FIX, True, {"v1"}),
        ("device", (), False, NOTHING),
        ("device", FIX, True, {"n1"}),
    ],
)
def test_a_promise_reserves_only_when_mended(kind: str, fix: tuple[str, ...], promised: bool, found: set[str]) -> None:
    session = session_with(kind, fix)
    assert session.statement().pipeline(task_of(session, "j-0"), 1, evicted=False) is promised
    assert reserved(session) == found


@pytest.mark.parametrize(
    ("kind", "fix", "found"),
    [("volume", (), "v0"), ("volume", FIX, "v1"), ("device", (), "n0"), ("device", FIX, "n1")],
)
def test_the_node_of_an_undone_trial_is_still_named_unless_mended(kind: str, fix: tuple[str, ...], found: str) -> None:
    session = session_with(kind, fix)
    task, trial = task_of(session, "j-0"), session.statement()
    assert trial.allocate(task, 0)
    trial.discard()
    assert session.statement().pipeline(task, 1, evicted=False)
    assert reserved(session) == {found}


def test_a_pod_that_was_refused_leaves_no_trace_in_node_info() -> None:
    session = session_with("device", ())
    kube = session.kube
    before = [kube.pods.tobytes(), kube.requested.tobytes(), kube.nonzero.tobytes()]
    assert not session.statement().pipeline(task_of(session, "j-0"), 1, evicted=False)
    assert [kube.pods.tobytes(), kube.requested.tobytes(), kube.nonzero.tobytes()] == before
