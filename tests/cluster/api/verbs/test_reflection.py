"""Objects of another cluster, stored as they are there."""

from typing import Any

from pumice.core.messages.commands import Reflect
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object
from pumice.storage.codec import pack
from tests.actors.cluster import Cluster


def thing(name: str = "p", uid: str = "u1", **spec: Any) -> Object:
    meta = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": "9000", "generation": 7}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def reflect(cluster: Cluster, obj: Object | None, name: str = "p") -> list[tuple[str, str]]:
    """What changed by it."""
    before = cluster.store.revision
    blob = b"" if obj is None else pack(obj)
    reply = cluster.store.apply(Reflect("Pod", "default", name, blob, "mirror"), 1.0)
    assert isinstance(reply, Accepted)
    assert reply.revision == cluster.store.revision
    return [(each.type, each.name) for each in cluster.store.drain() if each.revision > before]


def test_it_is_neither_judged_nor_filled_in(cluster: Cluster) -> None:
    """No container, no namespace object, its own uid: none of it would be admitted."""
    assert reflect(cluster, thing(nodeName="n1")) == [("ADDED", "p")]
    found = cluster.get("Pod", "p")
    assert found["spec"] == {"nodeName": "n1"}
    assert (found["metadata"]["uid"], found["metadata"]["generation"]) == ("u1", 7)
    assert found["metadata"]["resourceVersion"] == str(cluster.store.revision)


def test_the_same_again_changes_nothing_whatever_its_revision_is_there(cluster: Cluster) -> None:
    reflect(cluster, thing())
    again = thing()
    again["metadata"]["resourceVersion"] = "9001"
    assert reflect(cluster, again) == []
    assert reflect(cluster, thing(nodeName="n1")) == [("MODIFIED", "p")]


def test_another_one_of_that_name_takes_its_place(cluster: Cluster) -> None:
    reflect(cluster, thing())
    assert reflect(cluster, thing(uid="u2")) == [("DELETED", "p"), ("ADDED", "p")]


def test_what_is_gone_there_is_gone_here(cluster: Cluster) -> None:
    reflect(cluster, thing())
    assert reflect(cluster, None) == [("DELETED", "p")]
    assert reflect(cluster, None) == []


def test_an_unknown_kind_is_refused(cluster: Cluster) -> None:
    reply = cluster.store.apply(Reflect("Planet", "", "earth", pack(thing())), 1.0)
    assert isinstance(reply, Refused)
    assert reply.code == 404
