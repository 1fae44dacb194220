"""What becomes of dependents: deleted first, deleted after, or left behind; and what guards a deletion."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.messages.commands import Delete
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object
from pumice.storage.codec import unpack
from tests.actors.cluster import Cluster


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


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
