"""What a run starts with may come out of another cluster, and keeps who it was."""

from __future__ import annotations

from typing import Any

from actors.api.names import uid_of
from actors.api.store import Store
from core.messages.commands import Create
from core.messages.replies import Accepted
from storage.codec import pack, unpack
from tests.kit.nodes import node
from tests.kit.pods import pod

AGE = "2020-05-05T05:05:05Z"


def created(store: Store, obj: dict[str, Any], user: str) -> dict[str, Any]:
    reply = store.apply(Create(pack(obj), user=user), 1_700_000_000.0)
    assert isinstance(reply, Accepted), reply
    found: dict[str, Any] = unpack(reply.blob)
    return found


def came(name: str, uid: str) -> dict[str, Any]:
    obj = pod(name, node="n", phase="Running")
    obj["metadata"] |= {"uid": uid, "creationTimestamp": AGE}
    return obj


def test_only_what_is_handed_in_at_the_start_keeps_its_identity() -> None:
    store = Store(seed=0)
    kept = created(store, came("a", "uid-a"), "submit")
    assert (kept["metadata"]["uid"], kept["metadata"]["creationTimestamp"]) == ("uid-a", AGE)
    assert kept["status"]["phase"] == "Running"
    new = created(store, came("b", "uid-b"), "kubectl")
    assert new["metadata"]["uid"] != "uid-b"
    assert new["metadata"]["creationTimestamp"] != AGE
    assert new["status"]["phase"] == "Pending"


def test_no_two_objects_have_one_uid() -> None:
    """A dump of a cluster of the same seed has the very uids that this one would give next."""
    store = Store(seed=0)
    taken = uid_of(0, store.revision + 2)
    assert created(store, came("a", taken), "submit")["metadata"]["uid"] == taken
    assert created(store, node("n"), "kubectl")["metadata"]["uid"] != taken
    assert created(store, came("twin", taken), "submit")["metadata"]["uid"] != taken


def test_a_uid_that_is_none_is_not_kept() -> None:
    store = Store(seed=0)
    for number, uid in enumerate(("", "x" * 65, "a b", "\x1b[2J")):
        assert created(store, came(f"p{number}", uid), "submit")["metadata"]["uid"] != uid
