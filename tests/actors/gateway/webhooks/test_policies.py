"""ValidatingAdmissionPolicies are obeyed where a binding says so, in Kubernetes' words."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from pumice.core.objects.metadata import Object
from tests.actors.gateway.rig import Web, serving
from tests.actors.gateway.webhooks.test_webhooks import (
    CONFIG_MAPS,
    CONFIGURATIONS,
    CONTROLLED,
    REPLICA_SETS,
    config_map,
    replica_set,
    seen,
)

POLICIES = f"{CONFIGURATIONS}/validatingadmissionpolicies"
BINDINGS = f"{CONFIGURATIONS}/validatingadmissionpolicybindings"

pytestmark = pytest.mark.anyio


def policy(*validations: Object, resource: str = "configmaps", **spec: Any) -> Object:
    operations = ["CREATE", "UPDATE", "DELETE"]
    rule = {"apiGroups": ["*"], "apiVersions": ["v1"], "operations": operations, "resources": [resource]}
    made = {"matchConstraints": {"resourceRules": [rule]}, "validations": [*validations], **spec}
    return {"metadata": {"name": "p"}, "spec": made}


def binding(*actions: str, **spec: Any) -> Object:
    made = {"policyName": "p", "validationActions": [*actions] or ["Deny"], **spec}
    return {"metadata": {"name": "b"}, "spec": made}


async def bound(web: Web, given: Object, by: Object) -> None:
    """From now on."""
    await web.send("POST", POLICIES, given, 201)
    await web.send("POST", BINDINGS, by, 201)
    await anyio.sleep(0.3)  # the gateway sees it as every watcher does


async def test_one_denies_by_its_binding() -> None:
    small = {"expression": "variables.count <= 1", "messageExpression": "'too many: ' + string(variables.count)"}
    kept = {"expression": "oldObject == null || object != null", "message": "it stays", "reason": "Forbidden"}
    variables = [{"name": "count", "expression": "object == null ? 0 : size(object.data)"}]
    selector = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}
    async with serving() as web:
        one = policy(small, kept, variables=variables)
        await bound(web, one, binding(matchResources=selector))
        await web.send("POST", CONFIG_MAPS, config_map("x"), 201)
        more = {**config_map("y"), "data": {"a": "", "b": ""}}
        said = await web.send("POST", CONFIG_MAPS, more, 422)
        denied = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "
        assert said["message"] == f'configmaps "y" is forbidden: {denied}too many: 2'
        assert (said["reason"], said["details"]["causes"]) == ("Invalid", [{"message": "too many: 2"}])
        said = await web.send("DELETE", f"{CONFIG_MAPS}/x", None, 403)
        assert said["message"].endswith(f"{denied}it stays")
        await web.send("POST", "/api/v1/namespaces/kube-public/configmaps", more, 201)
        await web.send("DELETE", f"{BINDINGS}/b", None, 200)
        await anyio.sleep(0.3)
        await web.send("POST", CONFIG_MAPS, more, 201)


async def test_one_warns() -> None:
    async with serving() as web:
        await bound(web, policy({"expression": "object.data.a == 'c'"}), binding("Warn"))
        answer = await web.http.post(CONFIG_MAPS, json=config_map("x"))
        assert answer.status_code == 201
        said = "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': failed expression: object.data.a"
        assert said in answer.headers["warning"]


@pytest.mark.parametrize(("failure", "code"), [("Fail", 422), ("Ignore", 201)])
async def test_what_cannot_be_worked_out_is_for_the_policy_to_judge(failure: str, code: int) -> None:
    async with serving() as web:
        await bound(web, policy({"expression": "object.data.none == 'c'"}, failurePolicy=failure), binding())
        said = await web.send("POST", CONFIG_MAPS, config_map("x"), code)
        if code == 422:
            assert said["message"].endswith(
                "denied request: expression 'object.data.none == 'c'' resulted in error: no such key: none"
            )


async def test_parameters_come_from_objects() -> None:
    one = policy(
        {"expression": "object.metadata.name != params.data.forbidden"},
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        matchConditions=[{"name": "others", "expression": "object.metadata.name != 'limits'"}],
    )
    async with serving() as web:
        asked = {"name": "limits", "namespace": "kube-public", "parameterNotFoundAction": "Deny"}
        await bound(web, one, binding(paramRef=asked))
        said = await web.send("POST", CONFIG_MAPS, config_map("x"), 422)
        assert "failed to configure binding: no params found" in said["message"]
        limits = {"metadata": {"name": "limits"}, "data": {"forbidden": "x"}}
        await web.send("DELETE", f"{BINDINGS}/b", None, 200)
        await anyio.sleep(0.3)
        await web.send("POST", "/api/v1/namespaces/kube-public/configmaps", limits, 201)
        await web.send("POST", BINDINGS, binding(paramRef=asked), 201)
        await anyio.sleep(0.3)
        await web.send("POST", CONFIG_MAPS, config_map("x"), 422)
        await web.send("POST", CONFIG_MAPS, config_map("y"), 201)


async def test_controllers_are_denied_too() -> None:
    async with serving(settings=CONTROLLED) as web:
        await bound(web, policy({"expression": "false", "message": "no pods"}, resource="pods"), binding())
        await web.send("POST", REPLICA_SETS, replica_set(1), 201)
        events = "/api/v1/namespaces/default/events?fieldSelector=reason=FailedCreate"
        [told, *_] = await seen(web, events, bool)
        assert told["message"].endswith("denied request: no pods")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (policy(), "spec.validations: Required value: validations or auditAnnotations must contain"),
        (policy({"expression": "object.x +"}), "spec.validations[0].expression: Invalid value:"),
        (policy({"expression": "authority.group('').check()"}), "undeclared reference to 'authority'"),
        (policy({"expression": "object.items.all(i, i > j)"}), "undeclared reference to 'j'"),
        (policy({"expression": "uri('x') == object.x"}), "undeclared reference to 'uri'"),
        (policy({"expression": "object.x.guess(1)"}), "undeclared reference to 'guess'"),
        (policy({"expression": "true"}, failurePolicy="Perhaps"), "spec.failurePolicy: Unsupported value"),
        (policy({"expression": "true"}, matchConstraints={}), "spec.matchConstraints: Required value"),
    ],
)
async def test_what_nobody_could_obey_is_refused(given: Object, said: str) -> None:
    async with serving() as web:
        refused = await web.send("POST", POLICIES, given, 422)
        assert said in refused["message"]


async def test_a_binding_says_what_it_does() -> None:
    async with serving() as web:
        assert "Deny and Warn" in (await web.send("POST", BINDINGS, binding("Deny", "Warn"), 422))["message"]
        assert "Unsupported value" in (await web.send("POST", BINDINGS, binding("Refuse"), 422))["message"]
