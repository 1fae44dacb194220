# SPDX-License-Identifier: Apache-2.0
"""The objects of a cluster at its beginning, and the requests that bring them back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from pumice.core.messages.commands import Reflect
from pumice.storage.codec import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.cluster.api.object_tables import Key, ObjectRecord, ObjectTables
    from pumice.core.objects.metadata import Object

USER: Final = "reset"
LAST: Final = ("Namespace", "CustomResourceDefinition")
"""Kinds that others need: these come back first and go last."""


@dataclass
class Baseline:
    """`objects`: by key, the revision at which an object was last found to be what it was, and the object."""

    objects: dict[Key, tuple[int, Object]] = field(default_factory=dict[Any, Any])

    @classmethod
    def of(cls, tables: ObjectTables) -> Baseline:
        """Return all objects as they are now."""
        return cls({key: (record.revision, unpack(record.blob)) for key, record in _records(tables)})

    def requests(self, tables: ObjectTables) -> list[Reflect]:
        """Return the requests that make all objects what they were; none when they are.

        They are written as they were, without admission and without graceful deletion, as if another server had them:
        watchers see each as any change.
        """
        present = dict(_records(tables))
        back = [self._again(key) for key in self.objects if key not in present]
        back += [
            Reflect(*key, pack(self.objects[key][1]), user=USER)
            for key, record in present.items()
            if self._differs(key, record)
        ]
        gone = [Reflect(*key, b"", user=USER) for key in present if key not in self.objects]
        return [*sorted(back, key=_is_needed, reverse=True), *sorted(gone, key=_is_needed)]

    def _differs(self, key: Key, record: ObjectRecord) -> bool:
        known = self.objects.get(key)
        if known is None or known[0] == record.revision:
            return False
        now: Object = unpack(record.blob)
        now["metadata"]["resourceVersion"] = known[1]["metadata"]["resourceVersion"]
        if now != known[1]:
            return True
        self.objects[key] = record.revision, known[1]  # written again, with the same content
        return False

    def _again(self, key: Key) -> Reflect:
        """Return the object as a new one: a deleted object does not come back under its uid."""
        revision, before = self.objects[key]
        obj = {**before, "metadata": {**before["metadata"], "uid": str(uuid4())}}
        self.objects[key] = revision, obj
        return Reflect(*key, pack(obj), user=USER)


def _records(tables: ObjectTables) -> Iterator[tuple[Key, ObjectRecord]]:
    for kind in tables.kinds():
        for name, record in tables.of_kind(kind):
            yield (kind, *name), record


def _is_needed(request: Reflect) -> int:
    """Return how long others need the kind."""
    return LAST.index(request.kind) + 1 if request.kind in LAST else 0
