"""How much of which card is in use, as a cycle leaves it: columns, for mostly nobody looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from pumice.core.state.columns import FloatArray


class PodOnCard(Struct, frozen=True, gc=False):
    """What a pod has of the card at that place: MiB, and cores in per cent."""

    card: int
    pod: str
    memory: int
    cores: int


class CardTable(Struct, frozen=True, gc=False):
    """Cards by place: their `nodes` and names; `numbers` float64 [4, card]: sharers, MiB and cores (per cent) in use,
    and the MiB that there are.
    """

    nodes: list[str] = []
    cards: list[str] = []
    numbers: bytes = b""
    pods: tuple[PodOnCard, ...] = ()

    def columns(self) -> FloatArray:
        """The numbers."""
        return np.frombuffer(self.numbers, dtype=np.float64).reshape(4, len(self.cards))
