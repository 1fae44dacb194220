"""Volume binding, volume zones and CSI limits against the obvious ones."""

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core.kube.placed import placed_pods
from pumice.core.objects.metadata import Object
from pumice.core.plugins.predicates.volume_binding import VolumeBinding
from pumice.core.plugins.predicates.volume_limits import VolumeLimits
from pumice.core.plugins.predicates.volume_zone import EPHEMERAL, VolumeZone
from pumice.core.session.reasons import FitFailure
from tests.core.kube import slow_volumes
from tests.core.kube.sessions import opened, put, take, task_named, texts
from tests.core.kube.stores import pod_using, storage_classes, stores
from tests.core.plugins.world import configuration, open_world
from tests.kit import node

if TYPE_CHECKING:
    from pumice.core.session.session import Session

Store = tuple[list[Object], list[Object], list[Object], list[list[str]]]
BY_CLASS = {one["metadata"]["name"]: one for one in storage_classes}


def open_store(store: Store) -> "Session":
    nodes, volumes, claims, uses = store
    pods = [pod_using(f"p{i}", used) for i, used in enumerate(uses)]
    return opened(*storage_classes, *nodes, *volumes, *claims, *pods)


@settings(max_examples=300)
@given(store=stores(), places=st.lists(st.integers(0, 2), min_size=2, max_size=2), undo=st.booleans())
def test_volume_binding_is_the_slow_one(store: Store, places: list[int], undo: bool) -> None:
    nodes, volumes, claims, uses = store
    session = open_store(store)
    binding = VolumeBinding(session)
    tasks = [task_named(session, f"a/p{i}") for i in range(3)]
    mine = [claim for name in uses[0] for claim in claims if claim["metadata"]["name"] == name]
    check = binding.prepare(session, tasks[0])

    def expect() -> None:
        promised, chosen = binding.promises.volumes, binding.promises.nodes
        expected = [slow_volumes.binding_reasons(mine, volumes, BY_CLASS, n, promised, chosen) for n in nodes]
        assert texts(session, check) == expected

    expect()
    before = texts(session, check)
    for task, row in zip(tasks[1:], places, strict=True):
        binding.reserve(task, row)
        expect()
    if undo:
        for task in tasks[1:]:
            binding.unreserve(task)
        assert texts(session, check) == before


@settings(max_examples=200)
@given(store=stores())
def test_volume_zone_is_the_slow_one(store: Store) -> None:
    nodes, volumes, claims, uses = store
    session = open_store(store)
    mine = [claim for name in uses[0] for claim in claims if claim["metadata"]["name"] == name]
    known = {volume["metadata"]["name"] for volume in volumes}
    task, zone = task_named(session, "a/p0"), VolumeZone()
    if any(one["spec"].get("volumeName") not in {None, *known} for one in mine):
        with pytest.raises(
            FitFailure, match=r'plugin VolumeZone pre-predicates failed persistentvolume "v\d" not found'
        ):
            zone.prepare(session, task)
        return
    elsewhere = [slow_volumes.elsewhere(mine, volumes, n) for n in nodes]
    assert texts(session, zone.prepare(session, task)) == [slow_volumes.ELSEWHERE if e else "" for e in elsewhere]


def claim(name: str, **spec: Any) -> Object:
    meta = {"name": name, "namespace": "a"}
    asked = {"resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "cloud"}
    return {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": asked | spec, "status": {}}


def storage_class(name: str, mode: str | None) -> Object:
    found: Object = {"kind": "StorageClass", "metadata": {"name": name}, "provisioner": "p"}
    return found if mode is None else found | {"volumeBindingMode": mode}


@pytest.mark.parametrize(
    ("objects", "zone", "binding"),
    [
        ([], 'persistentvolumeclaim "c" not found', 'persistentvolumeclaim "c" not found'),
        (
            [claim("c", storageClassName="at-once"), storage_class("at-once", "Immediate")],
            "PersistentVolume had no name",
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        (
            [claim("c", storageClassName="vague"), storage_class("vague", None)],
            'VolumeBindingMode not set for StorageClass "vague"',
            'VolumeBindingMode not set for StorageClass "vague"',
        ),
        (
            [claim("c", storageClassName="")],
            "PersistentVolumeClaim had no pv name and storageClass name",
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        (
            [claim("c", volumeName="gone") | {"status": {"phase": "Lost"}}],
            'persistentvolume "gone" not found',
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "gone"',
        ),
    ],
)
def test_what_fails_before_any_node_is_asked(objects: list[Object], zone: str, binding: str) -> None:
    session = opened(node("n0"), pod_using("p", ["c"]), *objects)
    task = task_named(session, "a/p")
    for node_filter, text in ((VolumeZone(), zone), (VolumeBinding(session), binding)):
        with pytest.raises(FitFailure) as failure:
            node_filter.prepare(session, task)
        assert failure.value.reason.text == f"plugin {node_filter.name} pre-predicates failed {text}"


def test_a_pod_without_claims_is_not_asked() -> None:
    session = opened(node("n0"), pod_using("p", []))
    task = task_named(session, "a/p")
    for node_filter in (VolumeZone(), VolumeBinding(session), VolumeLimits(placed_pods(session))):
        assert node_filter.prepare(session, task) is None
        assert node_filter.reads.concerns is not None
        assert not node_filter.reads.concerns(task.template)


def test_a_claim_that_nobody_can_provision_is_an_error() -> None:
    lost_class = [claim("c", storageClassName="cloud"), storage_class("cloud", "WaitForFirstConsumer")]
    session = opened(node("n0"), pod_using("p", ["c"]), *lost_class)
    binding = VolumeBinding(session)
    assert texts(session, binding.prepare(session, task_named(session, "a/p"))) == [""]
    assert binding.reserve(task_named(session, "a/p"), 0) is None
    assert binding.promises.nodes == {"a/c": "n0"}


def attached(name: str, handle: str) -> list[Object]:
    """A bound claim and its CSI volume."""
    volume: Object = {"kind": "PersistentVolume", "metadata": {"name": f"v-{name}"}}
    volume["spec"] = {"csi": {"driver": "csi.example.com", "volumeHandle": handle}}
    return [claim(name, volumeName=f"v-{name}"), volume]


def csi_node(name: str, limit: int) -> Object:
    driver = {"name": "csi.example.com", "allocatable": {"count": limit}}
    return {"kind": "CSINode", "metadata": {"name": name}, "spec": {"drivers": [driver]}}


def limits_story() -> "Session":
    volumes = [*attached("c0", "h0"), *attached("c1", "h1"), *attached("c2", "h1"), *attached("c3", "h3")]
    nodes = [node("n0"), node("n1"), node("n2")]
    pods = [pod_using("p0", ["c0", "c1"]), pod_using("p1", ["c0"]), pod_using("p2", ["c2"]), pod_using("p3", ["c3"])]
    return opened(*nodes, csi_node("n0", 1), csi_node("n1", 2), *volumes, *pods)


def test_csi_limits_count_each_volume_once_a_node() -> None:
    session = limits_story()
    limits = VolumeLimits(placed_pods(session))

    def answers(name: str) -> list[str]:
        return texts(session, limits.prepare(session, task_named(session, f"a/{name}")))

    assert answers("p0") == [slow_volumes.FULL, "", ""]
    for row in (0, 1, 2):
        put(session, task_named(session, "a/p1"), row)
    assert answers("p1") == ["", "", ""]  # its volume is there already
    assert answers("p3") == [slow_volumes.FULL, "", ""]
    assert answers("p0") == [slow_volumes.FULL, "", ""]
    put(session, task_named(session, "a/p2"), 1)
    assert answers("p0") == [slow_volumes.FULL, "", ""]  # c1 and c2 are one volume
    assert answers("p3") == [slow_volumes.FULL, slow_volumes.FULL, ""]
    take(session, task_named(session, "a/p1"), 0)
    assert answers("p3") == ["", slow_volumes.FULL, ""]


def test_volumes_attached_without_a_pod_count() -> None:
    attachment: Object = {"kind": "VolumeAttachment", "metadata": {"name": "x"}}
    attachment["spec"] = {"attacher": "csi.example.com", "nodeName": "n0", "source": {"persistentVolumeName": "v-c0"}}
    objects = [*attached("c0", "h0"), *attached("c1", "h1"), csi_node("n0", 1), attachment]
    session = opened(node("n0"), *objects, pod_using("p0", ["c0"]), pod_using("p1", ["c1"]))
    limits = VolumeLimits(placed_pods(session))
    assert texts(session, limits.prepare(session, task_named(session, "a/p1"))) == [slow_volumes.FULL]
    assert texts(session, limits.prepare(session, task_named(session, "a/p0"))) == [slow_volumes.FULL]
    put(session, task_named(session, "a/p0"), 0)
    assert texts(session, limits.prepare(session, task_named(session, "a/p0"))) == [""]


def test_a_missing_claim_refuses_every_node() -> None:
    session = opened(node("n0"), csi_node("n0", 1), pod_using("p", ["c"]))
    found = texts(session, VolumeLimits(placed_pods(session)).prepare(session, task_named(session, "a/p")))
    assert found == ['looking up PVC a/c: persistentvolumeclaim "c" not found']


def test_a_volume_attached_and_used_counts_once() -> None:
    attachment: Object = {"kind": "VolumeAttachment", "metadata": {"name": "x"}}
    attachment["spec"] = {"attacher": "csi.example.com", "nodeName": "n0", "source": {"persistentVolumeName": "v-c0"}}
    objects = [*attached("c0", "h0"), *attached("c1", "h1"), csi_node("n0", 2), attachment]
    session = opened(node("n0"), *objects, pod_using("p0", ["c0"]), pod_using("p1", ["c1"]))
    limits = VolumeLimits(placed_pods(session))
    put(session, task_named(session, "a/p0"), 0)
    assert texts(session, limits.prepare(session, task_named(session, "a/p1"))) == [""]


def local_volume(name: str, size: str, **labels: str) -> Object:
    spec = {"capacity": {"storage": size}, "storageClassName": "local"}
    meta = {"name": name, "labels": labels}
    return {"kind": "PersistentVolume", "metadata": meta, "spec": spec, "status": {"phase": "Available"}}


def local_claim(name: str, size: str) -> Object:
    return claim(name, storageClassName="local", resources={"requests": {"storage": size}})


def test_the_smallest_claim_takes_the_smallest_volume_that_will_do() -> None:
    volumes = [local_volume("v0", "9Gi"), local_volume("v1", "2Gi"), local_volume("v2", "3Gi")]
    claims = [local_claim("c0", "2Gi"), local_claim("c1", "1Gi")]
    session = opened(*storage_classes, node("n0"), *volumes, *claims, pod_using("p", ["c0", "c1"]))
    binding = VolumeBinding(session)
    binding.reserve(task_named(session, "a/p"), 0)
    assert binding.promises.volumes == {"v1": "a/c1", "v2": "a/c0"}


def test_a_promised_volume_is_for_its_claim_alone() -> None:
    claims = [local_claim("c0", "1Gi"), local_claim("c1", "1Gi")]
    pods = [pod_using("p", ["c0"]), pod_using("same", ["c0"]), pod_using("other", ["c1"])]
    session = opened(*storage_classes, node("n0"), local_volume("v0", "2Gi"), *claims, *pods)
    binding = VolumeBinding(session)
    binding.reserve(task_named(session, "a/p"), 0)
    found = [texts(session, binding.prepare(session, task_named(session, f"a/{name}"))) for name in ("same", "other")]
    assert found == [[""], [slow_volumes.NOTHING_TO_BIND]]


def test_bound_volumes_are_not_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    sorted_ones = set[str]()

    def noted(one: Object, other: Object) -> int:
        sorted_ones.update((one["metadata"]["name"], other["metadata"]["name"]))
        return 0

    monkeypatch.setattr("pumice.core.kube.volume_plan._by_capacity", noted)
    volumes = [local_volume(f"v{number}", "1Gi") for number in range(9)]
    for each in volumes[3:]:
        each["spec"]["claimRef"] = {"namespace": "a", "name": f"of-{each['metadata']['name']}"}
    pod = pod_using("p0", ["c"])
    session = opened(node("n0"), *storage_classes, *volumes, local_claim("c", "1Gi"), pod)
    binding, task = VolumeBinding(session), task_named(session, "a/p0")
    binding.prepare(session, task)
    binding.reserve(task, 0)
    assert sorted_ones <= {"v0", "v1", "v2"}
    assert binding.promised(task).bindings == (("v0", "a/c"),)


def test_a_node_that_says_nothing_of_its_zone_takes_volumes_of_any() -> None:
    zone = "topology.kubernetes.io/zone"
    volume = local_volume("v0", "1Gi") | {"metadata": {"name": "v0", "labels": {zone: "z0"}}}
    nodes = [node("n0"), node("n1", labels={zone: "z1"}), node("n2", labels={zone: "z0"})]
    session = opened(*nodes, volume, claim("c", volumeName="v0"), pod_using("p", ["c"]))
    found = texts(session, VolumeZone().prepare(session, task_named(session, "a/p")))
    assert found == ["", slow_volumes.ELSEWHERE, ""]


@pytest.mark.parametrize(("fix", "found"), [((), ""), ((EPHEMERAL,), slow_volumes.ELSEWHERE)])
def test_the_zone_of_an_ephemeral_volume_is_not_looked_at(fix: tuple[str, ...], found: str) -> None:
    """VolumeZone reads persistentVolumeClaim alone; VolumeBinding and the limits know the claims of both kinds."""
    zone = "topology.kubernetes.io/zone"
    volumes = [local_volume("v0", "1Gi", **{zone: "z0"}), local_volume("v1", "1Gi", **{zone: "z1"})]
    claims = [claim("p-e", volumeName="v0"), claim("c", volumeName="v1")]
    user = pod_using("p", ["c"])
    user["spec"]["volumes"].append({"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}})
    session = open_world(
        configuration(["predicates"], fix=fix), node("n0", labels={zone: "z1"}), *volumes, *claims, user
    )
    check = VolumeZone().prepare(session, task_named(session, "a/p"))
    assert texts(session, check) == [found]
