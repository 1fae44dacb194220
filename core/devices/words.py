"""Words for cards that will not do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST: Final = 8
"""So many cards are named."""


def told_of(against: Mapping[str, list[str]], asked: int = 1) -> list[str]:
    """A sentence for each card, "card 0: 2,000 MiB left of 16,000, asks 4,000"; of very many cards the first. `asked`:
    how many a container asks for; when there are not as many, how many would do comes first.
    """
    good = sum(not reasons for reasons in against.values())
    few = [f"{good} of the {asked} cards asked for would do"] if good < asked and asked > 1 else []
    sentences = [f"{card}: {'; '.join(reasons) if reasons else 'would do'}" for card, reasons in against.items()]
    more = len(sentences) - MOST
    return [*few, *sentences[:MOST], *([f"and {more} more"] if more > 0 else [])]


def short_of(what: str, left: int, size: int, asked: int) -> list[str]:
    """What a card has too little of."""
    return [f"{left:,} {what} left of {size:,}, asks {asked:,}"] if left < asked else []
