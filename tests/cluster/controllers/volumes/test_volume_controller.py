"""The volume controller's machine on a store: claims get volumes, volumes of claims that are gone are let go."""

from __future__ import annotations

import pytest

from pumice.cluster.controllers.volumes.machine import VolumeMachine
from pumice.core.kube.storage import is_for
from pumice.core.messages.commands import ApiRequest, Patch, Update
from pumice.core.messages.replies import ApiReply
from pumice.core.objects.metadata import Object
from pumice.storage.codec import pack
from tests.actors.cluster import Cluster
from tests.kit.storage import claim, local_class, storage_class, volume

NODE = "volume.kubernetes.io/selected-node"


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster(VolumeMachine())
    for each in (
        local_class(),
        local_class("other"),
        storage_class("cloud"),
        storage_class("now", waits=False),
        storage_class("fixed", waits=False, provisioner="kubernetes.io/no-provisioner"),
    ):
        made.create(each)
    return made


def phases(cluster: Cluster, kind: str) -> dict[str, str]:
    return {obj["metadata"]["name"]: obj.get("status", {}).get("phase", "") for obj in cluster.all(kind)}


def bound_to(cluster: Cluster, name: str) -> str:
    found = cluster.get("PersistentVolumeClaim", name)
    marked = "pv.kubernetes.io/bind-completed" in found["metadata"].get("annotations", {})
    return str(found["spec"].get("volumeName", "")) if marked else ""


def test_an_immediate_claim_gets_the_smallest_volume_that_will_do(cluster: Cluster) -> None:
    for name, size, cls in (("a", "5Gi", "fixed"), ("b", "2Gi", "fixed"), ("c", "1Gi", "fixed"), ("d", "2Gi", "other")):
        cluster.create(volume(name, size=size, cls=cls))
    cluster.create(claim("c1", size="1500Mi", cls="fixed"))
    cluster.settle()
    assert bound_to(cluster, "c1") == "b"
    assert phases(cluster, "PersistentVolumeClaim") == {"c1": "Bound"}
    assert phases(cluster, "PersistentVolume") == {"a": "Available", "b": "Bound", "c": "Available", "d": "Available"}


def test_two_claims_never_get_one_volume(cluster: Cluster) -> None:
    cluster.create(claim("c1", cls="fixed"))
    cluster.create(claim("c2", cls="fixed"))
    cluster.create(volume("a", cls="fixed"))
    cluster.settle()
    assert sorted([bound_to(cluster, "c1"), bound_to(cluster, "c2")]) == ["", "a"]
    cluster.create(volume("b", cls="fixed"))
    cluster.settle()
    assert sorted([bound_to(cluster, "c1"), bound_to(cluster, "c2")]) == ["a", "b"]


def test_a_claim_that_waits_for_its_consumer_waits(cluster: Cluster) -> None:
    cluster.create(volume("a"))
    cluster.create(claim("c1"))
    cluster.create(claim("c2", cls="cloud"))
    cluster.settle()
    assert phases(cluster, "PersistentVolumeClaim") == {"c1": "Pending", "c2": "Pending"}
    kept = {"namespace": "default", "name": "c1", "uid": cluster.get("PersistentVolumeClaim", "c1")["metadata"]["uid"]}
    cluster.patch("PersistentVolume", "a", {"spec": {"claimRef": kept}}, "")
    cluster.patch("PersistentVolumeClaim", "c2", {"metadata": {"annotations": {NODE: "n1"}}})
    cluster.settle()
    assert bound_to(cluster, "c1") == "a"
    assert bound_to(cluster, "c2").startswith("pvc-")


def test_a_volume_is_made_as_the_claim_asks(cluster: Cluster) -> None:
    cluster.create(claim("c", size="7Gi", cls="now"))
    cluster.settle()
    (made,) = cluster.all("PersistentVolume")
    assert made["spec"]["capacity"] == {"storage": "7Gi"}
    assert made["spec"]["storageClassName"] == "now"
    assert made["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == "csi.example.com"
    assert bound_to(cluster, "c") == made["metadata"]["name"]


@pytest.mark.parametrize(("policy", "left"), [("Delete", {}), ("Retain", {"a": "Released"})])
def test_when_the_claim_goes_the_policy_decides_about_its_volume(
    cluster: Cluster, policy: str, left: dict[str, str]
) -> None:
    cluster.create(volume("a", cls="fixed", persistentVolumeReclaimPolicy=policy))
    cluster.create(claim("c", cls="fixed"))
    cluster.settle()
    assert bound_to(cluster, "c") == "a"
    cluster.delete("PersistentVolumeClaim", "c")
    cluster.settle()
    assert phases(cluster, "PersistentVolume") == left
    cluster.create(claim("c", cls="fixed"))  # a namesake has no right to the old one
    cluster.settle()
    assert bound_to(cluster, "c") == ""


def test_a_claim_whose_volume_is_gone_is_lost(cluster: Cluster) -> None:
    cluster.create(volume("a", cls="fixed"))
    cluster.create(claim("c", cls="fixed"))
    cluster.settle()
    cluster.delete("PersistentVolume", "a", "")
    cluster.settle()
    assert phases(cluster, "PersistentVolumeClaim") == {"c": "Lost"}


def test_a_claim_may_name_its_volume_and_a_volume_its_claim(cluster: Cluster) -> None:
    cluster.create(volume("a", claimRef={"namespace": "default", "name": "meant"}))
    cluster.create(volume("b"))
    cluster.create(claim("meant"))
    cluster.create(claim("names", volumeName="b"))
    cluster.settle()
    assert (bound_to(cluster, "meant"), bound_to(cluster, "names")) == ("a", "b")


def test_a_volume_that_changed_in_between_is_read_again(cluster: Cluster) -> None:
    cluster.create(volume("a", cls="fixed"))
    cluster.create(claim("c", cls="fixed"))
    ask, met = cluster.ask, list[ApiRequest]()

    def raced(request: ApiRequest) -> ApiReply:
        if isinstance(request, Update) and not met:
            met.append(request)
            ask(Patch("PersistentVolume", "", "a", pack({"metadata": {"labels": {"touched": "1"}}})))
        return ask(request)

    setattr(cluster, "ask", raced)  # noqa: B010
    cluster.settle()
    assert bound_to(cluster, "c") == "a"


def test_a_machine_that_starts_anew_has_nothing_to_do(cluster: Cluster) -> None:
    cluster.create(volume("a", cls="fixed"))
    cluster.create(claim("c", cls="fixed"))
    cluster.create(claim("made", cls="now"))
    cluster.settle()
    before = cluster.store.revision
    cluster.restart(VolumeMachine())
    cluster.settle()
    assert cluster.store.revision == before


def test_volumes_of_other_claims_are_not_looked_at(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        cluster.create(claim(f"c{number}", cls="now"))
    cluster.settle()
    looked = list[str]()

    def noted(volume: Object, of: Object, promised: str | None) -> bool:
        looked.append(volume["metadata"]["name"])
        return is_for(volume, of, promised)

    monkeypatch.setattr("pumice.cluster.controllers.volumes.machine.is_for", noted)
    cluster.create(claim("new", cls="now"))
    cluster.settle()
    assert set(looked) <= {bound_to(cluster, "new")}
