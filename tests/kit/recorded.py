"""Records of a journal, written by hand."""

from __future__ import annotations

from typing import Any, Final

from pumice.core.messages.events import Mutation
from pumice.storage import codec
from pumice.storage.journal import API, Record

BEGAN: Final = 1_700_000_000.0
"""The moment from which their seconds count."""


def api(second: float, obj: dict[str, Any], event: str = "MODIFIED") -> Record:
    """An object that the api has changed."""
    meta = obj["metadata"]
    mutation = Mutation(1, event, obj["kind"], meta.get("namespace", ""), meta["name"], codec.pack(obj))
    return Record(API, codec.encode(mutation), at=BEGAN + second)


def on(obj: dict[str, Any], where: str, phase: str = "Running") -> dict[str, Any]:
    """The pod on that node."""
    return {**obj, "spec": {**obj["spec"], "nodeName": where}, "status": {"phase": phase}}
