"""A listing as it was at an earlier revision: the one of now, with what the ring has heard since taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from anyio import lowlevel

from pumice.actors.gateway.problems import expired
from pumice.storage import codec

if TYPE_CHECKING:
    from pumice.actors.gateway.request.selection import Selection
    from pumice.actors.gateway.ring import Ring, RingEntry
    from pumice.actors.gateway.site import Site
    from pumice.core.objects.metadata import Object

SLICE: Final = 200
Key = tuple[str, str]


async def listing_at(site: Site, selected: Selection, revision: int) -> tuple[bytes, ...]:
    """The objects of a kind at a revision that has been given out. Raises ApiError (410) where that is not known."""
    current, blobs = await site.listing(selected.kind, selected.namespace or None)
    if revision == current:
        return blobs
    await site.hub.reach(current)
    since = _since(site.hub.ring(selected.kind), revision, current, selected.namespace)
    if not since:
        return blobs
    there = dict[Key, bytes]()
    for number, blob in enumerate(blobs):
        there[key_of(blob)] = blob
        if number % SLICE == SLICE - 1:
            await lowlevel.checkpoint()
    for key, was in since.items():
        if was is None:
            there.pop(key, None)
        else:
            there[key] = was
    return tuple(there[key] for key in sorted(there))


def _since(ring: Ring, revision: int, current: int, namespace: str) -> dict[Key, bytes | None]:
    """What has changed since, as it was before; None: it was not there."""
    if revision < ring.oldest:
        raise _too_old(revision)
    before: dict[Key, RingEntry] = {}
    found: dict[Key, bytes | None] = {}
    for entry in ring.entries():
        if entry.revision > current:
            break
        key = entry.key
        if namespace and key[0] != namespace:
            continue
        if entry.revision <= revision:
            before[key] = entry
        elif key not in found:
            found[key] = _before(entry, before.get(key), revision)
    return found


def _before(entry: RingEntry, last: RingEntry | None, revision: int) -> bytes | None:
    """The object that the first change after a revision has met."""
    if entry.type == "ADDED":
        return None
    if entry.type == "DELETED":
        return entry.blob
    if last is None:
        raise _too_old(revision)
    return last.blob


def _too_old(revision: int) -> Exception:
    return expired(f"The resourceVersion for the provided list is too old: {revision}")


def key_of(blob: bytes) -> Key:
    """Namespace and name of an object in a listing, by which it is sorted."""
    meta = cast("Object", codec.unpack(blob))["metadata"]
    return meta.get("namespace") or "", meta["name"]
