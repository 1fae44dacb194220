# SPDX-License-Identifier: Apache-2.0
"""The cards of all nodes as columns, and the part of them that pods hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from pumice.core.devices.columns import MOST_CARDS, NodeCards, column_of, numbers_alike
from pumice.core.devices.family import amount
from pumice.core.devices.vgpu.codec import HAMI, MIG, REGISTER, Registered, registered
from pumice.core.devices.vgpu.settings import CORES, MEMORY, NUMBER, Geometry, VgpuSettings
from pumice.core.objects.metadata import section

if TYPE_CHECKING:
    from pumice.core.devices.columns import IntArray
    from pumice.core.objects.node import NodeSpec

NEEDED: Final = (NUMBER, CORES, MEMORY)
"""A node without one of these counts as having no cards."""


@dataclass(frozen=True)
class VgpuCards(NodeCards):
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
    alike: list[int]
    kinds: list[list[int]]

    of_all = ("types",)


def cards_of(specs: Sequence[NodeSpec], settings: VgpuSettings) -> VgpuCards:
    """Return the cards of nodes, in their order."""
    registered_ = [_of_node(spec) for spec in specs]
    cards = [each[:MOST_CARDS] for each in registered_]
    types: dict[str, int] = {}
    kinds = [[types.setdefault(card.type, len(types)) for card in each] for each in cards]
    shared = [_mode(each, settings) for each in cards]
    # card[0] is the uuid, on which no score depends.
    shapes = ((mode, *(card[1:] for card in each)) for (mode, _), each in zip(shared, cards, strict=True))
    return VgpuCards(
        claimed=[len(each) for each in registered_],
        memory=column_of(cards, attrgetter("memory")),
        split=column_of(cards, attrgetter("split")),
        kind=column_of(kinds, int, missing=-1),
        types=list(types),
        cards=cards,
        mode=[mode for mode, _ in shared],
        ways=[way for _, way in shared],
        alike=numbers_alike(shapes),
        kinds=kinds,
    )


def _of_node(spec: NodeSpec) -> tuple[Registered, ...]:
    text = spec.annotations.get(REGISTER)
    if text is None:
        return ()
    allocatable = section(section(spec.node, "status"), "allocatable")
    # By Volcano's own names, even where the ConfigMap gives resources other ones (NewGPUDevices).
    return registered(text) if all(amount(allocatable, name) for name in NEEDED) else ()


def _mode(cards: tuple[Registered, ...], settings: VgpuSettings) -> tuple[str, tuple[tuple[Geometry, ...], ...]]:
    """Return the mode of a node, which its last card decides; a MIG card without a known geometry is shared like the
    others.
    """
    mode, ways = "", list[tuple[Geometry, ...]]()
    for card in cards:
        known = settings.geometry_of(card.type) if card.mode == MIG else None
        # Volcano falls back to sharing where the ConfigMap knows no geometry for the type (decodeNodeDevices).
        mode = MIG if known is not None else HAMI
        ways.append(known or ())
    return mode, tuple(ways)
