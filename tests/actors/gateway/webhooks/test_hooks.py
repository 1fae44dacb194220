"""Which webhooks are asked, where they are, and what their answers say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pumice.actors.gateway.webhooks.admission import BadAnswerError, verdict
from pumice.actors.gateway.webhooks.calls import Address, CallError, address_of
from pumice.actors.gateway.webhooks.hooks import AdmissionRequest, wanted
from pumice.cluster.api.kinds import KINDS
from pumice.core.objects.metadata import Object


def request(key: str = "Pod", subresource: str = "", **labels: str) -> AdmissionRequest:
    row = KINDS[key]
    new = {"metadata": {"name": "x", "labels": {"app": "a"}}}
    return AdmissionRequest(
        operation="CREATE", row=row, version=row.version, subresource=subresource, namespace="n", name="x", new=new,
        old=None, spaces=labels, dry_run=False,
    )  # fmt: skip


def hook(**given: Any) -> Object:
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["pods"]}
    return {"name": "h", "rules": [{**rule, **given.pop("rule", {})}], **given}


@pytest.mark.parametrize(
    ("given", "asked", "expected"),
    [
        (hook(), request(), True),
        (hook(rule={"operations": ["UPDATE", "DELETE"]}), request(), False),
        (hook(rule={"resources": ["*"]}), request(subresource="status"), False),
        (hook(rule={"resources": ["*/*"]}), request(subresource="status"), True),
        (hook(rule={"resources": ["pods/status"]}), request(subresource="status"), True),
        (hook(rule={"scope": "Cluster"}), request(), False),
        (hook(rule={"apiGroups": ["apps"]}), request(), False),
        (hook(namespaceSelector={"matchLabels": {"on": "yes"}}), request(), False),
        (hook(namespaceSelector={"matchLabels": {"on": "yes"}}), request(on="yes"), True),
        (hook(objectSelector={"matchLabels": {"app": "b"}}), request(), False),
        (hook(matchConditions=[{"name": "c", "expression": "object.metadata.name == 'y'"}]), request(), False),
    ],
)
def test_wanted(given: Object, asked: AdmissionRequest, expected: bool) -> None:
    assert wanted(given, asked) is expected


def test_a_service_with_endpoints_of_its_own_is_where_they_are() -> None:
    behind: Object = {"clientConfig": {"service": {"name": "s", "namespace": "n", "path": "/p", "port": 8443}}}
    service = {"spec": {"ports": [{"name": "a", "port": 8443, "targetPort": 9443}]}}
    endpoints = {"subsets": [{"addresses": [{"ip": "127.0.0.1"}], "ports": [{"name": "a", "port": 9443}]}]}
    assert address_of(behind, service, endpoints) == Address("https://s.n.svc:8443/p", "127.0.0.1", 9443)
    assert address_of(behind, {"spec": {"selector": {"a": "b"}}}, endpoints) is None
    with pytest.raises(CallError, match="no endpoints available"):
        address_of(behind, service, None)
    with pytest.raises(CallError, match="not found"):
        address_of(behind, None, None)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[]",
        b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}',
        b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": {"uid": "2", "allowed": true}}',
        b'{"kind": "AdmissionReview", "apiVersion": "v1", "response": {"uid": "1", "allowed": true}}',
    ],
)
def test_an_answer_that_makes_no_sense(answer: bytes) -> None:
    with pytest.raises(BadAnswerError):
        verdict(answer, "1", "h")


def test_a_refusal_without_a_word() -> None:
    answer = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": {"uid": "1"}}
    refused = verdict(json.dumps(answer).encode(), "1", "h").refused
    assert refused is not None
    assert (refused.code, refused.message) == (400, 'admission webhook "h" denied the request without explanation')
