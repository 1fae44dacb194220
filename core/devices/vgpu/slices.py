# SPDX-License-Identifier: Apache-2.0
"""Slices of a MIG card: which exist, which are taken, which fits. Source: Volcano `vgpu/mig.go`.

A slice is called `UUID[group-position]`; positions count through the instances of a group in their order.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pumice.core.go_numbers import parse_int
from pumice.core.objects.metadata import Object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.devices.vgpu.settings import Geometry

UNCUT: Final = -1


@dataclass(slots=True)
class Cut:
    """The cut of a card: its geometry (UNCUT: none yet), and the places taken of each kind of slice, by name in the
    order in which kinds were first taken.
    """

    way: int = UNCUT
    taken: dict[str, list[int]] = field(default_factory=dict[str, list[int]])

    def copy(self) -> Cut:
        """Return an independent copy."""
        return deepcopy(self)


def named(slice_id: str) -> tuple[str, int] | None:
    """Return (group, position) of a slice; None for any other name."""
    start, end = slice_id.find("["), slice_id.find("]")
    if start < 0 or end < start:
        return None
    # A group whose name has a dash can never be read back: Volcano splits at every dash (decodeMIGID).
    parts = slice_id[start + 1 : end].split("-")
    position = parse_int(parts[1]) if len(parts) == 2 else None
    return None if position is None else (parts[0], position)


def find(uuid: str, memory: int, cut: Cut, ways: Sequence[Geometry]) -> tuple[str, int] | None:
    """Return (name, MiB) of a slice with so much memory: of the geometry in use, else of the first that has one."""
    # A card is cut in one way: the slices in use rule out all other ways, even if one of them would have room.
    for way in [ways[cut.way]] if cut.way != UNCUT else ways:
        found = _pick(way, cut.taken if cut.way != UNCUT else {}, memory)
        if found is not None:
            position, size = found
            return f"{uuid}[{way.group}-{position}]", size
    return None


def _pick(way: Geometry, taken: dict[str, list[int]], memory: int) -> tuple[int, int] | None:
    """Return (position, MiB) of the smallest slice that suffices. Once a card is cut only kinds in use are looked at;
    an empty list of used kinds allows all kinds again.
    """
    # The smallest first; positions still count in the order of the configuration, hence the index.
    for index, kind in sorted(enumerate(way.instances), key=lambda each: each[1].memory):
        used = taken.get(kind.name)
        allowed = not taken or (used is not None and len(used) < kind.most)
        if allowed and kind.memory >= memory:
            before = sum(each.most for each in way.instances[:index])
            free = next((place for place in range(kind.most) if place not in (used or ())), 0)
            return before + free, kind.memory
    return None


def against(memory: int, cut: Cut, ways: Sequence[Geometry]) -> str:
    """Return why a card has no slice of so many MiB, for people: none is as large, or those looked at are taken."""
    largest = max((kind.memory for way in ways for kind in way.instances), default=0)
    if memory > largest:
        return f"its largest slice has {largest:,} MiB, asks {memory:,}"
    among = f" among the profiles in use ({', '.join(cut.taken)})" if cut.way != UNCUT and cut.taken else ""
    return f"no slice of {memory:,} MiB is free{among}"


def take(cut: Cut, group: str, position: int, ways: Sequence[Geometry]) -> int:
    """Take a slice and return its MiB; 0 where the card has no such group."""
    for number, way in enumerate(ways):
        if way.group == group:
            cut.way = number
            kind, place = _place(way, position)
            used = cut.taken.setdefault(way.instances[kind].name, [])
            if place not in used:
                used.append(place)
                used.sort()
            return way.instances[kind].memory
    return 0


def give_back(cut: Cut, group: str, position: int, ways: Sequence[Geometry]) -> int:
    """Give a slice back. A card stays cut even when no pod has a slice any more."""
    for number, way in enumerate(ways):
        if way.group == group:
            cut.way = number
            kind, place = _place(way, position)
            name = way.instances[kind].name
            used = cut.taken.get(name)
            if used is None:
                return 0
            if place in used:
                used.remove(place)
            # Volcano drops the kind as well (subMigUsed): once no kind is left, all kinds of the way are allowed again.
            if not used:
                del cut.taken[name]
            return way.instances[kind].memory
    return 0


def _place(way: Geometry, position: int) -> tuple[int, int]:
    """Return (kind, place within it) of a position."""
    before = 0
    for index, kind in enumerate(way.instances):
        if position < before + kind.most:
            return index, position - before
        before += kind.most
    # Volcano has no answer for a position beyond the last: findPosition returns -1, and the index panics.
    return len(way.instances) - 1, position - before


# --- As Volcano's structs encode to JSON


def encoded_way(way: Geometry) -> Object:
    """Return the JSON of `Geometry`."""
    kinds = [{"Name": each.name, "Memory": each.memory, "Count": each.most} for each in way.instances]
    return {"Group": way.group, "Instances": kinds}


def encoded_use(cut: Cut, ways: Sequence[Geometry]) -> list[Object]:
    """Return the JSON of `MIGS`."""
    sizes = {each.name: each.memory for each in ways[cut.way].instances} if cut.way != UNCUT else {}
    return [
        {"name": name, "memory": sizes.get(name, 0), "inuse": True, "UsedIndex": [*used]}
        for name, used in cut.taken.items()
    ]
