"""The status of a ResourceQuota follows the pods of its namespace, as Kubernetes' controller has it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from pumice.cluster.controllers.quotas import AlikeObjects, QuotaMachine
from pumice.cluster.kube.min_resources import Amounts
from pumice.cluster.kube.quota_usage import is_in_scope, quota_status, total_of
from pumice.core.messages.commands import Create, LoadObject, UpdateStatus
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object
from pumice.core.quantity import quantity_of
from pumice.storage.codec import pack, unpack
from tests.actors.cluster import Cluster
from tests.kit.definitions import definition
from tests.kit.pods import pod


def quota(hard: dict[str, str], **spec: Any) -> Object:
    metadata = {"name": "q", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard, **spec}}


def test_it_follows_pods_that_come_end_and_go() -> None:
    cluster = Cluster(QuotaMachine())
    hard = {"cpu": "10", "requests.memory": "8Gi", "pods": "5", "count/pods": "9", "services": "2"}
    cluster.create(pod("before", cpu="2", memory="1Gi"))
    cluster.create(quota(hard))
    cluster.settle()
    used = {"cpu": "2", "requests.memory": "1Gi", "pods": "1", "count/pods": "1", "services": "0"}
    assert cluster.get("ResourceQuota", "q")["status"] == {"hard": hard, "used": used}
    cluster.create(pod("after", cpu="500m", memory="1Gi"))
    cluster.create(pod("elsewhere", namespace="other", cpu="4"))
    cluster.settle()
    assert cluster.get("ResourceQuota", "q")["status"]["used"] == {
        "cpu": "2500m",
        "requests.memory": "2Gi",
        "pods": "2",
        "count/pods": "2",
        "services": "0",
    }
    cluster.status("Pod", "before", {"phase": "Succeeded"})
    cluster.settle()
    used = {"cpu": "500m", "requests.memory": "1Gi", "pods": "1", "count/pods": "2", "services": "0"}
    assert cluster.get("ResourceQuota", "q")["status"]["used"] == used
    cluster.delete("Pod", "after", grace_s=0)
    cluster.delete("Pod", "before", grace_s=0)
    cluster.settle()
    assert set(cluster.get("ResourceQuota", "q")["status"]["used"].values()) == {"0"}


def test_other_limits_in_the_spec_are_taken_over() -> None:
    cluster = Cluster(QuotaMachine())
    cluster.create(quota({"cpu": "10"}))
    cluster.settle()
    cluster.patch("ResourceQuota", "q", {"spec": {"hard": {"cpu": "4"}}})
    cluster.settle()
    assert cluster.get("ResourceQuota", "q")["status"] == {"hard": {"cpu": "4"}, "used": {"cpu": "0"}}


def classed(name: str | None) -> Object:
    made = pod("p")
    if name:
        made["spec"]["priorityClassName"] = name
    return made


def by_class(operator: str, *values: str) -> Object:
    one = {"scopeName": "PriorityClass", "operator": operator, "values": list(values)}
    return {"scopeSelector": {"matchExpressions": [one]}}


SCOPES: list[tuple[Object, Object, Object]] = [
    (by_class("In", "high"), classed("high"), classed("low")),
    (by_class("NotIn", "high"), classed("low"), classed("high")),
    (by_class("Exists"), classed("low"), classed(None)),
    (by_class("DoesNotExist"), classed(None), classed("low")),
    ({"scopes": ["Terminating"]}, {"spec": {"activeDeadlineSeconds": 5}}, {"spec": {}}),
    ({"scopes": ["NotTerminating"]}, {"spec": {}}, {"spec": {"activeDeadlineSeconds": 5}}),
    ({"scopes": ["NotBestEffort"]}, pod("p", cpu="1"), {"spec": {"containers": [{}]}}),
    ({"scopes": ["BestEffort"]}, {"spec": {"containers": [{}]}}, pod("p", cpu="1")),
]


@pytest.mark.parametrize(("spec", "about", "not_about"), SCOPES)
def test_scopes(spec: Object, about: Object, not_about: Object) -> None:
    one = quota({"pods": "3"}, **spec)
    assert is_in_scope(one, about)
    assert not is_in_scope(one, not_about)
    assert quota_status(one, [about, not_about])["used"] == {"pods": "1"}


def strict() -> Cluster:
    cluster = Cluster(QuotaMachine())
    cluster.store.registry.served = True
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    return cluster


def config(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


def test_what_goes_beyond_is_refused_however_fast_it_comes() -> None:
    cluster = strict()
    cluster.create(quota({"pods": "2", "requests.cpu": "3", "configmaps": "1"}))
    cluster.create(pod("a", cpu="1"))  # nobody has counted yet
    cluster.create(pod("b", cpu="1"))
    refused = cluster.refused(pod("c", cpu="2"))
    assert refused.code == 403
    said = "requested: pods=1,requests.cpu=2, used: pods=2,requests.cpu=2, limited: pods=2,requests.cpu=3"
    assert refused.message == f'pods "c" is forbidden: exceeded quota: q, {said}'
    cluster.create(config("x"))
    assert "used: configmaps=1" in cluster.refused(config("y")).message
    cluster.settle()
    used = {"pods": "2", "requests.cpu": "2", "configmaps": "1"}
    assert cluster.get("ResourceQuota", "q")["status"]["used"] == used
    cluster.status("Pod", "a", {"phase": "Succeeded"})
    cluster.delete("ConfigMap", "x")
    cluster.settle()
    cluster.create(pod("c", cpu="2"))
    cluster.create(config("y"))


def test_a_pod_says_what_its_quota_bounds() -> None:
    cluster = strict()
    cluster.create(quota({"limits.cpu": "3"}))
    assert "failed quota: q: must specify limits.cpu for: " in cluster.refused(pod("a", cpu="1")).message


def test_a_quota_with_scopes_bounds_the_pods_in_them() -> None:
    cluster = strict()
    cluster.create(quota({"pods": "0"}, scopes=["BestEffort"]))
    cluster.create(pod("a", cpu="1"))
    cluster.create(config("x"))
    bare = pod("b")
    bare["spec"]["containers"][0].pop("resources", None)
    assert "exceeded quota" in cluster.refused(bare).message


def test_a_quota_bounds_new_pods_of_a_run_and_not_those_that_exist() -> None:
    cluster = strict()
    cluster.create(quota({"pods": "0"}))
    assert isinstance(cluster.ask(Create(pack(pod("a")), user="submit")), Refused)
    assert isinstance(cluster.ask(LoadObject(pack(pod("a")))), Accepted)


def widget(name: str) -> Object:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata}


def test_objects_of_any_kind_are_counted_and_bounded() -> None:
    cluster = strict()
    cluster.create(definition())
    cluster.create(widget("before"))
    hard = {"count/widgets.example.com": "2", "count/jobs.batch.volcano.sh": "1", "count/none.example.com": "1"}
    cluster.create(quota({**hard, "pods": "5"}))
    cluster.settle()
    none = {"pods": "0", "count/jobs.batch.volcano.sh": "0"}
    status = {"hard": {**hard, "pods": "5"}, "used": {"count/widgets.example.com": "1", **none}}
    assert cluster.get("ResourceQuota", "q")["status"] == status
    cluster.create(widget("a"))
    refused = cluster.refused(widget("b"))
    said = "count/widgets.example.com=1, used: count/widgets.example.com=2, limited: count/widgets.example.com=2"
    assert refused.message == f'widgets.example.com "b" is forbidden: exceeded quota: q, requested: {said}'
    cluster.create(pod("a", cpu="1"))
    cluster.delete("Widget.example.com", "a")
    cluster.settle()
    used = {"count/widgets.example.com": "1", **none, "pods": "1"}
    assert cluster.get("ResourceQuota", "q")["status"]["used"] == used
    cluster.patch("ResourceQuota", "q", {"spec": {"hard": {"count/widgets.example.com": "1"}}})
    assert "limited: count/widgets.example.com=1" in cluster.refused(widget("b")).message
    cluster.create(job("first"))
    assert "exceeded quota: q, requested: count/jobs.batch.volcano.sh=1" in cluster.refused(job("second")).message


def job(name: str) -> Object:
    task = {"name": "t", "replicas": 1, "template": {"spec": pod("p", cpu="1")["spec"]}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": {"tasks": [task]}}


@pytest.mark.parametrize("count", [1, 2, 3, 7, 100])
def test_objects_alike_use_what_each_of_them_uses(count: int) -> None:
    usage = {"requests.cpu": quantity_of("150m"), "requests.memory": quantity_of("1Gi"), "pods": quantity_of("1")}
    alike = AlikeObjects("Pod", {}, usage, count).total()
    summed = total_of([usage] * count)
    assert {name: each.canonical() for name, each in alike.items()} == {
        name: each.canonical() for name, each in summed.items()
    }


def test_pods_alike_are_added_up_together(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, summed = QuotaMachine(), list[int]()

    def noted(usages: Iterable[Amounts]) -> Amounts:
        each = [*usages]
        summed.append(len(each))
        return total_of(each)

    monkeypatch.setattr("pumice.cluster.controllers.quotas.total_of", noted)
    quota = {"metadata": {"name": "q", "namespace": "default", "resourceVersion": "1"}, "spec": {"hard": {"pods": "9"}}}
    machine.observe("ResourceQuota", quota, 1)
    for number in range(40):
        machine.observe("Pod", pod(f"p{number}", cpu="1" if number % 2 else "2"), number)
    for number in range(30):
        machine.observe("Pod", pod(f"p{number}", cpu="1" if number % 2 else "2"), 100 + number, deleted=True)
    (request,) = machine.step(0.0)
    assert isinstance(request, UpdateStatus)
    assert unpack(request.blob)["used"] == {"pods": "10"}
    assert summed == [3], "the quota itself counts, too"
