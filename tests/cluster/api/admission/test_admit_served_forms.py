"""A served cluster keeps amounts in one form, and Jobs select by labels that the server gives them."""

import pytest

from pumice.core.messages.commands import Create, LoadObject, Patch, ReportStatus
from pumice.core.messages.decisions import QueueStatus
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object
from pumice.storage.codec import pack
from tests.actors.cluster import Cluster
from tests.cluster.controllers.batch.job_kit import batch_job
from tests.kit.nodes import node
from tests.kit.pods import pod

WRITTEN = {"cpu": "1500.0m", "memory": "2048Mi", "x.io/y": 3}
KEPT = {"cpu": "1500m", "memory": "2Gi", "x.io/y": "3"}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.served()


def with_amounts(spec: Object) -> Object:
    spec["containers"][0]["resources"] = {"limits": WRITTEN}
    spec["containers"][0]["env"] = [
        {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1000m"}}}
    ]
    spec["volumes"] = [{"name": "v", "emptyDir": {"sizeLimit": "1024Mi"}}]
    return spec


def deployment() -> Object:
    labels = {"app": "d"}
    template = {"metadata": {"labels": labels}, "spec": with_amounts(pod("d")["spec"])}
    meta = {"name": "d", "namespace": "default"}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


def stands_in_one_form(spec: Object) -> None:
    container = spec["containers"][0]
    assert container["resources"]["limits"] == KEPT
    assert container["env"][0]["valueFrom"]["resourceFieldRef"]["divisor"] == "1"
    assert spec["volumes"][0]["emptyDir"]["sizeLimit"] == "1Gi"


def test_amounts_of_templates_and_pods_are_kept_in_one_form(cluster: Cluster) -> None:
    made = cluster.create(deployment())
    stands_in_one_form(made["spec"]["template"]["spec"])
    again = deployment()["spec"]["template"]
    assert isinstance(cluster.patch("Deployment", "d", {"spec": {"template": again}}), Accepted)
    assert cluster.get("Deployment", "d") == made, "the same amounts in another form are no change"
    stands_in_one_form(cluster.create({**pod("p"), "spec": with_amounts(pod("p")["spec"])})["spec"])


def test_amounts_of_a_status_are_kept_in_one_form(cluster: Cluster) -> None:
    cluster.create(node("n"))
    body = pack({"status": {"allocatable": {"cpu": "4000m"}}})
    cluster.ask(Patch("Node", "", "n", body, subresource="status"))
    assert cluster.get("Node", "n", "")["status"]["allocatable"]["cpu"] == "4"


def test_amounts_in_a_list_are_kept_in_one_form(cluster: Cluster) -> None:
    policy = {"default": "1024Mi", "validValues": ["1024Mi", "2.0Gi"]}
    device = {"name": "a", "capacity": {"memory": {"value": "4096Mi", "requestPolicy": policy}}}
    spec = {"driver": "x.io", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1}}
    meta = {"name": "s"}
    made = cluster.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": meta,
            "spec": {**spec, "devices": [device]},
        }
    )
    memory = made["spec"]["devices"][0]["capacity"]["memory"]
    assert memory == {"value": "4Gi", "requestPolicy": {"default": "1Gi", "validValues": ["1Gi", "2Gi"]}}


def test_a_job_selects_by_the_labels_that_it_is_given(cluster: Cluster) -> None:
    own = cluster.refused(batch_job(selector={"matchLabels": {"app": "j"}}))
    assert (own.code, own.details["causes"][0]["field"]) == (422, "spec.selector")
    assert "`selector` not auto-generated" in own.message
    copied = batch_job("other")
    copied["spec"]["template"]["metadata"]["labels"]["controller-uid"] = "of another"
    assert "spec.template.metadata.labels[controller-uid]" in cluster.refused(copied).message
    assert "must be 'k'" in cluster.refused(_named("k", {"job-name": "j"})).message
    by_name = cluster.create(batch_job("n", selector={"matchLabels": {"job-name": "n"}}, manualSelector=False))
    assert by_name["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"]


def _named(name: str, labels: Object) -> Object:
    job = batch_job(name)
    job["spec"]["template"]["metadata"]["labels"] = labels
    return job


def test_a_job_that_selects_by_hand_says_by_what(cluster: Cluster) -> None:
    own = {"matchLabels": {"app": "j"}}
    assert cluster.create(batch_job(manualSelector=True, selector=own))["spec"]["selector"] == own
    assert "spec.selector: Required value" in cluster.refused(batch_job("a", manualSelector=True)).message
    assert "does not match" in cluster.refused(batch_job("b", manualSelector=True, selector=own)).message


def test_what_a_run_begins_with_may_have_been_another_clusters(cluster: Cluster) -> None:
    job = batch_job(selector={"matchLabels": {"controller-uid": "there"}})
    assert isinstance(cluster.ask(Create(pack(job), user="submit")), Refused)
    job["metadata"]["uid"] = "there"
    assert isinstance(cluster.ask(LoadObject(pack(job), user="load")), Accepted)


@pytest.mark.parametrize("more", [{"selector": {"matchLabels": {"a": "b"}}}, {"manualSelector": True}])
def test_jobs_of_a_cron_job_select_by_the_labels_that_they_are_given(cluster: Cluster, more: Object) -> None:
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": {**batch_job()["spec"], **more}}}
    meta = {"name": "c", "namespace": "default"}
    why = cluster.refused({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta, "spec": spec})
    assert f"spec.jobTemplate.spec.{next(iter(more))}" in why.message


def test_a_new_queue_is_what_the_first_session_would_write_of_it(cluster: Cluster) -> None:
    """Who creates a queue and updates it immediately meets no other write: there is nothing more to say of it."""
    queue = cluster.create({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}})
    assert queue["status"] == {"state": "Open", "allocated": {"cpu": "0", "memory": "0"}}
    said = QueueStatus("q", {"cpu": "0", "memory": "0"})
    assert isinstance(cluster.ask(ReportStatus("Queue", "", "q", said, 1, cluster.store.revision)), Accepted)
    assert cluster.get("Queue", "q")["metadata"]["resourceVersion"] == queue["metadata"]["resourceVersion"]
