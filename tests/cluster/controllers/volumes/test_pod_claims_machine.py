"""Claims that pods bring along: they come, the pod is told their names, and they go."""

from __future__ import annotations

import pytest

from pumice.cluster.controllers.volumes.pod_claims import POD_CLAIM, PodClaimsMachine
from pumice.core.messages.commands import ApiRequest, Create
from pumice.core.messages.replies import ApiReply, Refused
from tests.actors.cluster import Cluster
from tests.kit.pods import pod
from tests.kit.storage import claim, claim_template, device_claim, with_ephemeral, with_templates


@pytest.fixture
def cluster() -> Cluster:
    return Cluster(PodClaimsMachine())


def told(cluster: Cluster, name: str) -> dict[str, str]:
    statuses: list[dict[str, str]] = cluster.get("Pod", name)["status"].get("resourceClaimStatuses") or []
    return {each["name"]: each["resourceClaimName"] for each in statuses}


def test_an_ephemeral_volume_gets_a_claim_that_goes_with_the_pod(cluster: Cluster) -> None:
    made = cluster.create(with_ephemeral(pod("p"), "scratch", size="2Gi", labels={"a": "b"}))
    cluster.settle()
    found = cluster.get("PersistentVolumeClaim", "p-scratch")
    assert found["spec"]["resources"] == {"requests": {"storage": "2Gi"}}
    assert found["metadata"]["labels"] == {"a": "b"}
    [owner] = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Pod", made["metadata"]["uid"], True)
    cluster.delete("Pod", "p", grace_s=0)
    cluster.settle()
    assert cluster.all("PersistentVolumeClaim") == []


def test_a_claim_of_that_name_that_is_somebody_elses_is_left_alone(cluster: Cluster) -> None:
    cluster.create(claim("p-scratch", size="7Gi"))
    cluster.create(with_ephemeral(pod("p"), "scratch"))
    cluster.settle()
    [found] = cluster.all("PersistentVolumeClaim")
    assert found["spec"]["resources"]["requests"] == {"storage": "7Gi"}


def test_a_claim_that_was_lost_is_made_again(cluster: Cluster) -> None:
    cluster.create(claim_template("t"))
    cluster.create(with_templates(with_ephemeral(pod("p"), "scratch"), "t"))
    cluster.settle()
    before = told(cluster, "p")["d0"]
    cluster.delete("PersistentVolumeClaim", "p-scratch")
    cluster.delete("ResourceClaim", before)
    cluster.settle()
    assert cluster.exists("PersistentVolumeClaim", "p-scratch")
    after = told(cluster, "p")["d0"]
    assert after != before
    assert cluster.exists("ResourceClaim", after)


def test_every_pod_has_claims_of_its_own_from_a_template(cluster: Cluster) -> None:
    for name in ("p1", "p2"):
        cluster.create(with_templates(pod(name), "t", "t"))
    cluster.settle()
    assert cluster.all("ResourceClaim") == [], "there is no template yet"
    cluster.create(claim_template("t", count=3, labels={"a": "b"}))
    cluster.settle()
    names = [name for pod_name in ("p1", "p2") for name in told(cluster, pod_name).values()]
    assert sorted(names) == sorted(found["metadata"]["name"] for found in cluster.all("ResourceClaim"))
    assert len(set(names)) == 4
    found = cluster.get("ResourceClaim", told(cluster, "p1")["d1"])
    assert found["metadata"]["name"].startswith("p1-d1-")
    assert found["metadata"]["annotations"] == {POD_CLAIM: "d1"}
    assert found["metadata"]["labels"] == {"a": "b"}
    assert found["spec"]["devices"]["requests"][0]["exactly"]["count"] == 3


def test_claims_from_templates_go_when_the_pod_has_ended_and_others_stay(cluster: Cluster) -> None:
    cluster.create(claim_template("t"))
    cluster.create(device_claim("c"))
    cluster.create(with_templates(pod("p"), "t"))
    cluster.settle()
    assert len(cluster.all("ResourceClaim")) == 2
    cluster.status("Pod", "p", {"phase": "Succeeded"})
    cluster.settle()
    assert [found["metadata"]["name"] for found in cluster.all("ResourceClaim")] == ["c"]


def test_a_pod_on_its_way_out_gets_nothing(cluster: Cluster) -> None:
    cluster.create(with_templates(with_ephemeral(pod("p", node="n"), "scratch"), "t"))
    cluster.delete("Pod", "p", grace_s=30)
    cluster.create(claim_template("t"))
    cluster.settle()
    assert cluster.all("ResourceClaim") == cluster.all("PersistentVolumeClaim") == []


def test_long_names_give_way_in_proportion(cluster: Cluster) -> None:
    cluster.create(claim_template("t"))
    cluster.create(with_templates(pod("p" * 80), "t"))
    cluster.settle()
    [found] = cluster.all("ResourceClaim")
    assert len(found["metadata"]["name"]) <= 63
    assert told(cluster, "p" * 80) == {"d0": found["metadata"]["name"]}


def test_what_the_api_could_not_do_is_tried_again(cluster: Cluster) -> None:
    machine = cluster.machines[0]
    cluster.create(claim_template("t"))
    cluster.create(with_templates(with_ephemeral(pod("p"), "scratch"), "t"))
    failing = True

    def ask(request: ApiRequest) -> ApiReply:
        if failing and isinstance(request, Create):
            return Refused(500, "InternalError", "no leader")
        return Cluster.ask(cluster, request)

    cluster.ask = ask  # type: ignore[method-assign]
    cluster.settle()
    assert cluster.all("ResourceClaim") == []
    assert machine.running_timers() == 1
    failing = False
    due = machine.next_due()
    assert due is not None
    cluster.now = due
    cluster.settle()
    assert cluster.exists("PersistentVolumeClaim", "p-scratch")
    assert set(told(cluster, "p")) == {"d0"}
