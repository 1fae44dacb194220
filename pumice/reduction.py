"""Delta debugging: leaving out of a list what a failure does not need (Zeller and Hildebrandt 2002)."""

from __future__ import annotations

from collections.abc import Callable


def leave_out_pieces(
    count: Callable[[], int], without: Callable[[int, int], bool], exhausted: Callable[[], bool]
) -> None:
    """Leave out pieces of half the items, then a quarter, down to one by one, until no single item can go.

    `count`: how many items there are now; `without(start, end)`: leave out these if the failure stays, and return
    whether it did.
    """
    size = max(1, count() // 2)
    while not exhausted():
        start, before = 0, count()
        while start < count():
            if not without(start, start + size):
                start += size
        if size > 1:
            size //= 2
        elif count() == before:
            return
