"""How objects go: grace, finalizers, owners; and what becomes of dependents: deleted first, after, or left."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.messages.commands import Delete
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object
from pumice.storage.codec import unpack
from tests.actors.cluster import Cluster
from tests.kit.nodes import node
from tests.kit.pods import pod
from tests.kit.queues import queue


def placed(cluster: Cluster, name: str = "p", phase: str = "Running") -> Object:
    cluster.create(pod(name))
    cluster.bind(name, "n1")
    cluster.status("Pod", name, {"phase": phase})
    return cluster.get("Pod", name)


def test_a_pod_without_a_node_goes_immediately(cluster: Cluster) -> None:
    cluster.create(pod("p"))
    assert isinstance(cluster.delete("Pod", "p"), Accepted)
    assert not cluster.exists("Pod", "p")


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_so_does_one_that_has_ended(cluster: Cluster, phase: str) -> None:
    placed(cluster, phase=phase)
    cluster.delete("Pod", "p")
    assert not cluster.exists("Pod", "p")


@pytest.mark.parametrize(("asked", "grace"), [(None, 30), (5, 5), (-1, 1)])
def test_one_that_runs_is_marked_and_stays(cluster: Cluster, asked: int | None, grace: int) -> None:
    placed(cluster)
    reply = cluster.delete("Pod", "p", grace_s=asked)
    assert isinstance(reply, Accepted)
    meta = cluster.get("Pod", "p")["metadata"]
    assert unpack(reply.blob)["metadata"] == meta
    assert meta["deletionGracePeriodSeconds"] == grace
    assert meta["deletionTimestamp"] == f"2023-11-14T22:13:{20 + grace:02}Z"


def test_grace_zero_ends_it(cluster: Cluster) -> None:
    placed(cluster)
    cluster.delete("Pod", "p")
    cluster.delete("Pod", "p", grace_s=0)
    assert not cluster.exists("Pod", "p")


def test_a_second_delete_may_shorten_the_wait_and_not_lengthen_it(cluster: Cluster) -> None:
    placed(cluster)
    for asked, left in ((10, 10), (20, 10), (3, 3)):
        cluster.delete("Pod", "p", grace_s=asked)
        assert cluster.get("Pod", "p")["metadata"]["deletionGracePeriodSeconds"] == left


def test_a_uid_guards_against_a_namesake(cluster: Cluster) -> None:
    uid = cluster.create(pod("p"))["metadata"]["uid"]
    reply = cluster.ask(Delete("Pod", "default", "p", "other"))
    assert isinstance(reply, Refused)
    assert (reply.code, reply.reason) == (409, "Conflict")
    assert "UID in precondition: other" in reply.message
    assert isinstance(cluster.ask(Delete("Pod", "default", "p", uid)), Accepted)


def test_a_finalizer_keeps_an_object_until_it_is_taken_off(cluster: Cluster) -> None:
    kept = node("n")
    kept["metadata"]["finalizers"] = ["example.com/hold"]
    cluster.create(kept)
    cluster.delete("Node", "n", "")
    assert "deletionTimestamp" in cluster.get("Node", "n", "")["metadata"]
    cluster.patch("Node", "n", {"metadata": {"finalizers": []}}, "")
    assert not cluster.exists("Node", "n", "")
    assert cluster.journal[-1].type == "DELETED"


def test_a_pod_with_a_finalizer_waits_for_both(cluster: Cluster) -> None:
    placed(cluster)
    cluster.patch("Pod", "p", {"metadata": {"finalizers": ["example.com/hold"]}})
    cluster.delete("Pod", "p")
    cluster.patch("Pod", "p", {"metadata": {"labels": {"a": "b"}}})
    cluster.delete("Pod", "p", grace_s=0)
    assert cluster.get("Pod", "p")["metadata"]["deletionGracePeriodSeconds"] == 0
    cluster.patch("Pod", "p", {"metadata": {"finalizers": None}})
    assert not cluster.exists("Pod", "p")


def owned(obj: Object, *owners: Object) -> Object:
    references = [
        {
            "apiVersion": each["apiVersion"],
            "kind": each["kind"],
            "name": each["metadata"]["name"],
            "uid": each["metadata"]["uid"],
        }
        for each in owners
    ]
    return obj | {"metadata": obj["metadata"] | {"ownerReferences": references}}


def config_map(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


def test_what_is_owned_goes_with_its_owner_and_what_that_owns(cluster: Cluster) -> None:
    grandparent = cluster.create(config_map("grandparent"))
    parent = cluster.create(owned(config_map("parent"), grandparent))
    cluster.create(owned(pod("child"), parent))
    cluster.create(config_map("stranger"))
    cluster.delete("ConfigMap", "grandparent")
    assert [each["metadata"]["name"] for each in cluster.all("ConfigMap")] == ["stranger"]
    assert not cluster.exists("Pod", "child")


def test_of_two_owners_both_must_go(cluster: Cluster) -> None:
    first, second = cluster.create(config_map("first")), cluster.create(config_map("second"))
    cluster.create(owned(config_map("child"), first, second))
    cluster.delete("ConfigMap", "first")
    assert cluster.exists("ConfigMap", "child")
    cluster.delete("ConfigMap", "second")
    assert not cluster.exists("ConfigMap", "child")


def test_an_owned_pod_that_runs_gets_its_grace(cluster: Cluster) -> None:
    owner = cluster.create(config_map("owner"))
    cluster.create(owned(pod("p"), owner))
    cluster.bind("p", "n1")
    cluster.delete("ConfigMap", "owner")
    assert "deletionTimestamp" in cluster.get("Pod", "p")["metadata"]


def test_who_comes_after_the_owner_has_gone_goes_too(cluster: Cluster) -> None:
    owner = cluster.create(config_map("owner"))
    cluster.delete("ConfigMap", "owner")
    cluster.create(owned(config_map("late"), owner))
    assert not cluster.exists("ConfigMap", "late")


def test_an_owner_nobody_has_seen_is_no_reason_to_go(cluster: Cluster) -> None:
    unseen = config_map("unseen") | {"metadata": {"name": "unseen", "uid": "from-another-cluster"}}
    cluster.create(owned(config_map("dumped"), unseen))
    assert cluster.exists("ConfigMap", "dumped")


def test_owners_can_change(cluster: Cluster) -> None:
    first, second = cluster.create(config_map("first")), cluster.create(config_map("second"))
    child = cluster.create(owned(config_map("child"), first))
    cluster.patch("ConfigMap", "child", {"metadata": owned(child, second)["metadata"] | {"resourceVersion": None}})
    cluster.delete("ConfigMap", "first")
    assert cluster.exists("ConfigMap", "child")
    cluster.delete("ConfigMap", "second")
    assert not cluster.exists("ConfigMap", "child")


def test_owners_are_known_again_after_a_restart(cluster: Cluster) -> None:
    owner = cluster.create(config_map("owner"))
    cluster.create(owned(config_map("child"), owner))
    cluster.restart()
    cluster.delete("ConfigMap", "owner")
    assert not cluster.exists("ConfigMap", "child")


def test_owners_in_a_circle_do_not_wait_for_each_other(cluster: Cluster) -> None:
    made = [cluster.create(config_map(name)) for name in ("a", "b", "c")]
    for name, owner in zip(("b", "c", "a"), made, strict=True):
        references = owned(config_map(name), owner)["metadata"]["ownerReferences"]
        blocking = [{**each, "blockOwnerDeletion": True} for each in references]
        cluster.patch("ConfigMap", name, {"metadata": {"ownerReferences": blocking}})
    cluster.ask(Delete("ConfigMap", "default", "a", propagation="Foreground"))
    assert not [name for name in ("a", "b", "c") if cluster.exists("ConfigMap", name)]


@pytest.mark.parametrize("name", ["root", "default"])
def test_the_systems_queues_stay(cluster: Cluster, name: str) -> None:
    reply = cluster.delete("Queue", name)
    assert isinstance(reply, Refused)
    assert (reply.code, reply.reason) == (403, "Forbidden")
    assert f"`{name}` queue can not be deleted" in reply.message


def test_a_queue_with_children_stays_and_one_with_pods_goes(cluster: Cluster) -> None:
    cluster.create(queue("parent"))
    cluster.create(queue("child", parent="parent"))
    reply = cluster.delete("Queue", "parent")
    assert isinstance(reply, Refused)
    assert "has 1 child queues: child" in reply.message
    cluster.status("Queue", "child", {"allocated": {"pods": "2"}})
    assert isinstance(cluster.delete("Queue", "child"), Accepted)


# --- dependents first, or left behind


def family(cluster: Cluster, *, blocking: bool = True, finalizer: bool = False) -> tuple[Object, Object]:
    owner = cluster.create(config_map("owner"))
    child = owned(config_map("child"), owner)
    child["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = blocking
    if finalizer:
        child["metadata"]["finalizers"] = ["example.com/wait"]
    return owner, cluster.create(child)


def remove(cluster: Cluster, propagation: str, **more: Any) -> Accepted:
    reply = cluster.ask(Delete("ConfigMap", "default", "owner", propagation=propagation, **more))
    assert isinstance(reply, Accepted), reply
    return reply


def test_in_the_foreground_the_dependents_go_first(cluster: Cluster) -> None:
    family(cluster)
    before = cluster.store.revision
    assert remove(cluster, "Foreground").blob == b""
    gone = [event.name for event in cluster.store.log.read(before).events if event.type == "DELETED"]
    assert gone == ["child", "owner"]


def test_in_the_foreground_the_owner_waits_for_who_blocks_it(cluster: Cluster) -> None:
    family(cluster, finalizer=True)
    reply = remove(cluster, "Foreground")
    assert unpack(reply.blob)["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert "deletionTimestamp" in cluster.get("ConfigMap", "child")["metadata"]
    cluster.patch("ConfigMap", "child", {"metadata": {"finalizers": None}})
    assert not cluster.exists("ConfigMap", "child")
    assert not cluster.exists("ConfigMap", "owner")


def test_in_the_foreground_who_has_another_owner_stays_with_it(cluster: Cluster) -> None:
    owner, other = cluster.create(config_map("owner")), cluster.create(config_map("other"))
    cluster.create(owned(config_map("child"), owner, other))
    remove(cluster, "Foreground")
    assert not cluster.exists("ConfigMap", "owner")
    left = cluster.get("ConfigMap", "child")["metadata"]
    assert "deletionTimestamp" not in left
    assert [each["name"] for each in left["ownerReferences"]] == ["other"]


def test_in_the_foreground_an_owner_that_waits_itself_holds_nothing(cluster: Cluster) -> None:
    owner, other = cluster.create(config_map("owner")), cluster.create(config_map("other"))
    blocked = owned(config_map("blocked"), other)
    blocked["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = True
    cluster.create({**blocked, "metadata": {**blocked["metadata"], "finalizers": ["example.com/wait"]}})
    cluster.ask(Delete("ConfigMap", "default", "other", propagation="Foreground"))
    cluster.create(owned(config_map("child"), owner, other))
    remove(cluster, "Foreground")
    assert cluster.exists("ConfigMap", "other")
    assert not cluster.exists("ConfigMap", "child")


def test_who_does_not_block_is_not_waited_for(cluster: Cluster) -> None:
    family(cluster, finalizer=True, blocking=False)
    remove(cluster, "Foreground")
    assert not cluster.exists("ConfigMap", "owner")
    assert "deletionTimestamp" in cluster.get("ConfigMap", "child")["metadata"]


def test_orphans_stay_without_their_owner(cluster: Cluster) -> None:
    owner, _ = family(cluster)
    other = cluster.create(config_map("other"))
    cluster.create(owned(config_map("shared"), owner, other))
    remove(cluster, "Orphan")
    assert not cluster.exists("ConfigMap", "owner")
    assert "ownerReferences" not in cluster.get("ConfigMap", "child")["metadata"]
    left = cluster.get("ConfigMap", "shared")["metadata"]["ownerReferences"]
    assert [each["name"] for each in left] == ["other"]


def test_who_has_an_owner_left_names_only_that_one(cluster: Cluster) -> None:
    owner, _ = family(cluster)
    other = cluster.create(config_map("other"))
    cluster.create(owned(config_map("shared"), owner, other))
    remove(cluster, "Background")
    left = cluster.get("ConfigMap", "shared")["metadata"]["ownerReferences"]
    assert [each["name"] for each in left] == ["other"]
    cluster.ask(Delete("ConfigMap", "default", "other", propagation="Orphan"))
    assert "ownerReferences" not in cluster.get("ConfigMap", "shared")["metadata"]


@pytest.mark.slow
def test_a_long_chain_of_owners_goes_whole(cluster: Cluster) -> None:
    for propagation in ("Background", "Foreground"):
        last = cluster.create(config_map("owner"))
        for number in range(1100):
            following = owned(config_map(f"c{number}"), last)
            following["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = True
            last = cluster.create(following)
        remove(cluster, propagation)
        assert cluster.store.tables.count("ConfigMap") == 0


def test_a_dry_run_deletes_nothing(cluster: Cluster) -> None:
    family(cluster)
    before = cluster.store.revision
    assert unpack(remove(cluster, "Foreground", dry_run=True).blob)["metadata"]["name"] == "owner"
    assert cluster.store.revision == before


def test_a_revision_guards_against_a_change(cluster: Cluster) -> None:
    owner, _ = family(cluster)
    old = owner["metadata"]["resourceVersion"]
    cluster.patch("ConfigMap", "owner", {"data": {"a": "b"}})
    reply = cluster.ask(Delete("ConfigMap", "default", "owner", resource_version=old))
    assert isinstance(reply, Refused)
    assert (reply.code, reply.reason) == (409, "Conflict")
    assert "ResourceVersion in precondition" in reply.message


def test_what_has_gone_is_named_by_its_uid(cluster: Cluster) -> None:
    owner, _ = family(cluster)
    assert remove(cluster, "").uid == owner["metadata"]["uid"]


def test_no_finalizer_is_added_to_what_goes(cluster: Cluster) -> None:
    family(cluster, finalizer=True)
    cluster.delete("ConfigMap", "child")
    reply = cluster.patch("ConfigMap", "child", {"metadata": {"finalizers": ["example.com/wait", "x.com/more"]}})
    assert isinstance(reply, Refused)
    assert "no new finalizers can be added if the object is being deleted" in reply.message


NAMES = st.sampled_from(["a", "b", "c", "d", "e"])


@given(
    st.lists(st.tuples(NAMES, st.sets(NAMES, max_size=2), st.booleans()), max_size=8),
    st.lists(st.tuples(NAMES, st.sampled_from(["", "Background", "Foreground", "Orphan"])), max_size=4),
)
def test_whatever_owns_whatever_deletion_comes_to_an_end(
    made: list[tuple[str, set[str], bool]], deleted: list[tuple[str, str]]
) -> None:
    cluster = Cluster()
    for name, owners, blocking in made:
        if cluster.exists("ConfigMap", name):
            continue
        present = [cluster.get("ConfigMap", each) for each in sorted(owners) if cluster.exists("ConfigMap", each)]
        child = owned(config_map(name), *present)
        for reference in child["metadata"]["ownerReferences"]:
            reference["blockOwnerDeletion"] = blocking
        cluster.create(child)
    for name, propagation in deleted:
        cluster.ask(Delete("ConfigMap", "default", name, propagation=propagation))
        assert not cluster.exists("ConfigMap", name)  # nobody here has a finalizer, so nothing waits for ever
    uids = {found["metadata"]["uid"] for found in cluster.all("ConfigMap")}
    for found in cluster.all("ConfigMap"):
        owners_left = [each["uid"] for each in found["metadata"].get("ownerReferences") or ()]
        assert uids.issuperset(owners_left)
