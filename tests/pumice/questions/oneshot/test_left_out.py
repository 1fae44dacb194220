# SPDX-License-Identifier: Apache-2.0
"""Remarks about what a future leaves out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

import pumice
from pumice.config.load import default_text
from pumice.questions.oneshot.left_out import overlooked, unserved
from tests.pumice.cli.terminal import pumice as command

ADMISSION = "admissionregistration.k8s.io/v1"
POD: dict[str, Any] = {"containers": [{"name": "main", "image": "work"}]}
OTHERS: dict[str, Any] = {**POD, "schedulerName": "foo"}


def made(kind: str, spec: dict[str, Any], *, uid: str = "", version: str = "v1", phase: str = "") -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "default", **({"uid": uid} if uid else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec, "status": {"phase": phase}}


def told(objects: list[dict[str, Any]], *, stock: bool = True) -> list[str]:
    return overlooked(objects, stock=stock)


def of_template(pod: dict[str, Any]) -> dict[str, Any]:
    return {"template": {"spec": pod}}


@pytest.mark.parametrize(
    ("obj", "is_told"),
    [
        (made("Pod", POD), True),
        (made("Pod", {**POD, "schedulerName": "default-scheduler"}), True),
        (made("Pod", {**POD, "schedulerName": "volcano"}), False),
        (made("Pod", {**POD, "nodeName": "n0"}), False),
        (made("Pod", POD, phase="Succeeded"), False),
        (made("Job", of_template(POD), version="batch/v1"), True),
        (made("Job", of_template({**POD, "schedulerName": "volcano"}), version="batch/v1"), False),
        (made("Job", of_template(POD), version="batch/v1", uid="u"), False),
        (made("Deployment", of_template(POD), version="apps/v1"), True),
        (made("CronJob", {"jobTemplate": {"spec": of_template(POD)}}, version="batch/v1", uid="u"), True),
        (made("Job", {"tasks": []}, version="batch.volcano.sh/v1alpha1"), False),
        (made("CronJob", {"jobTemplate": {"spec": {"tasks": []}}}, version="batch.volcano.sh/v1alpha1"), False),
        (made("Job", {"tasks": [of_template(POD)]}, version="batch.volcano.sh/v1alpha1"), False),
        (made("Queue", {}, version="scheduling.volcano.sh/v1beta1"), False),
    ],
)
def test_pods_of_default_scheduler_are_told(obj: dict[str, Any], is_told: bool) -> None:
    assert bool(told([obj])) == is_told


@pytest.mark.parametrize(
    ("obj", "is_told"),
    [
        (made("Pod", OTHERS), True),
        (made("Pod", {**OTHERS, "nodeName": "n0"}), False),
        (made("Job", of_template(OTHERS), version="batch/v1"), True),
        (made("Job", {"tasks": [of_template(OTHERS)]}, version="batch.volcano.sh/v1alpha1"), True),
        (made("Job", {"schedulerName": "foo", "tasks": [of_template(POD)]}, version="batch.volcano.sh/v1alpha1"), True),
        (made("Job", {"tasks": [of_template(OTHERS)]}, version="batch.volcano.sh/v1alpha1", uid="u"), False),
    ],
)
def test_pods_of_a_scheduler_that_does_not_run_are_told(obj: dict[str, Any], is_told: bool) -> None:
    said = told([obj])
    why = f"no scheduler named 'foo' runs here, so pods for it stay without a node: {obj['kind']} default/a"
    assert said == ([why] if is_told else [])


def test_pods_in_a_pod_group_are_volcanos_own() -> None:
    pod = made("Pod", POD)
    pod["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "g"}
    assert told([pod]) == []


def test_kinds_without_a_controller_are_told() -> None:
    assert told([made("HorizontalPodAutoscaler", {}, version="autoscaling/v2")]) == [
        "HorizontalPodAutoscaler default/a: no controller for it runs here, so nothing comes of it"
    ]


# --- Webhooks and policies


def hooks(kind: str, name: str = "h.example.org", **rule: list[str]) -> dict[str, Any]:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"], **rule}]
    return {**made(kind, {}, version=ADMISSION), "webhooks": [{"name": name, "rules": rules}]}


def policy(resource: str = "pods") -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false"}]}
    return made("ValidatingAdmissionPolicy", spec, version=ADMISSION)


def binding(action: str = "Deny") -> dict[str, Any]:
    spec = {"policyName": "a", "validationActions": [action]}
    return made("ValidatingAdmissionPolicyBinding", spec, version=ADMISSION)


@pytest.mark.parametrize(
    ("objects", "named"),
    [
        ([hooks("MutatingWebhookConfiguration")], "MutatingWebhookConfiguration a"),
        ([hooks("ValidatingWebhookConfiguration", resources=["*"])], "ValidatingWebhookConfiguration a"),
        ([policy(), binding()], "ValidatingAdmissionPolicyBinding a"),
        ([binding(), policy()], "ValidatingAdmissionPolicyBinding a"),
        ([binding()], "ValidatingAdmissionPolicyBinding a"),
        ([policy()], ""),
        ([policy(), binding("Warn")], ""),
        ([policy("secrets"), binding()], ""),
        ([hooks("MutatingWebhookConfiguration", resources=["secrets"])], ""),
        ([hooks("MutatingWebhookConfiguration", apiGroups=["cert-manager.io"])], ""),
        ([hooks("MutatingWebhookConfiguration", "mutatepod.volcano.sh")], ""),
    ],
)
@pytest.mark.parametrize("said_of", [told, partial(unserved, stock=True)])
def test_those_who_are_not_asked_are_told(
    objects: list[dict[str, Any]], named: str, said_of: Callable[[list[dict[str, Any]]], list[str]]
) -> None:
    said = said_of(objects)
    assert [f"nothing here: {named}. " in each for each in said] == ([True] if named else [])


# --- Configurations in the cluster


@pytest.mark.parametrize(
    ("name", "text", "stock", "is_told"),
    [
        ("volcano-scheduler-configmap", 'actions: "allocate"', True, True),
        ("volcano-scheduler-configmap", 'actions: "allocate"', False, False),
        ("volcano-scheduler-configmap", default_text(), True, False),
        ("other", 'actions: "allocate"', True, False),
    ],
)
def test_a_configuration_that_is_not_read_is_told(name: str, text: str, stock: bool, is_told: bool) -> None:
    metadata = {"namespace": "volcano-system", "name": name}
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"volcano-scheduler.conf": text}}
    why = f"the stock configuration is in force, and not the one in ConfigMap volcano-system/{name}"
    for said in (told([obj], stock=stock), unserved([obj], stock=stock)):
        assert [each.startswith(why) for each in said] == ([True] if is_told else [])


# --- All of them


def test_many_pods_of_default_scheduler_are_counted() -> None:
    (said,) = told([{**made("Pod", POD), "metadata": {"name": f"p{number}"}} for number in range(5)])
    assert "and 2 more" in said
    assert "pumice run --time virtual" in said


def test_the_library_warns_of_pods_that_nothing_places() -> None:
    cluster = pumice.Cluster(pumice.nodes(1, cpu=8))
    with pytest.warns(UserWarning, match="Pod default/a"):
        cluster.submit(made("Pod", POD))
    cluster.submit(pumice.gang("b", 1))


EXTENDED = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: extender
    arguments: {extender.urlPrefix: "http://127.0.0.1:9", extender.predicateVerb: p}
"""


def test_the_library_warns_of_an_extender_that_it_does_not_ask() -> None:
    with pytest.warns(UserWarning, match="the extender at http://127.0.0.1:9 is asked nothing here"):
        pumice.Cluster(pumice.nodes(1), config=EXTENDED)


def test_the_library_warns_of_kinds_that_it_skips(tmp_path: Path) -> None:
    file = tmp_path / "objects.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "x.io/v1", "kind": "Foo", "metadata": {"name": "f"}}))
    with pytest.warns(UserWarning, match="skipped x.io/v1 Foo 'f'"):
        pumice.Cluster.of_files(file)


def test_run_tells_of_webhooks_where_no_server_asks_them(tmp_path: Path) -> None:
    file = tmp_path / "objects.yaml"
    hook = hooks("ValidatingWebhookConfiguration")
    more = {"clientConfig": {"url": "https://127.0.0.1:9/"}, "admissionReviewVersions": ["v1"], "sideEffects": "None"}
    hook["webhooks"][0] |= more
    file.write_text(yaml.safe_dump_all([hook, pumice.gang("g", pods=1)]))
    said = command("run", "-f", file, "--time", "virtual", "--until", "5s", "--db", tmp_path / "run.db")
    assert "nothing here: ValidatingWebhookConfiguration a. `pumice run --http` asks them" in said.err
    whatif = command("whatif", "-f", file, "--delete", "job/g", "--horizon", "5s", "-o", "json")
    assert "nothing here: ValidatingWebhookConfiguration a. " in whatif.json["supposed"][0]
