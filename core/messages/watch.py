"""What all who watch read of the api's log: changes that are published once for everybody."""

from __future__ import annotations

from msgspec import Struct


class WatchEvent(Struct, frozen=True):
    """One change. `type` is ADDED, MODIFIED or DELETED; `blob` the object after it (before it, when DELETED).

    The blob is MessagePack, and the same that the journal has.
    """

    type: str
    kind: str
    namespace: str
    name: str
    revision: int
    blob: bytes


class Events(Struct, frozen=True):
    """Changes in revision order. The watcher continues from `revision`.

    `gone` (410): the log no longer reaches back that far; the watcher must list again. `more`: the limit cut it.
    """

    revision: int
    events: tuple[WatchEvent, ...] = ()
    gone: bool = False
    more: bool = False
