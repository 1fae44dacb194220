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


async def test_what_the_first_version_cannot_say_is_kept() -> None:
    scaler: Object = {"kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": {"maxReplicas": 2}}
    memory = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "Value", "averageValue": "1Gi"}}}
    scaler["spec"]["metrics"] = [memory]
    first = shown(scaler, "autoscaling/v1")
    assert "metrics" not in first["spec"]
    assert stored(first, "autoscaling/v1")["spec"]["metrics"] == [memory]


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
    memory = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "Value", "averageValue": "1Gi"}}}
    annotations = {"autoscaling.alpha.kubernetes.io/metrics": json.dumps([memory])}
    scaler: Object = {"kind": "HorizontalPodAutoscaler", "metadata": {"name": "h", "annotations": annotations}}
    scaler["spec"] = {"maxReplicas": 2, "targetCPUUtilizationPercentage": 60}
    metrics = stored(scaler, "autoscaling/v1")["spec"]["metrics"]
    assert [each["resource"]["name"] for each in metrics] == ["memory", "cpu"]
