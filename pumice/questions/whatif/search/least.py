"""The least of something that lets a job start. Scheduling is not monotone: more may be worse than less, so what is
found is only called the least where everything smaller was tried and would not do; else one less was tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pumice.work import WorkOverError

ONE_BY_ONE: Final = 8
"""Up to so much everything is tried, from one on."""


@dataclass(frozen=True, slots=True)
class LeastAmount:
    """`amount` does and one less does not; `least`: nor does anything smaller. `tried`: all that was tried."""

    amount: int
    least: bool
    tried: tuple[int, ...]


def least(
    does: Callable[[int], bool],
    most: int,
    spent: Callable[[], bool] = lambda: False,
    ahead: Callable[[Iterable[int]], None] = lambda amounts: None,
) -> LeastAmount | None:
    """Of 1 … `most`: one by one at first, then twice as much each time, then halving, and down while one less does.
    `ahead` is told what will be tried unless an earlier one does.

    None: nothing that was tried does. When the work is over in the middle of a try, what was found by then counts.
    Raises WorkOverError when that was nothing.
    """
    tried: dict[int, bool] = {}

    def tries(amount: int) -> bool:
        if amount not in tried:
            tried[amount] = does(amount)
        return tried[amount]

    try:
        return _least(tries, tried, most, spent, ahead)
    except WorkOverError:
        found = min((amount for amount, did in tried.items() if did), default=None)
        if found is None:
            raise
        return LeastAmount(found, False, tuple(sorted(tried)))


def _least(
    tries: Callable[[int], bool],
    tried: Mapping[int, bool],
    most: int,
    spent: Callable[[], bool],
    ahead: Callable[[Iterable[int]], None],
) -> LeastAmount | None:

    ahead(range(1, min(ONE_BY_ONE, most) + 1))
    found = next((amount for amount in range(1, min(ONE_BY_ONE, most) + 1) if not spent() and tries(amount)), None)
    low, high = min(ONE_BY_ONE, most), min(2 * ONE_BY_ONE, most)
    if found is None:
        ahead(min(high * 2**step, most) for step in range(most.bit_length()))
    while found is None and high > low and not spent():
        if tries(high):
            found = high
        else:
            low, high = high, min(2 * high, most)
    if found is None:
        return None
    while found - low > 1 and low < found and not spent():
        middle = (low + found) // 2
        if tries(middle):
            found = middle
        else:
            low = middle
    while found > 1 and not spent() and tries(found - 1):
        found -= 1
    every = all(amount in tried for amount in range(1, found))
    return LeastAmount(found, every, tuple(sorted(tried)))
