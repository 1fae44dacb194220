"""The api's truth, folded from its changes: of each object its bytes, and who it is."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.core.messages.events import Mutation
from pumice.storage.codec import pack, unpack
from pumice.storage.truth import StoredObject, Truth

METADATA: dict[str, Any] = {
    "a uid": {"uid": "u1"},
    "owners, in any order": {"uid": "u1", "ownerReferences": [{"uid": "o2", "kind": "Job"}, {"uid": "o1"}]},
    "no owners": {"uid": "u1", "ownerReferences": []},
    "null owners": {"uid": "u1", "ownerReferences": None, "labels": {"a": "b"}},
    "no uid": {"name": "p"},
    "a number for a uid": {"uid": 7, "ownerReferences": [{"uid": 8}]},
    "nothing": {},
    "null": None,
}


def plainly(blob: bytes) -> tuple[str, tuple[str, ...]]:
    """Its uid and who owns it, read off the whole object."""
    metadata: dict[str, Any] = unpack(blob).get("metadata") or {}
    owners = tuple(sorted(str(owner["uid"]) for owner in metadata.get("ownerReferences") or ()))
    return str(metadata.get("uid") or ""), owners


@pytest.mark.parametrize("metadata", METADATA.values(), ids=METADATA)
def test_who_an_object_is_can_be_read_without_making_all_of_it(metadata: Any) -> None:
    blob = pack({"kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "main"}]}})
    truth = Truth()
    truth.apply(Mutation(3, "ADDED", "Pod", "default", "p", blob))
    assert truth.kinds["Pod"]["default", "p"] == StoredObject(blob, 3, *plainly(blob))
