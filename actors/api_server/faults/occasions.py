"""Occasions for faults: what is asked about what, for the n-th time ("bind default/web-0 #2")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

from pumice.core.messages import commands, watch
from pumice.core.messages.reflection import Reflect
from pumice.storage import codec

SCHEDULER: Final = "scheduler"
PRE_BINDER: Final = "pre-bind-worker"


class Occasions:
    """Names occasions, and counts how often each came up."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def count(self, what: str) -> str:
        """`what #n`."""
        times = self._seen[what] = self._seen.get(what, 0) + 1
        return f"{what} #{times}"


_SORTS: Final[dict[type[commands.StoreRequest], tuple[str, str]]] = {
    commands.UpdateStatus: ("status", SCHEDULER),
    commands.Patch: ("status", SCHEDULER),
    commands.ReportStatus: ("status", ""),
    commands.BindPod: ("bind", ""),
    commands.EvictPod: ("evict", ""),
    commands.RequestEviction: ("evict", ""),
    commands.Update: ("claim", PRE_BINDER),
    commands.Create: ("submit", "submit"),
}
"""By class: the sort, and whose request has to be to be of it ("": anybody's)."""
_OTHER: Final = ("other", "")


def sort_of(request: commands.StoreRequest) -> str:
    """The sort of a request: all of one sort can be struck by the same kinds of faults."""
    sort, user = _SORTS.get(type(request), _OTHER)
    return sort if not user or getattr(request, "user", "") == user else "other"


def watching(kinds: Sequence[str]) -> str:
    """A watch of these kinds, in words that tell one watcher from another."""
    return f"watch {'+'.join(kinds[:2])}"


def subject(request: commands.StoreRequest) -> str:
    """What is asked about what, in words that stay the same when other events of a storm are left out."""
    match request:
        case commands.UpdateStatus():
            return f"status {request.kind} {request.namespace}/{request.name} by {request.user}"
        case commands.ReportStatus():
            return f"status {request.kind} {request.namespace}/{request.name} by {SCHEDULER}"
        case commands.BindPod():
            return f"bind {request.namespace}/{request.name}"
        case commands.EvictPod():
            return f"evict {request.namespace}/{request.name}"
        case commands.Patch():
            return f"patch {request.kind} {request.namespace}/{request.name} by {request.user}"
        case commands.Delete() | commands.Get() | Reflect():
            return f"{type(request).__name__.lower()} {request.kind} {request.namespace}/{request.name}"
        case commands.List() | commands.OpenListing():
            return f"list {request.kind}"
        case watch.ReadRevision():
            return "revision"
        case commands.RequestEviction():
            return f"eviction {request.namespace}/{request.name}"
        case commands.Update() if request.user == PRE_BINDER:
            obj = codec.unpack(request.blob)
            return f"claim {obj['kind']} {obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"
        case commands.Create() | commands.LoadObject() | commands.Update():
            return f"{type(request).__name__.lower()} by {request.user}"
        case _:
            assert_never(request)
