"""Server-side apply through the store: created, merged, refused, owned, and given up."""

from typing import Any

import pytest

from pumice.core.messages.commands import Create, Patch, Update
from pumice.core.messages.replies import Accepted, ApiReply, Refused
from pumice.core.objects.metadata import Object
from pumice.storage.codec import pack, unpack
from tests.actors.cluster import Cluster
from tests.kit.definitions import definition, widget
from tests.kit.queues import queue


def config_map(**data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}


def ask(cluster: Cluster, config: Object, manager: str = "me", kind: str = "", **more: Any) -> ApiReply:
    name = config["metadata"]["name"]
    return cluster.ask(
        Patch(kind or config["kind"], "default", name, pack(config), form="apply", manager=manager, **more)
    )


def applied(reply: ApiReply) -> tuple[Object, bool]:
    assert isinstance(reply, Accepted), reply
    return unpack(reply.blob), reply.created


def owners(obj: Object) -> list[tuple[str, str, str]]:
    entries = obj["metadata"].get("managedFields", [])
    return [(each["manager"], each["operation"], each.get("subresource", "")) for each in entries]


def test_what_is_not_there_is_created_with_its_owner(cluster: Cluster) -> None:
    found, created = applied(ask(cluster, config_map(a="1")))
    assert (created, found["metadata"]["namespace"], owners(found)) == (True, "default", [("me", "Apply", "")])
    assert cluster.get("ConfigMap", "c") == found


def test_the_same_again_changes_nothing(cluster: Cluster) -> None:
    ask(cluster, config_map(a="1"))
    before = cluster.store.revision
    _, created = applied(ask(cluster, config_map(a="1")))
    assert (created, cluster.store.revision) == (False, before)


def test_who_makes_an_object_under_a_name_owns_its_fields(cluster: Cluster) -> None:
    reply = cluster.ask(Create(pack({**config_map(a="1", b="2"), "status": {}}), user="kubectl", manager="maker"))
    found, _ = applied(reply)
    assert owners(found) == [("maker", "Update", "")]
    (entry,) = found["metadata"]["managedFields"]
    assert entry["fieldsV1"]["f:data"] == {".": {}, "f:a": {}, "f:b": {}}
    refused = ask(cluster, config_map(a="2"))
    assert isinstance(refused, Refused)
    assert refused.message == 'Apply failed with 1 conflict: conflict with "maker" using v1: .data.a'
    changed = Patch("ConfigMap", "default", "c", pack({"data": {"b": "3"}}), user="other")
    assert owners(applied(cluster.ask(changed))[0]) == [("maker", "Update", ""), ("other", "Update", "")]


def test_who_makes_an_object_without_a_name_came_before_all_who_apply(cluster: Cluster) -> None:
    assert owners(applied(cluster.ask(Create(pack(config_map(a="1")), user="agent")))[0]) == []
    refused = ask(cluster, config_map(a="2"))
    assert isinstance(refused, Refused)
    assert 'conflict with "before-first-apply" using v1: .data.a' in refused.message


def test_what_is_no_longer_applied_goes(cluster: Cluster) -> None:
    ask(cluster, config_map(a="1", b="2"))
    cluster.patch("ConfigMap", "c", {"data": {"mine": "3"}})
    found, _ = applied(ask(cluster, config_map(a="1")))
    assert found["data"] == {"a": "1", "mine": "3"}


def test_what_another_owns_is_a_conflict_unless_forced(cluster: Cluster) -> None:
    ask(cluster, config_map(a="1"))
    reply = ask(cluster, config_map(a="2"), "you")
    assert isinstance(reply, Refused)
    assert (reply.code, reply.reason) == (409, "Conflict")
    assert [cause["reason"] for cause in reply.details["causes"]] == ["FieldManagerConflict"]
    assert cluster.get("ConfigMap", "c")["data"] == {"a": "1"}
    found, _ = applied(ask(cluster, config_map(a="2"), "you", force=True))
    assert (found["data"], owners(found)) == ({"a": "2"}, [("you", "Apply", "")])


def test_who_updates_an_applied_object_owns_what_it_changed(cluster: Cluster) -> None:
    ask(cluster, config_map(a="1", b="2"))
    obj = cluster.get("ConfigMap", "c")
    obj["data"]["a"] = "3"
    cluster.ask(Update(pack(obj), manager="editor"))
    found = cluster.get("ConfigMap", "c")
    assert owners(found) == [("me", "Apply", ""), ("editor", "Update", "")]
    assert isinstance(ask(cluster, config_map(a="1", b="2")), Refused)


def test_who_was_never_applied_has_no_owners(cluster: Cluster) -> None:
    cluster.create(config_map(a="1"))
    cluster.patch("ConfigMap", "c", {"data": {"a": "2"}, "metadata": {"managedFields": [{"manager": "x"}]}})
    assert "managedFields" not in cluster.get("ConfigMap", "c")["metadata"]


def test_owners_can_be_cleared_and_not_invented(cluster: Cluster) -> None:
    ask(cluster, config_map(a="1"))
    cluster.patch("ConfigMap", "c", {"metadata": {"managedFields": []}})
    assert owners(cluster.get("ConfigMap", "c")) == [("me", "Apply", "")]
    cluster.patch("ConfigMap", "c", {"metadata": {"managedFields": [{}]}})
    assert owners(cluster.get("ConfigMap", "c")) == []


def test_an_object_with_a_uid_is_not_made(cluster: Cluster) -> None:
    made = config_map(a="1")
    made["metadata"]["uid"] = "u"
    reply = ask(cluster, made)
    assert isinstance(reply, Refused)
    assert (reply.code, cluster.exists("ConfigMap", "c")) == (409, False)
    assert "uid mismatch: the provided object specified uid u, and no existing object was found" in reply.message


def test_a_dry_run_writes_nothing(cluster: Cluster) -> None:
    _, created = applied(ask(cluster, config_map(a="1"), dry_run=True))
    assert (created, cluster.exists("ConfigMap", "c")) == (True, False)
    ask(cluster, config_map(a="1"))
    before = cluster.store.revision
    found, _ = applied(ask(cluster, config_map(a="2"), dry_run=True))
    assert (found["data"], cluster.store.revision) == ({"a": "2"}, before)


def test_admission_judges_what_is_applied(cluster: Cluster) -> None:
    plain = queue("q")
    del plain["metadata"]["uid"]
    reply = ask(cluster, plain | {"spec": {"weight": -1}})
    assert isinstance(reply, Refused)
    assert (reply.code, cluster.exists("Queue", "q", "")) == (422, False)
    found, _ = applied(ask(cluster, plain | {"spec": {"weight": 3}}))
    assert (found["spec"]["parent"], found["status"]["state"]) == ("root", "Open")


def test_a_controller_applies_a_status_that_nobody_owns(cluster: Cluster) -> None:
    """As Volcano's queue controller closes queues: without force, on an object made otherwise."""
    cluster.create(queue("q"))
    cluster.status("Queue", "q", {"allocated": {"cpu": "1"}})
    closed = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "q"},
        "status": {"state": "Closed"},
    }
    found, created = applied(ask(cluster, closed, "queue-controller", subresource="status"))
    assert (created, found["status"]) == (False, {"state": "Closed", "allocated": {"cpu": "1"}})
    assert ("queue-controller", "Apply", "status") in owners(found)
    opened = closed | {"status": {"state": "Open"}}
    found, _ = applied(ask(cluster, opened, "queue-controller", subresource="status"))
    assert (found["status"]["state"], found["spec"]["weight"]) == ("Open", 1)


def test_no_status_is_created_on_its_own(cluster: Cluster) -> None:
    reply = ask(cluster, queue("q"), subresource="status")
    assert isinstance(reply, Refused)
    assert reply.code == 404


def test_defined_kinds_merge_by_their_own_schema(cluster: Cluster) -> None:
    cluster.create(definition())
    kind = "Widget.example.com"
    one = widget(parts=[{"name": "a", "weight": 2}])
    other = widget(parts=[{"name": "b", "weight": 3}])
    applied(ask(cluster, one, "one", kind))
    found, _ = applied(ask(cluster, other, "other", kind))
    assert [part["name"] for part in found["spec"]["parts"]] == ["a", "b"]
    assert found["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "Secret"},
        {"apiVersion": None},
        {"metadata": {"name": "c", "namespace": "elsewhere"}},
        {"metadata": {"name": "c", "managedFields": []}},
        {"metadata": "c"},
    ],
)
def test_a_configuration_of_something_else_is_refused(cluster: Cluster, change: Object) -> None:
    config = config_map(a="1") | change
    reply = cluster.ask(Patch("ConfigMap", "default", "c", pack(config), form="apply", manager="me"))
    assert isinstance(reply, Refused)
    assert reply.code == 400


def test_somebody_has_to_own_it(cluster: Cluster) -> None:
    reply = ask(cluster, config_map(a="1"), "")
    assert isinstance(reply, Refused)
    assert "fieldManager" in reply.message
