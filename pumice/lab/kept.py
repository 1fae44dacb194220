# SPDX-License-Identifier: Apache-2.0
"""The past of a run, kept packed: a process of a million jobs has no room for their dictionaries."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterable, Iterator, MutableSequence, Sequence
from dataclasses import dataclass, field
from typing import Final, overload

from pumice.core.messages.decisions import CycleResult, Evict
from pumice.core.objects.metadata import Object
from pumice.storage import codec

# --- Cycles


@dataclass(frozen=True, slots=True)
class DecidedCycle:
    """One cycle, `at` so many seconds after the beginning. `pending`: pod -> the new reason why it waits."""

    cycle: int
    at: float
    binds: dict[str, str]
    evictions: tuple[Evict, ...] = ()
    pending: dict[str, str] = field(default_factory=dict[str, str])


_NOTHING: Final = codec.pack((dict[str, str](), dict[str, str]()))


class DecidedCycles(Sequence[DecidedCycle]):
    """The cycles of a run, oldest first; each is made when it is asked for."""

    def __init__(self) -> None:
        self._numbers, self._times = array("q"), array("d")
        self._decided: dict[int, tuple[bytes, tuple[Evict, ...]]] = {}

    def note(self, result: CycleResult, at: float) -> None:
        """Add a cycle, `at` so many seconds after the beginning."""
        pending = {f"{each.namespace}/{each.name}": each.message for each in result.pod_conditions if each.message}
        if result.binds or result.evicts or pending:
            binds = {f"{bind.namespace}/{bind.name}": bind.node for bind in result.binds}
            self._decided[len(self._numbers)] = codec.pack((binds, pending)), result.evicts
        self._numbers.append(result.cycle)
        self._times.append(at)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> DecidedCycle: ...

    @overload
    def __getitem__(self, place: slice) -> list[DecidedCycle]: ...

    def __getitem__(self, place: int | slice) -> DecidedCycle | list[DecidedCycle]:
        if isinstance(place, slice):
            return [self._made(each) for each in range(*place.indices(len(self)))]
        return self._made(range(len(self))[place])

    def _made(self, place: int) -> DecidedCycle:
        blob, evictions = self._decided.get(place, (_NOTHING, ()))
        binds, pending = codec.unpack(blob)
        return DecidedCycle(self._numbers[place], self._times[place], binds, evictions, pending)


# --- Objects


class PackedObjects(MutableSequence[Object]):
    """A list of objects, each unpacked when it is asked for: changing one changes a copy."""

    def __init__(self) -> None:
        self._blobs: list[bytes] = []

    def insert(self, index: int, value: Object) -> None:
        """Insert an object before that place."""
        self._blobs.insert(index, codec.pack(value))

    def __len__(self) -> int:
        return len(self._blobs)

    @overload
    def __getitem__(self, index: int) -> Object: ...

    @overload
    def __getitem__(self, index: slice) -> list[Object]: ...

    def __getitem__(self, index: int | slice) -> Object | list[Object]:
        if isinstance(index, slice):
            return [codec.unpack(blob) for blob in self._blobs[index]]
        found: Object = codec.unpack(self._blobs[index])
        return found

    @overload
    def __setitem__(self, index: int, value: Object) -> None: ...

    @overload
    def __setitem__(self, index: slice, value: Iterable[Object]) -> None: ...

    def __setitem__(self, index: int | slice, value: Object | Iterable[Object]) -> None:
        if isinstance(index, slice):
            self._blobs[index] = [codec.pack(each) for each in value]
        else:
            self._blobs[index] = codec.pack(value)

    def __delitem__(self, index: int | slice) -> None:
        del self._blobs[index]


AT_A_TIME: Final = 1_000
"""Objects that are compressed together: those of a trace are much alike."""


class Submitted:
    """The objects that were submitted, and when: so many seconds after the beginning. Few ever ask for them."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._newest: list[tuple[float, bytes]] = []

    def add(self, objects: Iterable[tuple[float, bytes]]) -> None:
        """Add packed objects."""
        for each in objects:
            self._newest.append(each)
            if len(self._newest) == AT_A_TIME:
                self._pieces.append(zlib.compress(codec.pack(self._newest), level=1))
                self._newest = []

    def __iter__(self) -> Iterator[tuple[float, Object]]:
        """Yield them in the order in which they were added."""
        for piece in self._pieces:
            yield from ((at, codec.unpack(blob)) for at, blob in codec.unpack(zlib.decompress(piece)))
        yield from ((at, codec.unpack(blob)) for at, blob in self._newest)
