"""What exists is loaded, what is asked for is created: two rules."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.cluster.api.names import uid_of
from pumice.cluster.api.origin import as_new, entering, is_recorded, unfinished
from pumice.cluster.api.store import Store
from pumice.core.messages.commands import Create, LoadObject
from pumice.core.messages.replies import Accepted, Refused
from pumice.storage.codec import pack, unpack
from tests.kit.nodes import node
from tests.kit.pods import pod

AGE = "2020-05-05T05:05:05Z"
QUEUE = "scheduling.volcano.sh/v1beta1"


def brought(store: Store, obj: dict[str, Any]) -> dict[str, Any]:
    reply = store.apply(entering(obj), 1_700_000_000.0)
    assert isinstance(reply, Accepted), reply
    found: dict[str, Any] = unpack(reply.blob)
    return found


def refusal(store: Store, obj: dict[str, Any]) -> str:
    reply = store.apply(entering(obj), 1_700_000_000.0)
    assert isinstance(reply, Refused), reply
    return reply.message


def came(name: str, uid: str, phase: str = "Running") -> dict[str, Any]:
    obj = pod(name, node="n", phase=phase)
    obj["metadata"] |= {"uid": uid, "creationTimestamp": AGE}
    return obj


def queue(name: str, status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    made = {"apiVersion": QUEUE, "kind": "Queue", "metadata": {"name": name}, "spec": spec}
    return made if status is None else {**made, "status": status}


def group(name: str, of: str, **more: Any) -> dict[str, Any]:
    spec = {"minMember": 1, "queue": of}
    return {"apiVersion": QUEUE, "kind": "PodGroup", "metadata": {"name": name}, "spec": spec, **more}


def test_only_what_is_loaded_keeps_its_identity() -> None:
    store = Store(seed=0)
    kept = brought(store, came("a", "uid-a"))
    assert (kept["metadata"]["uid"], kept["metadata"]["creationTimestamp"]) == ("uid-a", AGE)
    assert kept["status"]["phase"] == "Running"
    reply = store.apply(Create(pack(came("b", "uid-b")), user="kubectl"), 1_700_000_000.0)
    assert isinstance(reply, Accepted)
    new = unpack(reply.blob)
    assert new["metadata"]["uid"] != "uid-b"
    assert new["metadata"]["creationTimestamp"] != AGE
    assert new["status"]["phase"] == "Pending"


def test_no_two_objects_have_one_uid() -> None:
    """A dump of a cluster of the same seed has the very uids that this one would give next."""
    store = Store(seed=0)
    taken = uid_of(0, store.revision + 2)
    assert brought(store, came("a", taken))["metadata"]["uid"] == taken
    assert brought(store, node("n"))["metadata"]["uid"] != taken
    assert brought(store, came("twin", taken))["metadata"]["uid"] != taken


def test_a_uid_that_is_none_is_not_kept() -> None:
    store = Store(seed=0)
    for number, uid in enumerate(("", "x" * 65, "a b", "\x1b[2J")):
        assert brought(store, came(f"p{number}", uid))["metadata"]["uid"] != uid


@pytest.mark.parametrize(
    ("obj", "recorded"),
    [
        (queue("q"), False),
        (queue("q", {}), False),
        (queue("q", {"state": "", "allocated": {}}), False),
        (queue("q", {"state": "Closing"}), True),
        (node("n") | {"metadata": {"name": "n"}}, False),
        ({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "resourceVersion": "7"}}, True),
        ({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "status": {"loadBalancer": {}}}, False),
    ],
)
def test_objects_of_a_cluster_are_told_by_what_servers_write(obj: dict[str, Any], recorded: bool) -> None:
    assert is_recorded(obj) is recorded
    assert isinstance(entering(obj), LoadObject if recorded else Create)
    assert not is_recorded(as_new(obj))


@pytest.mark.parametrize("state", ["Closing", "Closed", "Unknown"])
def test_a_queue_that_closes_is_loaded_with_its_groups(state: str) -> None:
    store = Store(seed=0)
    assert brought(store, queue("old", {"state": state}, weight=1))["status"]["state"] == state
    assert brought(store, group("g", "old", status={"phase": "Running"}))["status"]["phase"] == "Running"
    assert "can only submit PodGroup to queue with state `Open`" in refusal(store, group("new", "old"))


def test_a_child_below_a_queue_with_pods_is_loaded_and_not_created() -> None:
    store = Store(seed=0)
    brought(store, queue("top", {"state": "Open", "allocated": {"pods": "6"}}, parent="root"))
    assert "has allocated Pods" in refusal(store, queue("new", parent="top"))
    assert brought(store, queue("team", {"state": "Open"}, parent="top"))["spec"]["parent"] == "top"


def test_what_no_reader_understands_is_not_loaded() -> None:
    store = Store(seed=0)
    broken = came("p", "u")
    broken["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "many"}}
    assert "many" in refusal(store, broken)
    untimed = came("q", "v")
    untimed["metadata"]["creationTimestamp"] = "yesterday"
    assert "metadata.creationTimestamp" in refusal(store, untimed)
    assert brought(store, came("r", "w"))["status"]["phase"] == "Running", "the next one is read as if nothing was"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Unknown"])
def test_a_pod_of_any_phase_stays_as_it_is(phase: str) -> None:
    assert brought(Store(seed=0), came("p", "u", phase))["status"]["phase"] == phase


def test_the_priority_of_a_loaded_pod_outlives_its_class() -> None:
    obj = came("p", "u")
    obj["spec"] |= {"priorityClassName": "gone", "priority": 7}
    assert brought(Store(seed=0), obj)["spec"]["priority"] == 7


def test_deletions_that_a_cluster_had_begun_go_on() -> None:
    store, going = Store(seed=0), {"deletionTimestamp": AGE, "deletionGracePeriodSeconds": 30}
    ended, waiting, running, kept = (came(name, name, phase) for name, phase in
        (("ended", "Failed"), ("waiting", "Pending"), ("running", "Running"), ("kept", "Succeeded")))  # fmt: skip
    waiting["spec"].pop("nodeName")
    kept["metadata"]["finalizers"] = ["example.com/audit"]
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "uid": "ns", **going}}
    for obj in (ended, waiting, running, kept):
        obj["metadata"] |= going
    objects = [ended, waiting, running, kept, space]
    for obj in objects:
        brought(store, obj)
    for request in unfinished(objects):
        store.apply(request, 1_700_000_000.0)
    left = {name for _, name in store.tables.names("Pod")}
    assert left == {"running", "kept"}, "the first is its node agent's to end, the other its finalizer's"
