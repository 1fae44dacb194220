# SPDX-License-Identifier: Apache-2.0
"""Objects and changes with many readers, decoded once: a system has one such table, which every reader gets.

Its objects are shared by all readers and must not be changed.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from pumice.core.messages.events import Mutation
from pumice.storage import codec

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence


SHARED: Final = 4096
"""Limit of cached decoded objects, and of cached changes."""
SHARED_BYTES: Final = 8 << 20
"""Limit of the bytes that cached objects were decoded from: decoded, they are about ten times as large."""
CHANGED_BYTES: Final = 16 << 20
"""Limit of the bytes of the objects in cached changes."""

K = TypeVar("K")
V = TypeVar("V")
_mutation = codec.decoder(Mutation)


class BoundedTable(dict[K, V]):
    """At most `most` entries, and `most_bytes` bytes by `size_of`, while it is `bounded`. Entries come by `keep` and
    `put`, and go by `forget`. `size`: bytes of all.
    """

    bounded = True

    def __init__(self, most: int, most_bytes: int, size_of: Callable[[K, V], int]) -> None:
        super().__init__()
        self._most, self._most_bytes, self._size_of = most, most_bytes, size_of
        self.size = 0

    def keep(self, key: K, value: V) -> None:
        """Keep a value, unless there is one under its key."""
        if key not in self:
            size = self._size_of(key, value)
            if self.bounded:
                self.make_room(size)
            self[key] = value
            self.size += size

    def put(self, key: K, value: V) -> None:
        """Keep a value in place of the one under its key."""
        self.forget(key)
        self.keep(key, value)

    def make_room(self, more: int = 0) -> None:
        """Drop the older half where another entry, of `more` bytes, would be too much."""
        if len(self) < self._most and self.size + more <= self._most_bytes:
            return
        for old in list(self):
            if len(self) <= self._most // 2 and self.size + more <= self._most_bytes // 2:
                return
            self.forget(old)

    def forget(self, key: K) -> None:
        """Drop an entry, if it is there."""
        if key in self:
            self.size -= self._size_of(key, self.pop(key))


class _ByBytes(BoundedTable[bytes, Any]):
    """Decoded objects by their bytes."""

    def __init__(self) -> None:
        super().__init__(SHARED, SHARED_BYTES, lambda data, obj: len(data))

    def __missing__(self, data: bytes) -> Any:
        obj = codec.unpack(data)
        self.keep(data, obj)
        return obj


class SharedObjects:
    """Cache of decoded objects. When one sort is full, the older half goes: readers are not recorded."""

    def __init__(self) -> None:
        self._objects = _ByBytes()
        self._changes = BoundedTable[int, Mutation](SHARED, CHANGED_BYTES, lambda revision, change: len(change.blob))
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
        for change in changes:
            self._changes.put(change.revision, change)

    def changes(self, revisions: Sequence[int], frames: Sequence[Any]) -> list[Mutation]:
        """Return the changes of these revisions, which one api gives out once each. `frames`: each encoded, as bytes or
        a similar type.

        Raises CodecError.
        """
        found = list(map(self._changes.get, revisions))
        if None in found:
            for place, change in enumerate(found):
                if change is None:
                    decoded = found[place] = _mutation(frames[place])
                    self._changes.keep(revisions[place], decoded)
        return cast("list[Mutation]", found)
