"""Kinds in versions with other fields, and tokens of service accounts."""

from __future__ import annotations

import base64
import json

import pytest

from pumice.actors.gateway.request.versions import shown, stored
from pumice.core.objects.metadata import Object
from tests.actors.gateway.rig import serving

SCALERS = "namespaces/default/horizontalpodautoscalers"
EVENTS = "namespaces/default/events"

pytestmark = pytest.mark.anyio


async def test_a_scaler_of_the_first_version_is_one_of_the_second() -> None:
    async with serving() as web:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
        spec = {"scaleTargetRef": target, "maxReplicas": 4, "targetCPUUtilizationPercentage": 60}
        given = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}}
        made = await web.send("POST", f"/apis/autoscaling/v1/{SCALERS}", {**given, "spec": spec}, 201)
        assert (made["apiVersion"], made["spec"]["targetCPUUtilizationPercentage"]) == ("autoscaling/v1", 60)
        second = await web.get(f"/apis/autoscaling/v2/{SCALERS}/h")
        [metric] = second["spec"]["metrics"]
        assert metric["resource"]["target"] == {"type": "Utilization", "averageUtilization": 60}
        assert "targetCPUUtilizationPercentage" not in second["spec"]
        media = {"content-type": "application/merge-patch+json"}
        patch = {"spec": {"targetCPUUtilizationPercentage": 70}}
        changed = await web.send("PATCH", f"/apis/autoscaling/v1/{SCALERS}/h", patch, 200, **media)
        assert changed["spec"]["targetCPUUtilizationPercentage"] == 70
        listed = await web.get(f"/apis/autoscaling/v1/{SCALERS}")
        assert listed["items"][0]["spec"]["targetCPUUtilizationPercentage"] == 70


async def test_events_of_both_groups_are_the_same() -> None:
    async with serving() as web:
        about = {"kind": "Pod", "name": "p", "namespace": "default"}
        new: Object = {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "regarding": about}
        new |= {"note": "it runs", "reason": "Started", "type": "Normal", "action": "Run", "reportingController": "c"}
        made = await web.send("POST", f"/apis/events.k8s.io/v1/{EVENTS}", new, 201)
        assert (made["note"], made["regarding"]) == ("it runs", about)
        old = await web.get(f"/api/v1/{EVENTS}/e")
        assert (old["apiVersion"], old["message"], old["involvedObject"]) == ("v1", "it runs", about)
        groups = {each["name"] for each in (await web.get("/apis"))["groups"]}
        assert "events.k8s.io" in groups
        resources = (await web.get("/apis/events.k8s.io/v1"))["resources"]
        assert [each["name"] for each in resources] == ["events"]


def scaler_of(*metrics: Object, **spec: object) -> Object:
    return {"kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": {**spec, "metrics": list(metrics)}}


RESOURCE: Object = {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 60}}
CONTAINER: Object = {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "2"}, "container": "c"}
METRIC: Object = {"name": "m", "selector": {"matchLabels": {"a": "b"}}}
OWNER: Object = {"kind": "Service", "name": "s"}
OBJECT: Object = {"describedObject": OWNER, "metric": {"name": "m"}, "target": {"type": "Value", "value": "7"}}


@pytest.mark.parametrize(
    ("kind", "part", "given", "first"),
    [
        ("Resource", "resource", RESOURCE, '{"name":"memory","targetAverageUtilization":60}'),
        (
            "ContainerResource",
            "containerResource",
            CONTAINER,
            '{"name":"cpu","targetAverageValue":"2","container":"c"}',
        ),
        (
            "Pods",
            "pods",
            {"metric": METRIC, "target": {"type": "AverageValue", "averageValue": "3"}},
            '{"metricName":"m","targetAverageValue":"3","selector":{"matchLabels":{"a":"b"}}}',
        ),
        (
            "Object",
            "object",
            OBJECT,
            '{"target":{"kind":"Service","name":"s"},"metricName":"m","targetValue":"7"}',
        ),
        (
            "External",
            "external",
            {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "30"}},
            '{"metricName":"q","targetAverageValue":"30"}',
        ),
    ],
)
async def test_metric_stands_in_the_annotation_in_the_first_version(
    kind: str, part: str, given: Object, first: str
) -> None:
    cpu = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}}}
    other = {"type": kind, part: given}
    made = shown(scaler_of(other, cpu), "autoscaling/v1")
    assert made["spec"] == {"targetCPUUtilizationPercentage": 5}
    assert made["metadata"]["annotations"] == {
        "autoscaling.alpha.kubernetes.io/metrics": f'[{{"type":"{kind}","{part}":{first}}}]'
    }
    back = stored(made, "autoscaling/v1")
    assert (back["spec"]["metrics"], back["metadata"]["annotations"]) == ([other, cpu], {})


async def test_behavior_and_status_stand_in_annotations_of_the_first_version() -> None:
    policy = {"type": "Pods", "value": 4, "periodSeconds": 15}
    scaler = scaler_of(behavior={"scaleDown": {"stabilizationWindowSeconds": 0, "policies": [policy]}})
    condition = {"type": "AbleToScale", "status": "True"}
    measured = {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 9}}}
    scaler["status"] = {"currentReplicas": 2, "currentMetrics": [measured], "conditions": [condition]}
    made = shown(scaler, "autoscaling/v1")
    notes = {name.rpartition("/")[2]: text for name, text in made["metadata"]["annotations"].items()}
    assert notes == {
        "behavior": '{"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":0,"SelectPolicy":null,'
        '"Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":15}],"Tolerance":null}}',
        "current-metrics": '[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":9,'
        '"currentAverageValue":"0"}}]',
        "conditions": '[{"type":"AbleToScale","status":"True"}]',
    }
    assert made["status"] == {"currentReplicas": 2, "currentCPUUtilizationPercentage": 9}
    back = stored(made, "autoscaling/v1")
    assert back["spec"]["behavior"] == scaler["spec"]["behavior"]
    assert back["status"]["conditions"] == [condition]
    assert back["status"]["currentMetrics"][0]["resource"]["current"] == {"averageUtilization": 9, "averageValue": "0"}


@pytest.mark.parametrize("text", ["[", "{}", "[1]", "null", "[" * 100_000])
async def test_annotation_of_an_autoscaler_that_cannot_be_read_counts_as_nothing(text: str) -> None:
    notes = {f"autoscaling.alpha.kubernetes.io/{name}": text for name in ("metrics", "behavior", "current-metrics")}
    scaler: Object = {"kind": "HorizontalPodAutoscaler", "metadata": {"name": "h", "annotations": notes}, "spec": {}}
    assert stored(scaler, "autoscaling/v1") == {**scaler, "metadata": {"name": "h", "annotations": {}}}
    notes["autoscaling.alpha.kubernetes.io/metrics"] = '[{"type": "Pods", "pods": 5}]'
    assert stored(scaler, "autoscaling/v1")["spec"]["metrics"] == [{"type": "Pods"}]


async def test_a_token_says_whose_it_is() -> None:
    async with serving() as web:
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        await web.send("POST", accounts, {"metadata": {"name": "robot"}}, 201)
        body = {"spec": {"audiences": ["a"], "expirationSeconds": 600}}
        made = await web.send("POST", f"{accounts}/robot/token", body, 201)
        assert made["kind"] == "TokenRequest"
        _, claims, _ = made["status"]["token"].split(".")
        said = json.loads(base64.urlsafe_b64decode(claims + "=="))
        assert (said["sub"], said["aud"]) == ("system:serviceaccount:default:robot", ["a"])
        await web.send("POST", f"{accounts}/nobody/token", body, 404)
        await web.send("POST", f"{accounts}/robot/token", {"spec": {"expirationSeconds": 1}}, 422)


async def test_scaler_of_first_version_puts_cpu_behind_other_metrics() -> None:
    memory = {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}}
    annotations = {"autoscaling.alpha.kubernetes.io/metrics": json.dumps([memory])}
    scaler: Object = {"kind": "HorizontalPodAutoscaler", "metadata": {"name": "h", "annotations": annotations}}
    scaler["spec"] = {"maxReplicas": 2, "targetCPUUtilizationPercentage": 60}
    metrics = stored(scaler, "autoscaling/v1")["spec"]["metrics"]
    assert [each["resource"]["name"] for each in metrics] == ["memory", "cpu"]
