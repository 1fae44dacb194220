"""The store: what it stamps, what it refuses, and in whose words."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.api.store import Store
from pumice.core.messages.commands import Create, Get, List, Update, UpdateStatus
from pumice.core.messages.replies import Accepted, ApiReply, Listing, Refused
from pumice.core.objects.metadata import Object
from pumice.storage.codec import pack, unpack
from tests.actors.cluster import START, Cluster
from tests.kit.nodes import node
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.queues import queue


def refusal(reply: ApiReply) -> tuple[int, str, str]:
    assert isinstance(reply, Refused), reply
    return reply.code, reply.reason, reply.message


def update(cluster: Cluster, obj: Object) -> ApiReply:
    return cluster.ask(Update(pack(obj)))


# --- what the server stamps


def test_a_new_object_is_stamped(cluster: Cluster) -> None:
    before = cluster.store.revision
    meta = cluster.create(pod("p"))["metadata"]
    assert meta["resourceVersion"] == str(before + 1)
    assert meta["generation"] == 1
    assert meta["creationTimestamp"] == "2023-11-14T22:13:20Z"
    assert len(meta["uid"]) == 36


def test_what_only_the_server_may_say_is_not_taken_from_a_client(cluster: Cluster) -> None:
    given_ = pod("p", uid="mine", created="2001-01-01T00:00:00Z")
    given_["metadata"] |= {"generation": 9, "deletionTimestamp": "2001-01-01T00:00:00Z", "managedFields": []}
    meta = cluster.create(given_)["metadata"]
    assert meta["uid"] != "mine"
    assert meta["creationTimestamp"] != "2001-01-01T00:00:00Z"
    assert meta["generation"] == 1
    assert "deletionTimestamp" not in meta
    assert "managedFields" not in meta


def test_same_requests_same_seed_same_bytes() -> None:
    def run(seed: int) -> list[bytes]:
        store = Store(seed=seed)
        for index in range(5):
            store.create(pack({**node(f"n{index}"), "metadata": {"generateName": "n-"}}), START)
        listing = store.list("Node")
        assert isinstance(listing, Listing)
        return list(listing.blobs)

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_generated_names_differ(cluster: Cluster) -> None:
    template = node("x") | {"metadata": {"generateName": "worker-"}}
    names = {cluster.create(template)["metadata"]["name"] for _ in range(50)}
    assert len(names) == 50
    assert all(name.startswith("worker-") and len(name) == len("worker-") + 5 for name in names)


def test_a_namespaced_object_without_namespace_is_in_default_and_others_in_none(cluster: Cluster) -> None:
    no_namespace = pod("p")
    del no_namespace["metadata"]["namespace"]
    assert cluster.create(no_namespace)["metadata"]["namespace"] == "default"
    wrong = node("n")
    wrong["metadata"]["namespace"] = "default"
    assert "namespace" not in cluster.create(wrong)["metadata"]


def test_older_versions_are_stored_as_the_present_one(cluster: Cluster) -> None:
    old = pod_group("g") | {"apiVersion": "scheduling.incubator.k8s.io/v1alpha1"}
    assert cluster.create(old)["apiVersion"] == "scheduling.volcano.sh/v1beta1"


def test_nulls_are_absent_fields(cluster: Cluster) -> None:
    with_nulls = pod("p")
    with_nulls["spec"] |= {"nodeSelector": None, "tolerations": None}
    with_nulls["metadata"]["labels"] = None
    stored = cluster.create(with_nulls)
    assert "nodeSelector" not in stored["spec"]
    assert "labels" not in stored["metadata"]


def test_a_pod_as_a_typed_client_writes_it_back_is_no_change(cluster: Cluster) -> None:
    given = pod("p")
    given["spec"]["containers"][0] |= {"args": [], "env": [{"name": "A", "value": ""}], "stdin": False}
    stored = cluster.create(given)
    back = copy.deepcopy(stored)
    back["status"]["hostIP"] = ""
    (container,) = back["spec"]["containers"]
    del container["args"], container["env"][0]["value"], container["stdin"]
    before = cluster.store.revision
    assert isinstance(update(cluster, back), Accepted)
    assert cluster.store.revision == before
    assert cluster.get("Pod", "p") == stored


def test_a_dry_run_changes_nothing(cluster: Cluster) -> None:
    before = cluster.store.revision
    reply = cluster.ask(Create(pack(pod("p")), dry_run=True))
    assert isinstance(reply, Accepted)
    assert unpack(reply.blob)["spec"]["priority"] == 0
    assert cluster.store.revision == before
    assert not cluster.exists("Pod", "p")


# --- refusals, in Kubernetes' words


def test_unknown_kinds_are_named(cluster: Cluster) -> None:
    reply = cluster.ask(Create(pack({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x"}})))
    assert refusal(reply) == (404, "NotFound", 'no matches for kind "Thing" in version "example.com/v1"')
    assert refusal(cluster.ask(List("Thing")))[:2] == (404, "NotFound")
    assert refusal(cluster.ask(Get("Thing", "", "x")))[:2] == (404, "NotFound")


@pytest.mark.parametrize("blob", [b"", b"\xc1", pack([1]), pack("text")])
def test_what_is_no_object_is_a_bad_request(cluster: Cluster, blob: bytes) -> None:
    assert refusal(cluster.ask(Create(blob)))[:2] == (400, "BadRequest")


def test_absent_objects(cluster: Cluster) -> None:
    assert refusal(cluster.ask(Get("Pod", "default", "p"))) == (404, "NotFound", 'pods "p" not found')
    message = 'queues.scheduling.volcano.sh "q" not found'
    assert refusal(cluster.delete("Queue", "q")) == (404, "NotFound", message)
    assert refusal(cluster.patch("Pod", "p", {}))[0] == 404
    assert refusal(cluster.status("Pod", "p", {}))[0] == 404
    assert refusal(update(cluster, pod("p")))[0] == 404


def test_twice_is_a_conflict(cluster: Cluster) -> None:
    cluster.create(pod("p"))
    assert refusal(cluster.ask(Create(pack(pod("p"))))) == (409, "AlreadyExists", 'pods "p" already exists')


@pytest.mark.parametrize(
    ("meta", "field"),
    [
        ({}, "metadata.name"),
        ({"name": "Big"}, "metadata.name"),
        ({"name": "a" * 254}, "metadata.name"),
        ({"name": "p", "namespace": "a b"}, "metadata.namespace"),
        ({"name": "p", "labels": {"a b": "c"}}, "metadata.labels"),
        ({"name": "p", "labels": {"a": "c d"}}, "metadata.labels"),
        ({"name": "p", "labels": {"y": True}}, "metadata.labels[y]"),
        ({"name": "p", "annotations": {"a/b/c": "x"}}, "metadata.annotations"),
        ({"name": "p", "annotations": {"a": "x" * 300_000}}, "metadata.annotations"),
        ({"name": 5}, "metadata.name"),
    ],
)
def test_metadata_is_checked(cluster: Cluster, meta: Object, field: str) -> None:
    reply = cluster.refused(pod("p") | {"metadata": meta})
    assert (reply.code, reply.reason) == (422, "Invalid")
    assert [cause["field"] for cause in reply.details["causes"]] == [field]
    assert reply.message.startswith('Pod "')
    assert field in reply.message


def test_several_causes_are_all_named(cluster: Cluster) -> None:
    reply = cluster.refused(pod("p") | {"metadata": {"name": "P", "labels": {"a b": "c"}}})
    assert reply.message.startswith('Pod "P" is invalid: [metadata.name: Invalid value: "P": ')
    assert reply.details["kind"] == "Pod"
    assert len(reply.details["causes"]) == 2


# --- updates


def test_a_stale_version_is_a_conflict_and_the_present_one_is_not(cluster: Cluster) -> None:
    stale = cluster.create(node("n"))
    fresh = stale | {"spec": {"unschedulable": True}}
    assert isinstance(update(cluster, fresh), Accepted)
    words = (
        'Operation cannot be fulfilled on nodes "n": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert refusal(update(cluster, stale)) == (409, "Conflict", words)


def test_without_a_version_the_last_writer_wins(cluster: Cluster) -> None:
    cluster.create(node("n"))
    assert isinstance(update(cluster, node("n", labels={"a": "b"}) | {"spec": {}}), Refused)  # another uid
    nobodys = node("n", labels={"a": "b"})
    del nobodys["metadata"]["uid"]
    assert isinstance(update(cluster, nobodys), Accepted)
    assert cluster.get("Node", "n", "")["metadata"]["labels"]["a"] == "b"


def test_an_update_that_changes_nothing_changes_no_version(cluster: Cluster) -> None:
    stored = cluster.create(node("n"))
    before = cluster.store.revision
    assert isinstance(update(cluster, stored), Accepted)
    assert isinstance(cluster.patch("Node", "n", {"metadata": {"labels": {"absent": None}}}, ""), Accepted)
    assert isinstance(cluster.status("Node", "n", {}, ""), Accepted)
    assert cluster.store.revision == before


def test_the_generation_rises_with_the_spec_alone(cluster: Cluster) -> None:
    cluster.create(queue("q"))
    cluster.patch("Queue", "q", {"metadata": {"labels": {"a": "b"}}}, "")
    cluster.status("Queue", "q", {"allocated": {"cpu": "1"}}, "")
    assert cluster.get("Queue", "q", "")["metadata"]["generation"] == 1
    cluster.patch("Queue", "q", {"spec": {"weight": 2}}, "")
    assert cluster.get("Queue", "q", "")["metadata"]["generation"] == 2


def test_status_is_apart_where_there_is_a_subresource(cluster: Cluster) -> None:
    cluster.create(queue("q"))
    cluster.status("Queue", "q", {"allocated": {"cpu": "1"}}, "")
    changed = cluster.get("Queue", "q", "") | {"status": {"state": "Closed"}}
    changed["spec"] = changed["spec"] | {"weight": 3}
    assert isinstance(update(cluster, changed), Accepted)
    cluster.patch("Queue", "q", {"status": {"state": "Closed"}}, "")
    stored = cluster.get("Queue", "q", "")
    assert (stored["spec"]["weight"], stored["status"]) == (3, {"state": "Open", "allocated": {"cpu": "1"}})


def test_status_is_on_the_main_path_of_pod_groups(cluster: Cluster) -> None:
    group = cluster.create(pod_group("g", phase="Inqueue"))
    assert group["status"]["phase"] == "Inqueue"
    assert isinstance(update(cluster, group | {"status": {"phase": "Running"}}), Accepted)
    assert cluster.get("PodGroup", "g")["status"]["phase"] == "Running"


def test_a_status_patch_touches_nothing_else_and_keeps_to_its_version(cluster: Cluster) -> None:
    stored = cluster.create(pod_group("g"))
    version = stored["metadata"]["resourceVersion"]
    patch = pack({"phase": "Inqueue"})
    assert isinstance(cluster.ask(UpdateStatus("PodGroup", "default", "g", patch, version)), Accepted)
    assert refusal(cluster.ask(UpdateStatus("PodGroup", "default", "g", patch, version)))[:2] == (409, "Conflict")
    after = cluster.get("PodGroup", "g")
    assert after["spec"] == stored["spec"]
    assert after["metadata"] | {"resourceVersion": ""} == stored["metadata"] | {"resourceVersion": ""}


def test_identity_cannot_be_patched(cluster: Cluster) -> None:
    stored = cluster.create(node("n"))
    patch = {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z", "generation": 7, "labels": {"a": "b"}}}
    assert isinstance(cluster.patch("Node", "n", patch, ""), Accepted)
    meta = cluster.get("Node", "n", "")["metadata"]
    assert (meta["creationTimestamp"], meta["generation"]) == (stored["metadata"]["creationTimestamp"], 1)
    assert refusal(cluster.patch("Node", "n", {"metadata": {"uid": "other"}}, ""))[:2] == (409, "Conflict")


def test_a_patch_of_the_wrong_type_is_refused(cluster: Cluster) -> None:
    cluster.create(queue("q"))
    reply = cluster.patch("Queue", "q", {"spec": {"weight": "heavy"}}, "")
    assert isinstance(reply, Refused)
    assert reply.details["causes"][0]["field"] == "spec.weight"
    assert refusal(cluster.status("Queue", "q", {"state": 7}, ""))[:2] == (422, "Invalid")


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=30))
def test_optimistic_concurrency_loses_no_write(turns: list[tuple[int, bool]]) -> None:
    """Three writers add their letters to a label; every letter that was accepted is there at the end."""
    cluster = Cluster()
    cluster.create(node("n", labels={"written": ""}))
    held = [cluster.get("Node", "n", "") for _ in range(3)]
    accepted = ""
    for writer, read_first in turns:
        if read_first:
            held[writer] = cluster.get("Node", "n", "")
        mine = held[writer]
        letter = "abc"[writer]
        text = mine["metadata"]["labels"]["written"] + letter
        current = cluster.get("Node", "n", "")["metadata"]["resourceVersion"]
        reply = update(cluster, mine | {"metadata": mine["metadata"] | {"labels": {"written": text}}})
        assert isinstance(reply, Accepted) == (mine["metadata"]["resourceVersion"] == current)
        if isinstance(reply, Accepted):
            accepted += letter
            held[writer] = unpack(reply.blob)
    assert cluster.get("Node", "n", "")["metadata"]["labels"]["written"] == accepted
