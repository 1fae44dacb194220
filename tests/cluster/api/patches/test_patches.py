"""Patches of every form, subresources and dry runs: what changes, what stays, and who is told that it may not."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.messages.commands import Create, Patch, Update
from pumice.core.messages.replies import Accepted, ApiReply, Refused
from pumice.core.objects.metadata import Object
from pumice.storage.codec import pack, unpack
from tests.actors.cluster import Cluster
from tests.kit.nodes import node
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.queues import queue


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster()
    found.create(pod("p"))
    found.create(node("n1"))
    found.create(queue("q"))
    found.create(pod_group("g"))
    return found


def patch(cluster: Cluster, kind: str, name: str, body: Any, form: str = "merge", **more: Any) -> ApiReply:
    return cluster.ask(Patch(kind, "default", name, pack(body), form=form, **more))


def accepted(reply: ApiReply) -> Object:
    assert isinstance(reply, Accepted), reply
    found: Object = unpack(reply.blob)
    return found


def refused(reply: ApiReply) -> tuple[int, str, str]:
    assert isinstance(reply, Refused), reply
    return reply.code, reply.reason, reply.message


# --- JSON patches


def test_operations_apply_in_order(cluster: Cluster) -> None:
    body: list[Object] = [
        {"op": "add", "path": "/metadata/labels", "value": {}},
        {"op": "add", "path": "/metadata/labels/example.com~1a", "value": "1"},
        {"op": "copy", "from": "/metadata/labels/example.com~1a", "path": "/metadata/labels/b"},
        {"op": "test", "path": "/metadata/name", "value": "p"},
    ]
    assert accepted(patch(cluster, "Pod", "p", body, "json"))["metadata"]["labels"] == {"example.com/a": "1", "b": "1"}


@pytest.mark.parametrize(
    "body",
    [
        [{"op": "test", "path": "/metadata/name", "value": "other"}],
        [{"op": "remove", "path": "/spec/nothing"}],
        [{"op": "add", "path": "/spec/containers/9", "value": {}}],
        [{"op": "dance", "path": "/spec"}],
        [{"path": "/spec"}],
        [{"op": "add", "path": "spec", "value": 1}],
        [{"op": "remove", "path": "/metadata"}],
        [{"op": "replace", "path": "", "value": 3}],
        ["add"],
        [None],
    ],
)
def test_operations_that_do_not_apply_change_nothing(cluster: Cluster, body: Any) -> None:
    before = cluster.get("Pod", "p")
    assert refused(patch(cluster, "Pod", "p", body, "json"))[:2] == (422, "Invalid")
    assert cluster.get("Pod", "p") == before


@pytest.mark.parametrize(
    ("operation", "told"),
    [
        ({"op": "test", "path": "/metadata", "value": [1]}, "testing a value failed: it is another one"),
        ({"op": "add", "path": "/a/b", "value": 1}, "member 'a' not found"),
        ({"op": "add", "path": "/kind/b", "value": 1}, "a path leads through a value that is neither a map nor a list"),
        ({"op": "move", "path": "/a", "from": "/b"}, "'b' does not exist"),
        ({"op": "remove", "path": "/a"}, "can't remove a non-existent object 'a'"),
    ],
)
def test_what_is_wrong_with_an_operation_is_told_shortly(cluster: Cluster, operation: Object, told: str) -> None:
    reply = patch(cluster, "Pod", "p", [operation], "json")
    assert isinstance(reply, Refused)
    assert reply.message == f"the server rejected our request due to an error in our request: {told}"


def test_a_json_patch_is_a_list_and_not_too_long(cluster: Cluster) -> None:
    assert refused(patch(cluster, "Pod", "p", {"op": "add"}, "json"))[:2] == (400, "BadRequest")
    many = [{"op": "test", "path": "/metadata/name", "value": "p"}] * 10_001
    assert refused(patch(cluster, "Pod", "p", many, "json"))[:2] == (413, "RequestEntityTooLarge")


def test_a_null_in_an_operation_is_an_absent_field(cluster: Cluster) -> None:
    body = [{"op": "add", "path": "/spec/nodeSelector", "value": None}]
    assert "nodeSelector" not in accepted(patch(cluster, "Pod", "p", body, "json"))["spec"]


# --- strategic patches


def test_a_strategic_patch_merges_lists_by_key(cluster: Cluster) -> None:
    body = {
        "spec": {"containers": [{"name": cluster.get("Pod", "p")["spec"]["containers"][0]["name"], "image": "new"}]}
    }
    found = accepted(patch(cluster, "Pod", "p", body, "strategic"))["spec"]["containers"]
    assert (len(found), found[0]["image"]) == (1, "new")
    assert "resources" in found[0]


@pytest.mark.parametrize(("kind", "name"), [("Queue", "q"), ("PodGroup", "g")])
def test_volcanos_kinds_take_no_strategic_patch(cluster: Cluster, kind: str, name: str) -> None:
    code, reason, message = refused(patch(cluster, kind, name, {}, "strategic"))
    assert (code, reason) == (415, "UnsupportedMediaType")
    assert "application/merge-patch+json" in message


# --- what a patch may not do


def test_a_stale_revision_in_the_patch_is_a_conflict(cluster: Cluster) -> None:
    old = cluster.get("Pod", "p")["metadata"]["resourceVersion"]
    accepted(patch(cluster, "Pod", "p", {"metadata": {"labels": {"a": "b"}, "resourceVersion": old}}))
    body = {"metadata": {"labels": {"a": "c"}, "resourceVersion": old}}
    assert refused(patch(cluster, "Pod", "p", body))[:2] == (409, "Conflict")


@pytest.mark.parametrize("body", [{"kind": "Node"}, {"apiVersion": "v2"}, {"metadata": {"name": "other"}}])
def test_a_patch_makes_no_other_object(cluster: Cluster, body: Object) -> None:
    assert refused(patch(cluster, "Pod", "p", body))[:2] == (400, "BadRequest")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "metadata",
                        "spec",
                        "status",
                        "name",
                        "labels",
                        "containers",
                        "finalizers",
                        "ownerReferences",
                        "resources",
                        "kind",
                        "conditions",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ),
    st.sampled_from(["merge", "strategic", "json", "apply"]),
    st.sampled_from(["", "status"]),
)
def test_no_patch_is_too_odd_for_an_answer(body: Any, form: str, subresource: str) -> None:
    cluster = Cluster()
    for obj in (pod("p"), queue("p"), pod_group("p"), node("p")):
        cluster.create(obj)
    for kind in ("Pod", "Queue", "PodGroup", "Node"):
        reply = cluster.ask(Patch(kind, "default", "p", pack(body), form=form, subresource=subresource, manager="m"))
        assert isinstance(reply, Accepted) or (isinstance(reply, Refused) and reply.code < 500)


# --- subresources


def test_the_status_is_written_on_its_own_path_only(cluster: Cluster) -> None:
    body = {"spec": {"activeDeadlineSeconds": 5}, "status": {"phase": "Running"}}
    found = accepted(patch(cluster, "Pod", "p", body))
    assert (found["spec"]["activeDeadlineSeconds"], found["status"]["phase"]) == (5, "Pending")
    body["spec"] = {"activeDeadlineSeconds": 4}
    found = accepted(patch(cluster, "Pod", "p", body, subresource="status"))
    assert (found["spec"]["activeDeadlineSeconds"], found["status"]["phase"]) == (5, "Running")
    assert found["metadata"]["generation"] == 2


OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}


def test_labels_and_annotations_come_along_with_a_status(cluster: Cluster) -> None:
    meta = {"annotations": {"a": "1"}, "labels": {"l": "1"}, "ownerReferences": [OWNER]}
    found = accepted(patch(cluster, "Pod", "p", {"metadata": meta, "status": {}}, subresource="status"))
    assert (found["metadata"]["annotations"], found["metadata"]["labels"]) == ({"a": "1"}, {"l": "1"})
    assert "ownerReferences" not in found["metadata"], "of pods those are kept"
    assert found["metadata"]["uid"] == cluster.get("Pod", "p")["metadata"]["uid"]
    bad = {"metadata": {"labels": {"l": "no label"}}}
    assert refused(patch(cluster, "Pod", "p", bad, subresource="status"))[:2] == (422, "Invalid")


def test_of_custom_kinds_nothing_comes_along_with_a_status(cluster: Cluster) -> None:
    body = {"metadata": {"annotations": {"a": "1"}}, "status": {"state": "Closed"}}
    found = accepted(patch(cluster, "Queue", "q", body, subresource="status"))
    assert found["status"]["state"] == "Closed"
    assert "a" not in found["metadata"].get("annotations", {})


def test_so_it_is_with_whole_objects(cluster: Cluster) -> None:
    given_ = cluster.get("Queue", "q", "")
    given_["spec"]["weight"], given_["status"]["state"] = 7, "Closed"
    found = accepted(cluster.ask(Update(pack(given_), subresource="status")))
    assert (found["spec"]["weight"], found["status"]["state"]) == (1, "Closed")
    given_["metadata"]["resourceVersion"] = ""
    given_["status"]["state"] = "Open"
    found = accepted(cluster.ask(Update(pack(given_))))
    assert (found["spec"]["weight"], found["status"]["state"]) == (7, "Closed")


def test_a_pod_group_has_its_status_on_the_main_path(cluster: Cluster) -> None:
    found = accepted(patch(cluster, "PodGroup", "g", {"status": {"phase": "Inqueue"}}))
    assert found["status"]["phase"] == "Inqueue"
    code, reason, _ = refused(patch(cluster, "PodGroup", "g", {"status": {}}, subresource="status"))
    assert (code, reason) == (404, "NotFound")


def test_a_node_without_status_keeps_the_one_it_has(cluster: Cluster) -> None:
    given_ = cluster.get("Node", "n1", "")
    status = given_.pop("status")
    given_["spec"] = {"unschedulable": True}
    assert accepted(cluster.ask(Update(pack(given_))))["status"] == status
    given_ = cluster.get("Node", "n1", "")
    given_["status"]["allocatable"]["cpu"] = "1"
    assert accepted(cluster.ask(Update(pack(given_))))["status"]["allocatable"]["cpu"] == "1"


# --- dry runs, and changes that change nothing


@pytest.mark.parametrize("form", ["merge", "strategic"])
def test_a_dry_run_shows_and_writes_nothing(cluster: Cluster, form: str) -> None:
    before = cluster.store.revision
    found = accepted(patch(cluster, "Pod", "p", {"metadata": {"labels": {"a": "b"}}}, form, dry_run=True))
    assert found["metadata"]["labels"] == {"a": "b"}
    changed = deepcopy(cluster.get("Pod", "p"))
    changed["metadata"]["labels"] = {"c": "d"}
    assert accepted(cluster.ask(Update(pack(changed), dry_run=True)))["metadata"]["labels"] == {"c": "d"}
    assert (cluster.store.revision, "labels" in cluster.get("Pod", "p")["metadata"]) == (before, False)


def test_a_dry_run_ends_no_deletion(cluster: Cluster) -> None:
    held = pod("held")
    held["metadata"]["finalizers"] = ["example.com/wait"]
    cluster.create(held)
    cluster.delete("Pod", "held")
    accepted(patch(cluster, "Pod", "held", {"metadata": {"finalizers": None}}, dry_run=True))
    assert cluster.exists("Pod", "held")
    accepted(patch(cluster, "Pod", "held", {"metadata": {"finalizers": None}}))
    assert not cluster.exists("Pod", "held")


@pytest.mark.parametrize(("body", "form"), [({}, "merge"), ({}, "strategic"), ([], "json"), ({"spec": {}}, "merge")])
def test_what_changes_nothing_is_no_news(cluster: Cluster, body: Any, form: str) -> None:
    before = cluster.store.revision
    found = accepted(patch(cluster, "Pod", "p", body, form))
    accepted(cluster.ask(Update(pack(found))))
    accepted(cluster.ask(Update(pack(found), subresource="status")))
    assert cluster.store.revision == before


@given(st.lists(st.tuples(st.sampled_from(["spec", "status", "metadata", "nothing"]), st.integers(1, 3)), max_size=12))
def test_generations_count_changes_of_the_spec(steps: list[tuple[str, int]]) -> None:
    cluster = Cluster()
    cluster.ask(Create(pack(queue("q"))))
    weight, generation = 1, 1
    for what, number in steps:
        bodies: dict[str, Object] = {
            "spec": {"spec": {"weight": number}},
            "status": {"status": {"state": "Closed"}},
            "metadata": {"metadata": {"labels": {"a": str(number)}}},
            "nothing": {},
        }
        accepted(patch(cluster, "Queue", "q", bodies[what], subresource="status" if what == "status" else ""))
        if what == "spec" and number != weight:
            weight, generation = number, generation + 1
        assert cluster.get("Queue", "q", "")["metadata"]["generation"] == generation
