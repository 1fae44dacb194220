# SPDX-License-Identifier: Apache-2.0
"""Newest seen version of each object: repeated and late changes are dropped.

An object comes by its watch and in the answer to what was written, in any order. Its resourceVersion says which is
newer: Kubernetes promises that those of one resource can be compared as numbers (KEP-5504), and they always could.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple

from pumice.actors.real_clusters.mirror.changes import Key, RemoteChange
from pumice.core.objects.metadata import section

# A late answer to a write comes seconds after the deletion, so the newest are enough.
TOMBS: Final = 10_000


class RemoteVersion(NamedTuple):
    """The version of one object; "" where it is unknown."""

    uid: str
    text: str

    @property
    def number(self) -> int:
        """Return the version as a number; -1 when it cannot be compared."""
        return int(self.text) if self.text.isdecimal() else -1


class RemoteVersions:
    """Versions of all stored objects, and of recently deleted ones."""

    def __init__(self) -> None:
        self._known: dict[str, dict[Key, RemoteVersion]] = {}
        self._tombs: OrderedDict[tuple[Key, str], None] = OrderedDict()

    def know(self, key: Key, uid: str) -> None:
        """Note that the object is here already, in an unknown version."""
        self._known.setdefault(key[0], {})[key] = RemoteVersion(uid, "")

    def names(self, kind: str) -> list[Key]:
        """Return all stored objects of a kind."""
        return list(self._known.get(kind, ()))

    def of(self, key: Key) -> RemoteVersion | None:
        """Return the version of an object; None when it is not stored."""
        return self._known.get(key[0], {}).get(key)

    def news(self, changes: Sequence[RemoteChange]) -> list[RemoteChange]:
        """Return the new changes, and note their versions."""
        return [change for change in changes if self._is_news(change)]

    def _is_news(self, change: RemoteChange) -> bool:
        known = self.of(change.key)
        found = _version(change)
        if change.gone:
            # No uid: a new list no longer names the object, so whatever was known by this name is gone.
            if known is None or found.uid not in ("", known.uid):
                return False
            del self._known[change.kind][change.key]
            if found.uid:
                self._bury(change.key, found.uid)
            return True
        if (change.key, found.uid) in self._tombs:
            return False
        if known is not None and known.uid == found.uid and -1 < found.number <= known.number:
            return False
        self._known.setdefault(change.kind, {})[change.key] = found
        return True

    def _bury(self, key: Key, uid: str) -> None:
        self._tombs[key, uid] = None
        if len(self._tombs) > TOMBS:
            self._tombs.popitem(last=False)


def _version(change: RemoteChange) -> RemoteVersion:
    meta = section(change.obj or {}, "metadata")
    return RemoteVersion(str(meta.get("uid") or ""), str(meta.get("resourceVersion") or ""))
