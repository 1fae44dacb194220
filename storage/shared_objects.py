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

_REVISION: Final = attrgetter("revision")
_mutation = codec.decoder(Mutation)


class _ByBytes(dict[bytes, Any]):
    """Decoded objects by their bytes. `bounded`: the older ones make room for new ones."""

    bounded = True

    def __missing__(self, data: bytes) -> Any:
        obj = codec.unpack(data)
        self.keep(data, obj)
        return obj

    def keep(self, data: bytes, obj: object) -> None:
        if self.bounded and len(self) >= SHARED and data not in self:
            _drop_older(self)
        self.setdefault(data, obj)

    def forget(self, data: bytes) -> None:
        self.pop(data, None)


class SharedObjects:
    """Cache of decoded objects. When one sort is full, the older half goes: readers are not recorded."""

    def __init__(self) -> None:
        self._objects = _ByBytes()
        self._changes: dict[int, Mutation] = {}
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
            if len(self._objects) > SHARED:
                _drop_older(self._objects)

    def keep_changes(self, changes: Sequence[Mutation]) -> None:
        """Keep decoded `changes` for their revisions."""
        known = self._changes
        known.update(zip(map(_REVISION, changes), changes, strict=True))
        if len(known) > SHARED:
            _drop_older(known)

    def changes(self, revisions: Sequence[int], frames: Sequence[Any]) -> list[Mutation]:
        """Return the changes of these revisions, which one api gives out once each. `frames`: each encoded, as bytes or
        a similar type.

        Raises CodecError.
        """
        known = self._changes
        found = list(map(known.get, revisions))
        if None in found:
            for place, change in enumerate(found):
                if change is None:
                    found[place] = known[revisions[place]] = _mutation(frames[place])
            if len(known) > SHARED:
                _drop_older(known)
        return cast("list[Mutation]", found)


def _drop_older(known: dict[Any, Any]) -> None:
    for old in list(known)[: len(known) - SHARED // 2]:
        known.pop(old, None)
