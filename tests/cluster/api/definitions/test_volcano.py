"""Volcano's own kinds have the defaults and rules of their definitions, at every write."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.cluster.api.bootstrap import first_requests
from pumice.cluster.api.definitions.naming import is_accepted
from pumice.cluster.api.definitions.volcano import definitions, schema_of
from pumice.cluster.api.kinds import KINDS
from pumice.cluster.api.store import Store
from pumice.core.messages.commands import Create, Delete, Patch, Pull, ReadFaults
from pumice.core.messages.replies import Accepted, Listing, Refused
from pumice.storage.codec import pack, unpack
from tests.kit.queues import queue

START = 1_800_000_000.0
BATCH, TOPOLOGY, SCHEDULING = (
    "batch.volcano.sh/v1alpha1",
    "topology.volcano.sh/v1alpha1",
    "scheduling.volcano.sh/v1beta1",
)


def created(store: Store, api_version: str, kind: str, spec: dict[str, Any], **more: Any) -> Accepted | Refused:
    obj = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", **more}, "spec": spec}
    reply = store.apply(Create(pack(obj)), START)
    assert isinstance(reply, Accepted | Refused)
    return reply


def test_a_default_that_is_patched_away_comes_back() -> None:
    store = Store(served=True)
    assert isinstance(created(store, SCHEDULING, "Queue", {"weight": 3}), Accepted)
    reply = store.apply(Patch("Queue", "", "x", pack({"spec": {"weight": None, "dequeueStrategy": None}})), START)
    assert isinstance(reply, Accepted)
    spec = unpack(reply.blob)["spec"]
    assert (spec["weight"], spec["dequeueStrategy"]) == (1, "traverse")


def test_defaults_of_a_kind_without_rules_in_admission() -> None:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    jobs: dict[str, Any] = {
        "spec": {"tasks": [{"name": "t", "replicas": 1, "template": template}], "networkTopology": {}}
    }
    store = Store(served=True)
    created(store, "v1", "Namespace", {})
    reply = created(store, BATCH, "CronJob", {"schedule": "* * * * *", "jobTemplate": jobs}, namespace="x")
    assert isinstance(reply, Accepted), reply
    spec = unpack(reply.blob)["spec"]
    assert {"concurrencyPolicy": "Allow", "failedJobsHistoryLimit": 1, "suspend": False}.items() <= spec.items()
    job = spec["jobTemplate"]["spec"]
    assert (job["queue"], job["maxRetry"], job["networkTopology"]) == ("default", 3, {"mode": "hard"})
    assert job["tasks"][0]["template"] == template, "core types have no defaults here"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "spec.tier: Required value"),
    ({"tier": -1}, "spec.tier: Invalid value: -1: spec.tier in body should be greater than or equal to 0"),
    (
        {"tier": 1, "members": [{"type": "Rack", "selector": {}}]},
        'spec.members[0].type: Unsupported value: "Rack": supported values: ',
    ),
    (
        {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": ""}}}]},
        "spec.members[0].selector.exactMatch.name in body should be at least 1 chars long",
    ),
]


@pytest.mark.parametrize(("spec", "told"), REFUSED)
def test_rules_of_a_kind_without_rules_in_admission(spec: dict[str, Any], told: str) -> None:
    reply = created(Store(served=True), TOPOLOGY, "HyperNode", spec)
    assert isinstance(reply, Refused)
    assert reply.code == 422
    assert told in reply.message


def test_other_kinds_have_none() -> None:
    assert schema_of("", "v1", "Pod") is None
    assert schema_of("example.com", "v1", "Widget") is None


def test_kinds_with_rules_in_admission_are_judged_once_these_have_filled_them_in() -> None:
    store = Store(served=True)
    reply = created(store, SCHEDULING, "Queue", {"weight": 0})
    assert isinstance(reply, Accepted)
    assert unpack(reply.blob)["spec"]["weight"] == 1
    patched = store.apply(Patch("Queue", "", "x", pack({"spec": {"weight": -1}})), START)
    assert isinstance(patched, Refused)
    assert "spec.weight in body should be greater than or equal to 1" in patched.message
    created(store, "v1", "Namespace", {})
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    tasks = [{"name": "Task", "replicas": 1, "template": template}]
    job = created(store, BATCH, "Job", {"minAvailable": -1, "tasks": tasks}, namespace="x")
    assert isinstance(job, Refused)
    assert [cause["field"] for cause in job.details["causes"]] == ["spec.minAvailable", "spec.tasks[0].name"]
    assert "should match" in job.message
    assert "denied" not in job.message, "a definition is no webhook"


def test_every_kind_of_volcano_has_an_established_definition() -> None:
    store = Store(served=True)
    for obj in definitions():
        assert isinstance(store.apply(Create(pack(obj), user="submit"), START), Accepted), obj["metadata"]["name"]
    stored = [store.tables.seen(record) for _, record in store.tables.of_kind("CustomResourceDefinition")]
    assert {each["spec"]["names"]["kind"] for each in stored} == {
        row.kind for row in KINDS.values() if row.group.endswith(".volcano.sh")
    }
    assert all(is_accepted(each) for each in stored)


def test_definition_of_a_kind_does_not_replace_the_built_in_one() -> None:
    store = Store(served=True)
    (made,) = [each for each in definitions() if each["spec"]["names"]["kind"] == "Queue"]
    store.apply(Create(pack(made), user="submit"), START)
    refused = store.apply(Create(pack(queue("q") | {"spec": {"weight": -1}}), user="submit"), START)
    assert isinstance(refused, Refused)
    assert "spec.weight" in refused.message
    row = store.registry.kinds.by_type(SCHEDULING, "Queue")
    assert row is KINDS["Queue"]


# --- Definitions that are deleted


SPEC = {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "n"}}}]}


def begin(store: Store) -> Store:
    for request in first_requests(True, ("127.0.0.1", 1), installed=store.kinds.installed):
        assert not isinstance(request, Pull | ReadFaults)
        store.apply(request, START)
    return store


def installed() -> Store:
    return begin(Store(served=True))


def delete(store: Store, name: str) -> None:
    assert isinstance(store.apply(Delete("CustomResourceDefinition", "", name), START), Accepted)


def test_a_deleted_definition_takes_its_kind_and_objects_along() -> None:
    store, (made,) = installed(), [each for each in definitions() if each["spec"]["names"]["kind"] == "Queue"]
    assert isinstance(created(store, SCHEDULING, "Queue", {}), Accepted)
    delete(store, "queues.scheduling.volcano.sh")
    assert store.tables.count("Queue") == 0
    refused = created(store, SCHEDULING, "Queue", {})
    assert isinstance(refused, Refused)
    assert refused.code == 404
    assert store.kinds.by_resource("scheduling.volcano.sh", "v1beta1", "queues") is None
    assert "Queue" not in [row.key for row in store.kinds.rows()]
    assert store.list("Queue") == Listing(store.revision, ()), "the parts of the process go on asking"
    assert store.kinds.by_type(SCHEDULING, "PodGroup") is KINDS["PodGroup"], "others stay"
    assert isinstance(store.apply(Create(pack(made), user="kubectl"), START), Accepted)
    assert [name for _, name in store.tables.names("Queue")] == ["root", "default"]
    assert isinstance(created(store, SCHEDULING, "Queue", {}), Accepted)


def test_a_definition_waits_for_objects_with_finalizers() -> None:
    store = installed()
    assert isinstance(created(store, TOPOLOGY, "HyperNode", SPEC, finalizers=["a.b/c"]), Accepted)
    delete(store, "hypernodes.topology.volcano.sh")
    refused = created(store, TOPOLOGY, "HyperNode", SPEC)
    assert isinstance(refused, Refused)
    assert refused.message == "create not allowed while custom resource definition is terminating"
    let_go = Patch("HyperNode", "", "x", pack({"metadata": {"finalizers": None}}))
    assert isinstance(store.apply(let_go, START), Accepted)
    assert store.kinds.by_type(TOPOLOGY, "HyperNode") is None


def test_a_restart_knows_which_definitions_were_deleted() -> None:
    store = installed()
    delete(store, "hypernodes.topology.volcano.sh")
    again = Store(served=True)
    for mutation in store.drain():
        again.restore(mutation)
    assert again.kinds.by_type(TOPOLOGY, "HyperNode") is None
    assert again.kinds.by_type(SCHEDULING, "Queue") is KINDS["Queue"]
    assert begin(again).kinds.by_type(TOPOLOGY, "HyperNode") is None
