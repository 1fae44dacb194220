"""The cards of all nodes as columns, and the part of them that pods have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from pumice.core.devices.family import amount
from pumice.core.devices.vgpu.codec import HAMI, MIG, REGISTER, Registered, registered
from pumice.core.devices.vgpu.settings import CORES, MEMORY, NUMBER, Geometry, VgpuSettings
from pumice.core.objects.metadata import section

if TYPE_CHECKING:
    from pumice.core.devices.family import BoolArray
    from pumice.core.objects.node import NodeSpec

IntArray = npt.NDArray[np.int64]
NEEDED: Final = (NUMBER, CORES, MEMORY)
"""A node without one of these counts as having no cards."""


@dataclass(frozen=True, slots=True)
class VgpuCards:
    """`memory` MiB, `split` (most sharers) and `kind` (number of the type in `types`, -1: no card) int64 [N, C].

    `cards` and `kinds` (as `kind`): of each node; `alike`: the same number for nodes that differ by their cards' names
    only; `mode`: how cards are shared, "" without any; `ways`: for MIG, how each can be cut.
    """

    memory: IntArray
    split: IntArray
    kind: IntArray
    types: list[str]
    cards: list[tuple[Registered, ...]]
    mode: list[str]
    ways: list[tuple[tuple[Geometry, ...], ...]]
    present: BoolArray
    alike: list[int]
    kinds: list[list[int]]

    def alone(self, row: int) -> VgpuCards:
        """One node of them."""
        at = slice(row, row + 1)
        return VgpuCards(
            memory=self.memory[at],
            split=self.split[at],
            kind=self.kind[at],
            types=self.types,
            cards=self.cards[at],
            mode=self.mode[at],
            ways=self.ways[at],
            present=self.present[at],
            alike=self.alike[at],
            kinds=self.kinds[at],
        )


def cards_of(specs: Sequence[NodeSpec], settings: VgpuSettings) -> VgpuCards:
    """The cards of nodes, in their order."""
    cards = [_of_node(spec) for spec in specs]
    shape = len(specs), max(map(len, cards), default=0)
    memory, split = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    kind = np.full(shape, -1, dtype=np.int64)
    types: dict[str, int] = {}
    for row, each in enumerate(cards):
        if each:
            memory[row, : len(each)] = [card.memory for card in each]
            split[row, : len(each)] = [card.split for card in each]
            kind[row, : len(each)] = [types.setdefault(card.type, len(types)) for card in each]
    shared = [_mode(each, settings) for each in cards]
    modes, ways = [mode for mode, _ in shared], [way for _, way in shared]
    present = np.array([bool(each) for each in cards], dtype=np.bool_)
    numbers: dict[tuple[object, ...], int] = {}
    shapes = [(mode, *(card[1:] for card in each)) for mode, each in zip(modes, cards, strict=True)]
    alike = [numbers.setdefault(each, len(numbers)) for each in shapes]
    kinds = [[types[card.type] for card in each] for each in cards]
    return VgpuCards(memory, split, kind, list(types), cards, modes, ways, present, alike, kinds)


def _of_node(spec: NodeSpec) -> tuple[Registered, ...]:
    text = spec.annotations.get(REGISTER)
    if text is None:
        return ()
    allocatable = section(section(spec.node, "status"), "allocatable")
    return registered(text) if all(amount(allocatable, name) for name in NEEDED) else ()


def _mode(cards: tuple[Registered, ...], settings: VgpuSettings) -> tuple[str, tuple[tuple[Geometry, ...], ...]]:
    """The last card decides for the node; a card of MIG without a known geometry is shared like the others."""
    mode, ways = "", list[tuple[Geometry, ...]]()
    for card in cards:
        known = settings.geometry_of(card.type) if card.mode == MIG else None
        mode = MIG if known is not None else HAMI
        ways.append(known or ())
    return mode, tuple(ways)
