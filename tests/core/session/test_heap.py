"""The heap against a plain reading of Go's container/heap, and against sorting where the order is total."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from pumice.core.session.heap import PriorityQueue, SortedQueue

Less = Callable[[tuple[int, int], tuple[int, int]], bool]


class GoHeap:
    """container/heap, line by line."""

    def __init__(self, less: Less) -> None:
        self.less, self.items = less, list[tuple[int, int]]()

    def push(self, item: tuple[int, int]) -> None:
        self.items.append(item)
        j = len(self.items) - 1
        while True:
            i = (j - 1) // 2 if j > 0 else 0  # Go truncates (0-1)/2 to 0
            if i == j or not self.less(self.items[j], self.items[i]):
                break
            self.items[i], self.items[j] = self.items[j], self.items[i]
            j = i

    def pop(self) -> tuple[int, int]:
        n = len(self.items) - 1
        self.items[0], self.items[n] = self.items[n], self.items[0]
        i = 0
        while True:
            j1 = 2 * i + 1
            if j1 >= n or j1 < 0:
                break
            j = j1
            if j1 + 1 < n and self.less(self.items[j1 + 1], self.items[j1]):
                j = j1 + 1
            if not self.less(self.items[j], self.items[i]):
                break
            self.items[i], self.items[j] = self.items[j], self.items[i]
            i = j
        return self.items.pop()


def by_weight(left: tuple[int, int], right: tuple[int, int]) -> bool:
    return left[0] < right[0]


@given(st.lists(st.one_of(st.integers(0, 3), st.none()), max_size=60))
def test_ties_come_out_as_in_go(script: list[int | None]) -> None:
    ours: PriorityQueue[tuple[int, int]] = PriorityQueue(by_weight)
    theirs = GoHeap(by_weight)
    for serial, weight in enumerate(script):
        if weight is not None:
            ours.push((weight, serial))
            theirs.push((weight, serial))
        elif theirs.items:
            assert ours.pop() == theirs.pop()
    while theirs.items:
        assert ours.pop() == theirs.pop()
    assert len(ours) == 0


@given(st.lists(st.integers(), unique=True))
def test_a_total_order_comes_out_sorted(numbers: list[int]) -> None:
    heap = PriorityQueue(lambda a, b: a < b, numbers)
    assert [heap.pop() for _ in numbers] == sorted(numbers)


def test_the_comparator_reads_live_state() -> None:
    weight = {"a": 1, "b": 2, "c": 3}
    heap = PriorityQueue(lambda x, y: weight[x] < weight[y], weight)
    assert heap.pop() == "a"
    weight["b"] = 9
    heap.push("a")
    assert [heap.pop(), heap.pop(), heap.pop()] == ["a", "c", "b"]


def test_clones_are_independent() -> None:
    for queue in (PriorityQueue(lambda a, b: a < b, [2, 1, 3]), SortedQueue([1, 2, 3])):
        twin = queue.clone()
        assert [queue.pop(), queue.pop(), queue.pop()] == [1, 2, 3]
        assert len(twin) == 3
        assert twin.pop() == 1


@given(st.lists(st.integers(0, 9)))
def test_what_would_come_can_be_looked_at_without_taking_it(numbers: list[int]) -> None:
    heap = PriorityQueue(lambda a, b: a < b, numbers)
    assert heap.in_order() == sorted(numbers)
    assert [heap.pop() for _ in numbers] == sorted(numbers)
