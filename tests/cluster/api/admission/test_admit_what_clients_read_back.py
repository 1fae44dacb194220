"""What an API server writes into objects and clients read back: forms of amounts, types, protocols, strategies."""

from base64 import b64encode
from typing import Any

from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster
from tests.kit.jobs import job_task, vcjob
from tests.kit.pods import pod


def core(kind: str, name: str, **more: Any) -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}, **more}


def deployment(**spec: Any) -> Object:
    labels = {"app": "d"}
    container = {"name": "c", "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    meta = {"name": "d", "namespace": "default"}
    full = {"selector": {"matchLabels": labels}, "template": template, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": full}


def test_what_is_applied_twice_changes_nothing(cluster: Cluster) -> None:
    amounts = {"cpu": 4, "memory": "4Gi", "nvidia.com/gpu": 2}
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}}
    made = cluster.create({**queue, "spec": {"capability": amounts}})
    job = vcjob("j", job_task("a"))
    job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": 1}}
    written = [dict(task) for task in job["spec"]["tasks"]]
    job = cluster.create(job)
    assert isinstance(cluster.patch("Job", "j", {"spec": {"tasks": written}}), Accepted), "without what was filled in"
    assert cluster.get("Job", "j") == job
    for kind, obj, namespace in (("Queue", made, ""), ("Job", job, "default")):
        reply = cluster.patch(kind, obj["metadata"]["name"], {"spec": obj["spec"]}, namespace)
        assert isinstance(reply, Accepted)
        assert cluster.get(kind, obj["metadata"]["name"], namespace) == obj
    assert made["spec"]["capability"] == amounts


def test_texts_of_a_secret_become_data(cluster: Cluster) -> None:
    given = {"data": {"a": b64encode(b"1").decode(), "b": "Mg=="}, "stringData": {"a": "x"}}
    made = cluster.create(core("Secret", "s", **given))
    assert (made["type"], made["data"], "stringData" in made) == ("Opaque", {"a": "eA==", "b": "Mg=="}, False)
    cluster.patch("Secret", "s", {"stringData": {"c": "y"}})
    assert cluster.get("Secret", "s")["data"] == {"a": "eA==", "b": "Mg==", "c": "eQ=="}
    assert isinstance(cluster.patch("Secret", "s", {"type": "other"}), Refused)
    assert isinstance(cluster.patch("Secret", "s", {"data": {"a": "&"}}), Refused)


def test_an_immutable_secret_stays_as_it_is(cluster: Cluster) -> None:
    cluster.create(core("Secret", "s", immutable=True, stringData={"a": "x"}))
    assert isinstance(cluster.patch("Secret", "s", {"stringData": {"a": "y"}}), Refused)
    assert isinstance(cluster.patch("Secret", "s", {"immutable": False}), Refused)
    assert isinstance(cluster.patch("Secret", "s", {"metadata": {"labels": {"a": "b"}}}), Accepted)


def test_ports_of_a_service_have_protocol_and_target(cluster: Cluster) -> None:
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 1, "targetPort": "web"}]
    spec = cluster.create(core("Service", "s", spec={"ports": ports}))["spec"]
    assert (spec["type"], spec["sessionAffinity"], spec["internalTrafficPolicy"]) == ("ClusterIP", "None", "Cluster")
    assert [(each["protocol"], each["targetPort"]) for each in spec["ports"]] == [("TCP", 80), ("TCP", "web")]
    cluster.patch("Service", "s", {"spec": {"ports": [{"port": 90}]}})
    assert cluster.get("Service", "s")["spec"]["ports"] == [{"port": 90, "protocol": "TCP", "targetPort": 90}]


def test_ports_of_containers_have_a_protocol(cluster: Cluster) -> None:
    made = pod("p")
    made["spec"]["containers"][0]["ports"] = [{"containerPort": 80}]
    assert cluster.create(made)["spec"]["containers"][0]["ports"][0]["protocol"] == "TCP"
    template = cluster.create(deployment())["spec"]["template"]["spec"]
    assert [each["protocol"] for each in template["containers"][0]["ports"]] == ["TCP", "UDP"]


def test_a_deployment_says_how_it_rolls_out(cluster: Cluster) -> None:
    spec = cluster.create(deployment(strategy={"rollingUpdate": {"maxSurge": 1}}))["spec"]
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"}}
    assert (spec["progressDeadlineSeconds"], spec["revisionHistoryLimit"]) == (600, 10)
    cluster.delete("Deployment", "d")
    assert cluster.create(deployment(strategy={"type": "Recreate"}))["spec"]["strategy"] == {"type": "Recreate"}
