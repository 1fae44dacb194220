"""How objects go: grace periods, finalizers, and what they own going with them (background propagation).

Pods go gracefully, as in Kubernetes: one that was never placed, or has ended, goes at once; a placed one is marked with
a deletion time and stays until its node agent deletes it with grace 0.
"""

from __future__ import annotations

from typing import Any, Final

from actors.api.requests import Moment, timestamp
from actors.api.tables import Key, Tables, owner_uids
from core.objects.metadata import Object, section

DEFAULT_GRACE_S: Final = 30
_ENDED: Final = ("Succeeded", "Failed")


def grace_period_s(pod: Object, asked: int | None) -> int:
    """Seconds a pod gets to end: what was asked, else its own; 0 when nothing of it runs."""
    spec = section(pod, "spec")
    if not spec.get("nodeName") or section(pod, "status").get("phase") in _ENDED:
        return 0
    seconds = asked if asked is not None else spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE_S)
    return 1 if seconds < 0 else int(seconds)


class Deletion:
    """Deletes; every removal cascades to what the removed object alone owned."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def delete(self, key: Key, obj: Object, asked_grace_s: int | None, moment: Moment) -> bytes:
        """Start or finish a deletion; the object's bytes while it stays, nothing once it has gone. `obj` is changed."""
        grace = grace_period_s(obj, asked_grace_s) if key[0] == "Pod" else 0
        meta = obj["metadata"]
        if grace:
            return self._mark(key, obj, grace, moment)
        if meta.get("finalizers"):
            return self._mark(key, obj, 0, moment)
        self.remove(key, obj, moment)
        return b""

    def remove(self, key: Key, obj: Object, moment: Moment) -> None:
        """Take it away now, and everything that it alone owned."""
        uid: str = obj["metadata"]["uid"]
        self._tables.remove(key, obj, moment.user)
        for dependent in self._tables.dependents(uid):
            self.orphaned(dependent, moment)

    def orphaned(self, key: Key, moment: Moment) -> None:
        """Delete the object if every one of its owners has gone."""
        obj = self._tables.read(key)
        if obj is not None and all(map(self._tables.was_removed, sorted(owner_uids(obj)))):
            self.delete(key, obj, None, moment)

    def _mark(self, key: Key, obj: Object, grace_s: int, moment: Moment) -> bytes:
        meta: dict[str, Any] = obj["metadata"]
        if "deletionTimestamp" in meta and grace_s >= meta.get("deletionGracePeriodSeconds", 0):
            record = self._tables.get(key)  # a later request may shorten the wait, never lengthen it
            return b"" if record is None else record.blob
        meta["deletionTimestamp"] = timestamp(int(moment.now) + grace_s)
        meta["deletionGracePeriodSeconds"] = grace_s
        return self._tables.put(key, obj, moment.user, owners_changed=False)
