# SPDX-License-Identifier: Apache-2.0
"""The order in which Go's sort.Slice leaves items. It matters where a comparison is not an order, as Volcano's of
cores.

Source: Go `sort` (pattern-defeating quicksort).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

# Go's own numbers (`sort/zsortfunc.go`): with others equal items would end in another order.
FEW: Final = 12
NINTHER: Final = 50
MOST_SWAPS: Final = 12
STEPS: Final = 5
_WORD: Final = 2**64 - 1


def in_go_order(items: list[int], before: Callable[[int, int], bool]) -> list[int]:
    """Return the items sorted; `before(one, two)`: whether the first must stand before the second."""
    sorting = _Sorting(list(items), before)
    sorting.run(0, len(items), len(items).bit_length())
    return sorting.items


class _Sorting:
    def __init__(self, items: list[int], before: Callable[[int, int], bool]) -> None:
        self.items, self._before = items, before

    def _less(self, one: int, two: int) -> bool:
        return self._before(self.items[one], self.items[two])

    def _swap(self, one: int, two: int) -> None:
        self.items[one], self.items[two] = self.items[two], self.items[one]

    def run(self, low: int, high: int, limit: int) -> None:
        """Sort items[low:high]; after that many bad splits a heap sorts them."""
        balanced = partitioned = True
        while high - low > FEW:
            length = high - low
            # Too many bad splits: the heap keeps the whole at n log n comparisons.
            if limit == 0:
                return self._by_heap(low, high)
            if not balanced:
                self._break_patterns(low, high)
                limit -= 1
            pivot, swaps = self._pivot(low, high)
            # Every sampled pair was in the wrong order, so the list most likely descends.
            if swaps == MOST_SWAPS:
                self.items[low:high] = self.items[low:high][::-1]
                pivot = high - 1 - (pivot - low)
            rising = swaps in (0, MOST_SWAPS)
            if balanced and partitioned and rising and self._almost_sorted(low, high):
                return None
            # The item before this part is a former pivot. If it is not smaller than the new one, both are equal, and so
            # are many.
            if low > 0 and not self._less(low - 1, pivot):
                low = self._past_equals(low, high, pivot)
                continue
            middle, partitioned = self._split(low, high, pivot)
            left, right = middle - low, high - middle
            balanced = min(left, right) >= length // 8
            # Recursion into the shorter side only: its depth stays below log2 of the length.
            if left < right:
                self.run(low, middle, limit)
                low = middle + 1
            else:
                self.run(middle + 1, high, limit)
                high = middle
        return self._by_insertion(low, high)

    def _by_insertion(self, low: int, high: int) -> None:
        for index in range(low + 1, high):
            place = index
            while place > low and self._less(place, place - 1):
                self._swap(place, place - 1)
                place -= 1

    def _by_heap(self, low: int, high: int) -> None:
        count = high - low
        for root in range((count - 1) // 2, -1, -1):
            self._sift(root, count, low)
        for last in range(count - 1, -1, -1):
            self._swap(low, low + last)
            self._sift(0, last, low)

    def _sift(self, root: int, count: int, low: int) -> None:
        while (child := 2 * root + 1) < count:
            if child + 1 < count and self._less(low + child, low + child + 1):
                child += 1
            if not self._less(low + root, low + child):
                return
            self._swap(low + root, low + child)
            root = child

    def _pivot(self, low: int, high: int) -> tuple[int, int]:
        """Return (where the pivot is, how many pairs were in the wrong order)."""
        length, swaps = high - low, 0
        one, two, three = (low + length // 4 * part for part in (1, 2, 3))
        if length >= NINTHER:
            one, more = self._median(one - 1, one, one + 1)
            two, second = self._median(two - 1, two, two + 1)
            three, third = self._median(three - 1, three, three + 1)
            swaps = more + second + third
        two, more = self._median(one, two, three)
        return two, swaps + more

    def _median(self, one: int, two: int, three: int) -> tuple[int, int]:
        swaps = 0
        if self._less(two, one):
            one, two, swaps = two, one, swaps + 1
        if self._less(three, two):
            two, swaps = three, swaps + 1
        if self._less(two, one):
            two, swaps = one, swaps + 1
        return two, swaps

    def _inwards(self, left: int, right: int, low: int) -> tuple[int, int]:
        while left <= right and self._less(left, low):
            left += 1
        while left <= right and not self._less(right, low):
            right -= 1
        return left, right

    def _split(self, low: int, high: int, pivot: int) -> tuple[int, bool]:
        """Return (where the pivot ends up, whether no item had to move)."""
        self._swap(low, pivot)
        left, right = self._inwards(low + 1, high - 1, low)
        untouched = left > right
        while left <= right:
            self._swap(left, right)
            left, right = self._inwards(left + 1, right - 1, low)
        self._swap(right, low)
        return right, untouched

    def _past_equals(self, low: int, high: int, pivot: int) -> int:
        """Move what is not larger than the pivot to the front; return where the rest begins."""
        self._swap(low, pivot)
        left, right = low + 1, high - 1
        while True:
            while left <= right and not self._less(low, left):
                left += 1
            while left <= right and self._less(low, right):
                right -= 1
            if left > right:
                return left
            self._swap(left, right)
            left, right = left + 1, right - 1

    def _almost_sorted(self, low: int, high: int) -> bool:
        """Return whether the list is sorted now: a few neighbours may have been put right in a long list."""
        place = low + 1
        for _ in range(STEPS):
            while place < high and not self._less(place, place - 1):
                place += 1
            if place == high:
                return True
            if high - low < NINTHER:
                return False
            self._swap(place, place - 1)
            if place - low >= 2:
                # Down to the first item of all and not to `low`, as in Go.
                self._shift(range(place - 1, 0, -1))
            if high - place >= 2:
                self._shift(range(place + 1, high))
        return False

    def _shift(self, places: range) -> None:
        for place in places:
            if not self._less(place, place - 1):
                return
            self._swap(place, place - 1)

    def _break_patterns(self, low: int, high: int) -> None:
        length = high - low
        # This is not random: Go seeds its xorshift with the length, so lists of one length are mixed alike.
        chance, mask = length, (1 << length.bit_length()) - 1
        middle = low + length // 4 * 2
        for place in (middle - 1, middle, middle + 1):
            chance ^= chance << 13 & _WORD
            chance ^= chance >> 7
            chance ^= chance << 17 & _WORD
            other = chance & mask
            self._swap(place, low + (other - length if other >= length else other))
