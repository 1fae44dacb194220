"""Words for cards that will not do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST: Final = 8
"""So many cards are named."""


def told_of(against: Mapping[str, list[str]]) -> list[str]:
    """A sentence for each card, "card 0: 2,000 MiB left of 16,000, asks 4,000"; of very many cards the first."""
    sentences = [f"{card}: {'; '.join(reasons) if reasons else 'would do'}" for card, reasons in against.items()]
    more = len(sentences) - MOST
    return [*sentences[:MOST], *([f"and {more} more"] if more > 0 else [])]


def short_of(what: str, left: int, size: int, asked: int) -> list[str]:
    """What a card has too little of."""
    return [f"{left:,} {what} left of {size:,}, asks {asked:,}"] if left < asked else []
