# SPDX-License-Identifier: Apache-2.0
"""Objects and changes with many readers, decoded once: a system has one such table, which every reader gets.

Its objects are shared by all readers and must not be changed.
"""

from __future__ import annotations

from contextlib import contextmanager
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, cast

from pumice.core.messages.events import Mutation
from pumice.storage import codec

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence


SHARED: Final = 4096
"""Limit of cached decoded objects, and of cached changes."""
SHARED_BYTES: Final = 8 << 20
"""Limit of the bytes that cached objects were decoded from: decoded, they are about ten times as large."""
CHANGED_BYTES: Final = 32 << 20
"""Limit of the bytes of the objects in cached changes."""

_REVISION: Final = attrgetter("revision")
_mutation = codec.decoder(Mutation)


class _ByBytes(dict[bytes, Any]):
    """Decoded objects by their bytes. `bounded`: the older ones make room for new ones. `size`: of all the bytes."""

    bounded = True
    size = 0

    def __missing__(self, data: bytes) -> Any:
        obj = codec.unpack(data)
        self.keep(data, obj)
        return obj

    def keep(self, data: bytes, obj: object) -> None:
        if data not in self:
            if self.bounded:
                self.make_room(len(data))
            self[data] = obj
            self.size += len(data)

    def make_room(self, more: int = 0) -> None:
        """Drop the older half if one object of `more` bytes would be too much; the oldest first."""
        if len(self) < SHARED and self.size + more <= SHARED_BYTES:
            return
        for old in list(self):
            if len(self) <= SHARED // 2 and self.size + more <= SHARED_BYTES // 2:
                return
            self.forget(old)

    def forget(self, data: bytes) -> None:
        if data in self:
            del self[data]
            self.size -= len(data)


class SharedObjects:
    """Cache of decoded objects. When one sort is full, the older half goes: readers are not recorded."""

    def __init__(self) -> None:
        self._objects = _ByBytes()
        self._changes: dict[int, Mutation] = {}
        self._bytes = 0  # of the objects in these changes
        self.unpack: Callable[[bytes], Any] = self._objects.__getitem__
        """`codec.unpack`, once for all who read the same bytes at about the same time. Raises CodecError."""
        self.keep: Callable[[bytes, Any], None] = self._objects.keep
        """`unpack` gives out this object for its bytes, which are not decoded then.

        The writer must not change it either from now on; it is made of dictionaries and lists as `unpack` makes
        them.
        """

        self.forget: Callable[[bytes], None] = self._objects.forget
        """Drop these bytes, which are unlikely to be read again, to make room."""

    @contextmanager
    def keeping_all(self) -> Generator[None]:
        """Drop no object within the block: all are read several times there."""
        self._objects.bounded = False
        try:
            yield
        finally:
            self._objects.bounded = True
            self._objects.make_room()

    def keep_changes(self, changes: Sequence[Mutation]) -> None:
        """Keep decoded `changes` for their revisions."""
        self._changes.update(zip(map(_REVISION, changes), changes, strict=True))
        self._kept(changes)

    def changes(self, revisions: Sequence[int], frames: Sequence[Any]) -> list[Mutation]:
        """Return the changes of these revisions, which one api gives out once each. `frames`: each encoded, as bytes or
        a similar type.

        Raises CodecError.
        """
        known = self._changes
        found = list(map(known.get, revisions))
        if None in found:
            fresh: list[Mutation] = []
            for place, change in enumerate(found):
                if change is None:
                    fresh.append(_mutation(frames[place]))
                    found[place] = known[revisions[place]] = fresh[-1]
            self._kept(fresh)
        return cast("list[Mutation]", found)

    def _kept(self, changes: Sequence[Mutation]) -> None:
        """Drop the older half once there are too many changes, or too large ones."""
        known = self._changes
        self._bytes += sum([len(change.blob) for change in changes])
        if len(known) <= SHARED and self._bytes <= CHANGED_BYTES:
            return
        sizes = {revision: len(change.blob) for revision, change in known.items()}
        self._bytes = sum(sizes.values())
        for old, size in sizes.items():
            if len(known) <= SHARED // 2 and self._bytes <= CHANGED_BYTES // 2:
                return
            del known[old]
            self._bytes -= size
