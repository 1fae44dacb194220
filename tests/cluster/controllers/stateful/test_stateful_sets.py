"""StatefulSets: pods with numbers, in order, with their claims and revisions."""

from __future__ import annotations

import pytest

from pumice.cluster.controllers.family import FamilyMachine
from pumice.cluster.controllers.stateful import StatefulSetRule
from pumice.core.messages.commands import Delete
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster
from tests.cluster.controllers.stateful.set_kit import (
    SET,
    change,
    image,
    images,
    names,
    run,
    run_all,
    started,
    stateful_set,
    status,
)

COUNTS = ("replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas")


def test_one_after_the_other() -> None:
    cluster = started(stateful_set())
    for number in range(3):
        assert names(cluster) == [f"w-{each}" for each in range(number + 1)]
        run(cluster, f"w-{number}")
    assert status(cluster, *COUNTS) == (3, 3, 3, 3, 3)
    pod = cluster.get("Pod", "w-1")
    revision = status(cluster, "currentRevision")[0]
    assert pod["metadata"]["labels"] == {
        "app": "w",
        "statefulset.kubernetes.io/pod-name": "w-1",
        "apps.kubernetes.io/pod-index": "1",
        "controller-revision-hash": revision,
    }
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("w-1", "s")
    assert cluster.get("ControllerRevision", revision)["revision"] == 1
    events = {each["message"] for each in cluster.all("Event")}
    assert events == {f"create Pod w-{each} in StatefulSet w successful" for each in range(3)}


def test_all_together() -> None:
    cluster = started(stateful_set(podManagementPolicy="Parallel"))
    assert names(cluster) == ["w-0", "w-1", "w-2"]
    change(cluster, replicas=1)
    assert names(cluster) == ["w-0"]


def test_numbers_may_begin_elsewhere() -> None:
    cluster = started(stateful_set(replicas=2, ordinals={"start": 5}))
    run_all(cluster)
    assert names(cluster) == ["w-5", "w-6"]
    change(cluster, ordinals={"start": 4})
    run_all(cluster)
    assert names(cluster) == ["w-4", "w-5"]


def test_the_highest_goes_first_while_the_others_work() -> None:
    cluster = started(stateful_set())
    run_all(cluster)
    cluster.status("Pod", "w-0", {"conditions": [{"type": "Ready", "status": "False"}]})
    change(cluster, replicas=1)
    assert names(cluster) == ["w-0", "w-1", "w-2"]
    run(cluster, "w-0")
    assert [name for name in names(cluster) if "deletionTimestamp" in cluster.get("Pod", name)["metadata"]] == ["w-2"]
    run_all(cluster)
    assert names(cluster) == ["w-0"]


def test_a_pod_that_has_failed_comes_again() -> None:
    cluster = started(stateful_set(replicas=1))
    run_all(cluster)
    before = cluster.get("Pod", "w-0")["metadata"]["uid"]
    cluster.status("Pod", "w-0", {"phase": "Failed"})
    cluster.settle()
    assert cluster.get("Pod", "w-0")["metadata"]["uid"] != before
    assert "RecreatingFailedPod" in {each["reason"] for each in cluster.all("Event")}


def test_a_pod_counts_once_it_has_been_ready_for_long_enough() -> None:
    cluster = started(stateful_set(minReadySeconds=10))
    run(cluster, "w-0")
    assert status(cluster, "readyReplicas", "availableReplicas") == (1, 0)
    cluster.advance(9)
    assert names(cluster) == ["w-0"]
    cluster.advance(1)
    assert names(cluster) == ["w-0", "w-1"]


# --- other templates


def test_it_rolls_over_from_the_highest_down() -> None:
    cluster = started(stateful_set())
    run_all(cluster)
    first = status(cluster, "currentRevision")[0]
    change(cluster, template=image("b"))
    assert status(cluster, "currentRevision", "updatedReplicas") == (first, None)
    assert status(cluster, "updateRevision") != (first,)
    assert run_all(cluster) == ["w-2", "w-1", "w-0"]
    assert images(cluster) == "bbb"
    assert len(set(status(cluster, "currentRevision", "updateRevision"))) == 1
    assert status(cluster, *COUNTS) == (3, 3, 3, 3, 3)


def test_it_rolls_down_to_the_partition_and_keeps_what_is_below() -> None:
    cluster = started(stateful_set())
    run_all(cluster)
    change(cluster, template=image("b"), updateStrategy={"rollingUpdate": {"partition": 2}})
    run_all(cluster)
    assert images(cluster) == "aab"
    assert status(cluster, "currentReplicas", "updatedReplicas") == (2, 1)
    cluster.delete("Pod", "w-0", grace_s=0)
    cluster.settle()
    run_all(cluster)
    assert images(cluster) == "aab"
    change(cluster, updateStrategy={"rollingUpdate": {"partition": 0}})
    run_all(cluster)
    assert images(cluster) == "bbb"


def test_pods_may_wait_until_somebody_deletes_them() -> None:
    cluster = started(stateful_set(updateStrategy={"type": "OnDelete"}))
    run_all(cluster)
    change(cluster, template=image("b"))
    assert run_all(cluster) == []
    cluster.delete("Pod", "w-1", grace_s=0)
    cluster.settle()
    run_all(cluster)
    assert images(cluster) == "aba"


def test_it_waits_for_a_pod_that_does_not_become_ready() -> None:
    cluster = started(stateful_set())
    run_all(cluster)
    change(cluster, template=image("b"))
    cluster.delete("Pod", "w-2", grace_s=0)
    cluster.settle()
    cluster.advance(1000)
    assert images(cluster) == "aab"


def test_the_template_before_is_the_revision_before() -> None:
    cluster = started(stateful_set(replicas=1))
    run_all(cluster)
    first = status(cluster, "currentRevision")
    change(cluster, template=image("b"))
    run_all(cluster)
    change(cluster, template=image("a"))
    run_all(cluster)
    assert (images(cluster), status(cluster, "currentRevision")) == ("a", first)
    assert cluster.get("ControllerRevision", str(first[0]))["revision"] == 3


def test_only_so_many_revisions_are_kept() -> None:
    cluster = started(stateful_set(replicas=1, revisionHistoryLimit=2))
    for number in range(6):
        change(cluster, template=image(str(number)))
        run_all(cluster)
    assert sorted(each["revision"] for each in cluster.all("ControllerRevision")) == [5, 6, 7]


# --- claims


def claim_templates() -> list[Object]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return [{"metadata": {"name": "data"}, "spec": spec}]


def claims(cluster: Cluster) -> list[str]:
    return [each["metadata"]["name"] for each in cluster.all("PersistentVolumeClaim")]


def test_each_pod_has_its_claims_and_finds_them_again() -> None:
    cluster = started(stateful_set(replicas=2, volumeClaimTemplates=claim_templates()))
    run_all(cluster)
    assert claims(cluster) == ["data-w-0", "data-w-1"]
    claim = cluster.get("PersistentVolumeClaim", "data-w-0")
    assert claim["metadata"]["labels"] == {"app": "w"}
    assert "ownerReferences" not in claim["metadata"]
    [volume] = cluster.get("Pod", "w-1")["spec"]["volumes"]
    assert volume["persistentVolumeClaim"]["claimName"] == "data-w-1"
    said = {each["message"] for each in cluster.all("Event")}
    assert "create Claim data-w-1 Pod w-1 in StatefulSet w success" in said
    change(cluster, replicas=1)
    run_all(cluster)
    assert claims(cluster) == ["data-w-0", "data-w-1"]
    change(cluster, replicas=2)
    run_all(cluster)
    cluster.delete(SET, "w")
    assert (names(cluster)[:0], claims(cluster)) == ([], ["data-w-0", "data-w-1"])


def test_claims_may_go_when_it_shrinks_and_when_it_goes() -> None:
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    spec: Object = {"volumeClaimTemplates": claim_templates(), "persistentVolumeClaimRetentionPolicy": policy}
    cluster = started(stateful_set(2, **spec))
    run_all(cluster)
    change(cluster, replicas=1)
    run_all(cluster)
    assert claims(cluster) == ["data-w-0"]
    cluster.delete(SET, "w")
    assert claims(cluster) == []


@pytest.mark.parametrize(("propagation", "left"), [("Background", 0), ("Orphan", 2)])
def test_pods_go_with_it_or_stay(propagation: str, left: int) -> None:
    cluster = started(stateful_set(2, podManagementPolicy="Parallel"))
    cluster.ask(Delete(SET, "default", "w", propagation=propagation))
    cluster.settle()
    assert (len(names(cluster)), cluster.exists(SET, "w")) == (left, False)


def test_pods_that_stayed_are_those_of_its_successor() -> None:
    cluster = started(stateful_set(2))
    run_all(cluster)
    before = {each["metadata"]["uid"] for each in cluster.all("Pod")}
    cluster.ask(Delete(SET, "default", "w", propagation="Orphan"))
    cluster.settle()
    cluster.create(stateful_set(2, serviceName="other"))
    cluster.settle()
    assert (run_all(cluster), status(cluster, "readyReplicas", "updatedReplicas")) == ([], (2, 2))
    assert {each["metadata"]["uid"] for each in cluster.all("Pod")} == before
    uid = cluster.get(SET, "w")["metadata"]["uid"]
    [revision] = cluster.all("ControllerRevision")
    owners = [each["metadata"]["ownerReferences"] for each in (revision, *cluster.all("Pod"))]
    assert [[each["uid"] for each in of] for of in owners] == [[uid]] * 3


@pytest.mark.parametrize("more", [{}, {"status": {}}, {"status": {"phase": ""}}])
def test_a_claim_template_is_pending_whoever_sent_it(more: Object) -> None:
    cluster = started(stateful_set(volumeClaimTemplates=[{**claim_templates()[0], **more}]))
    ((template,),) = [each["spec"]["volumeClaimTemplates"] for each in cluster.all("StatefulSet")]
    assert template["status"] == {"phase": "Pending"}


def test_a_controller_that_starts_anew_changes_nothing() -> None:
    cluster = started(stateful_set(volumeClaimTemplates=claim_templates()))
    run_all(cluster)
    before = cluster.store.revision
    cluster.restart(FamilyMachine(StatefulSetRule()))
    cluster.settle()
    assert cluster.store.revision == before


# --- what is refused


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"replicas": -1}, "spec.replicas"),
        ({"podManagementPolicy": "Random"}, "spec.podManagementPolicy"),
        ({"updateStrategy": {"type": "Never"}}, "spec.updateStrategy.type"),
        ({"updateStrategy": {"rollingUpdate": {"partition": -1}}}, "spec.updateStrategy.rollingUpdate.partition"),
        ({"selector": {"matchLabels": {"app": "other"}}}, "spec.template.metadata.labels"),
        ({"selector": {"matchLabels": None}}, "spec.selector"),
        ({"volumeClaimTemplates": [{"spec": {"volumeName": "v"}}]}, "spec.volumeClaimTemplates[0].metadata.name"),
        (
            {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Perhaps"}},
            "spec.persistentVolumeClaimRetentionPolicy.whenScaled",
        ),
    ],
)
def test_what_it_must_be_like(spec: Object, field: str) -> None:
    refused = Cluster().refused(stateful_set(**spec))
    assert [cause["field"] for cause in refused.details["causes"]] == [field]


def test_what_is_fixed() -> None:
    cluster = started(stateful_set())
    answer = cluster.patch(SET, "w", {"spec": {"serviceName": "other"}})
    assert isinstance(answer, Refused)
    assert "updates to statefulset spec for fields other than 'replicas', 'ordinals'" in answer.message
