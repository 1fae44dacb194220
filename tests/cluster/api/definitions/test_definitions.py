"""The life of a CustomResourceDefinition and of the objects that it defines."""

from copy import deepcopy

import pytest

from pumice.core.messages.commands import Create, Delete, OpenListing, Patch, Update
from pumice.core.messages.replies import Accepted, ApiReply, ListingOpened, Refused
from pumice.core.objects.metadata import Object
from pumice.storage.codec import pack, unpack
from tests.actors.cluster import Cluster
from tests.kit.definitions import definition, widget

KEY = "Widget.example.com"
CRD = "CustomResourceDefinition"


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster()
    found.create(definition())
    return found


def fields(reply: ApiReply) -> list[str]:
    assert isinstance(reply, Refused), reply
    assert (reply.code, reply.reason) == (422, "Invalid")
    return [cause["field"] for cause in reply.details["causes"]]


def conditions(obj: Object) -> dict[str, str]:
    return {each["type"]: each["status"] for each in obj["status"]["conditions"]}


# --- the definition


def test_a_definition_is_established_immediately_and_its_names_are_filled_in(cluster: Cluster) -> None:
    found = cluster.get(CRD, "widgets.example.com", "")
    assert conditions(found) == {"NamesAccepted": "True", "Established": "True"}
    assert found["spec"]["names"]["singular"] == "widget"
    assert found["spec"]["names"]["listKind"] == "WidgetList"
    assert found["status"]["storedVersions"] == ["v1"]
    row = cluster.store.kinds.by_resource("example.com", "v1", "widgets")
    assert row is not None
    assert (row.key, row.singular, row.status, row.namespaced) == (KEY, "widget", True, True)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"metadata": {"name": "other"}}, "metadata.name"),
        ({"spec": {"group": "nodots"}}, "spec.group"),
        ({"spec": {"scope": "Everywhere"}}, "spec.scope"),
        ({"spec": {"scope": None}}, "spec.scope"),
        ({"spec": {"names": {"kind": None}}}, "spec.names.kind"),
        ({"spec": {"names": {"plural": "Two Words"}}}, "spec.names.plural"),
        ({"spec": {"names": {"shortNames": ["UP"]}}}, "spec.names.shortNames[0]"),
        ({"spec": {"versions": []}}, "spec.versions"),
        ({"spec": {"versions": [{"name": "v1"}]}}, "spec.versions[0].schema.openAPIV3Schema"),
    ],
)
def test_a_bad_definition_is_refused_at_its_field(change: Object, field: str) -> None:
    cluster = Cluster()
    bad = definition()
    for part, values in change.items():
        for name, value in values.items():
            bad[part][name] = {**bad[part].get(name, {}), **value} if isinstance(value, dict) else value
    assert field in fields(cluster.ask(Create(pack(bad))))


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ({"type": "string"}, "type"),
        ({}, "type"),
        ({"type": "object", "properties": {"spec": {}}}, "properties[spec].type"),
        ({"type": "object", "properties": {"spec": {"type": "text"}}}, "properties[spec].type"),
        ({"type": "object", "properties": {"l": {"type": "array"}}}, "properties[l].items"),
        ({"type": "object", "properties": {"s": {"type": "string", "pattern": "("}}}, "properties[s].pattern"),
        ({"type": "object", "properties": {"n": {"type": "integer", "minimum": "1"}}}, "properties[n].minimum"),
        ({"type": "object", "properties": {"n": {"type": "integer", "enum": 3}}}, "properties[n].enum"),
        ({"type": "object", "properties": {"n": {"type": ["integer"]}}}, "properties[n].type"),
        ({"type": "object", "required": "spec"}, "required"),
        ({"type": "object", "properties": {"s": 1}}, "properties[s]"),
        ({"type": "object", "properties": {"s": {"type": "string", "format": []}}}, "properties[s].format"),
    ],
)
def test_a_schema_that_is_not_structural_is_refused(schema: Object, where: str) -> None:
    bad = definition()
    bad["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
    assert f"spec.versions[0].schema.openAPIV3Schema.{where}" in fields(Cluster().ask(Create(pack(bad))))


def test_exactly_one_version_is_stored() -> None:
    for stored in ((True, True), (False, False)):
        bad = definition()
        first = bad["spec"]["versions"][0]
        bad["spec"]["versions"] = [
            {**deepcopy(first), "name": name, "storage": each} for name, each in zip(("v1", "v2"), stored, strict=True)
        ]
        assert fields(Cluster().ask(Create(pack(bad)))) == ["spec.versions"]


def test_a_name_that_is_taken_is_not_served_twice(cluster: Cluster) -> None:
    second = cluster.create(definition("Gadget", "gadgets", shortNames=["widget"]))
    assert conditions(second) == {"NamesAccepted": "False", "Established": "False"}
    assert '"widget" is already in use' in second["status"]["conditions"][0]["message"]
    assert cluster.store.kinds.by_key("Gadget.example.com") is None
    cluster.create(widget())
    cluster.delete(CRD, "gadgets.example.com", "")
    assert cluster.exists(KEY, "w")


def test_group_scope_kind_and_plural_stay(cluster: Cluster) -> None:
    for patch, field in (
        ({"spec": {"scope": "Cluster"}}, "spec.scope"),
        ({"spec": {"group": "other.com"}}, "spec.group"),
        ({"spec": {"names": {"kind": "Other"}}}, "spec.names.kind"),
    ):
        assert field in fields(cluster.patch(CRD, "widgets.example.com", patch, ""))


def test_a_stored_version_may_not_be_taken_out(cluster: Cluster) -> None:
    found = cluster.get(CRD, "widgets.example.com", "")
    found["spec"]["versions"][0]["name"] = "v2"
    assert "status.storedVersions[0]" in fields(cluster.ask(Update(pack(found))))


def test_a_definition_of_a_built_in_kind_is_accepted_and_changes_nothing() -> None:
    cluster = Cluster()
    before = [(row.key, row.plural) for row in cluster.store.kinds.rows()]
    taken = cluster.create(definition("Queue", "queues", "scheduling.volcano.sh", scope="Cluster"))
    assert conditions(taken)["Established"] == "True"
    assert [(row.key, row.plural) for row in cluster.store.kinds.rows()] == before


# --- its objects


def test_objects_live_as_any_other(cluster: Cluster) -> None:
    created = cluster.create(widget(note="x"))
    assert created["metadata"]["generation"] == 1
    assert isinstance(cluster.patch(KEY, "w", {"spec": {"size": 3}}), Accepted)
    assert cluster.get(KEY, "w")["metadata"]["generation"] == 2
    assert isinstance(cluster.status(KEY, "w", {"ready": True}), Accepted)
    found = cluster.get(KEY, "w")
    assert (found["status"], found["metadata"]["generation"]) == ({"ready": True}, 2)
    opened = cluster.ask(OpenListing(KEY))
    assert isinstance(opened, ListingOpened)
    assert [unpack(blob)["metadata"]["name"] for blob in cluster.store.listings.take(opened.handle)] == ["w"]
    assert isinstance(cluster.delete(KEY, "w"), Accepted)
    assert not cluster.exists(KEY, "w")


def test_unknown_fields_go_and_defaults_come(cluster: Cluster) -> None:
    spec = cluster.create(
        widget(strange=1, free={"anything": [1]}, labels={"a": "b"}, parts=[{"name": "p", "odd": 1}], note=None)
    )["spec"]
    assert spec == {
        "size": 1,
        "mode": "fast",
        "free": {"anything": [1]},
        "labels": {"a": "b"},
        "parts": [{"name": "p", "weight": 1}],
        "note": None,
    }


@pytest.mark.parametrize(
    ("spec", "field", "words"),
    [
        ({"size": "3"}, "spec.size", 'spec.size in body must be of type integer: "string"'),
        ({"size": 0}, "spec.size", "spec.size in body should be greater than or equal to 1"),
        ({"size": 11}, "spec.size", "spec.size in body should be less than or equal to 10"),
        ({"size": 1.5}, "spec.size", "must be of type integer"),
        ({"size": None}, "spec.size", "Required value"),
        ({"mode": "idle"}, "spec.mode", 'Unsupported value: "idle": supported values: "fast", "slow"'),
        ({"cron": "x"}, "spec.cron", "spec.cron in body should match"),
        ({"port": True}, "spec.port", "must be of type integer,string"),
        ({"labels": {"a": 1}}, "spec.labels.a", "must be of type string"),
        ({"parts": [{"name": "a"}, {"name": "a"}]}, "spec.parts[1]", "Duplicate value"),
        ({"parts": [{"name": "a", "weight": "x"}]}, "spec.parts[0].weight", "must be of type number"),
    ],
)
def test_a_wrong_value_is_refused_at_its_field(cluster: Cluster, spec: Object, field: str, words: str) -> None:
    reply = cluster.ask(Create(pack(widget(**spec))))
    assert fields(reply) == [field]
    assert isinstance(reply, Refused)
    assert words in reply.message
    cluster.create(widget("good"))
    patched = cluster.patch(KEY, "good", {"spec": spec})
    assert fields(patched) == [field]


def test_a_strategic_patch_is_not_for_defined_kinds(cluster: Cluster) -> None:
    cluster.create(widget())
    reply = cluster.ask(Patch(KEY, "default", "w", pack({"spec": {"size": 2}}), form="strategic"))
    assert isinstance(reply, Refused)
    assert (reply.code, reply.reason) == (415, "UnsupportedMediaType")


def test_every_served_version_is_taken_and_stored_as_one() -> None:
    cluster = Cluster()
    two = definition()
    old = deepcopy(two["spec"]["versions"][0]) | {"name": "v1alpha1", "storage": False}
    gone = deepcopy(two["spec"]["versions"][0]) | {"name": "v0", "storage": False, "served": False}
    two["spec"]["versions"] += [old, gone]
    cluster.create(two)
    created = cluster.create(widget() | {"apiVersion": "example.com/v1alpha1"})
    assert created["apiVersion"] == "example.com/v1"
    row = cluster.store.kinds.by_resource("example.com", "v1alpha1", "widgets")
    assert row is not None
    assert row.served_versions == ("v1", "v1alpha1")
    assert cluster.refused(widget("other") | {"apiVersion": "example.com/v0"}).code == 404


def test_deleting_the_definition_deletes_its_objects(cluster: Cluster) -> None:
    cluster.create(widget("a"))
    cluster.create(widget("b"))
    cluster.delete(CRD, "widgets.example.com", "")
    assert not cluster.exists(CRD, "widgets.example.com", "")
    assert cluster.store.kinds.by_key(KEY) is None
    assert cluster.store.tables.count(KEY) == 0
    assert cluster.refused(widget("c")).code == 404


def test_a_definition_waits_for_objects_with_finalizers(cluster: Cluster) -> None:
    held = widget()
    held["metadata"]["finalizers"] = ["example.com/wait"]
    cluster.create(held)
    cluster.delete(CRD, "widgets.example.com", "")
    assert "deletionTimestamp" in cluster.get(CRD, "widgets.example.com", "")["metadata"]
    assert cluster.refused(widget("new")).reason == "MethodNotAllowed"
    cluster.patch(KEY, "w", {"metadata": {"finalizers": None}})
    assert not cluster.exists(KEY, "w")
    assert not cluster.exists(CRD, "widgets.example.com", "")


def test_kinds_come_back_with_the_journal(cluster: Cluster) -> None:
    cluster.create(widget())
    cluster.restart()
    assert cluster.exists(KEY, "w")
    cluster.create(widget("after"))
    cluster.ask(Delete(CRD, "", "widgets.example.com"))
    cluster.restart()
    assert cluster.store.kinds.by_key(KEY) is None
