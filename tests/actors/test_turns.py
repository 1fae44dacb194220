"""Turns: one at a time, in order, whoever is cancelled while it waits or when its turn has just come."""

from __future__ import annotations

import anyio
import pytest

from actors.turns import Turns

pytestmark = pytest.mark.anyio


class Queue:
    """Takes a turn for each number, and notes whose it was."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.went: list[int] = []
        self.scopes: dict[int, anyio.CancelScope] = {}
        self.inside = 0

    async def go(self, number: int) -> None:
        with anyio.CancelScope() as self.scopes[number]:
            async with self.turns:
                self.inside += 1
                assert self.inside == 1
                self.went.append(number)
                try:
                    await anyio.sleep(0.001)
                finally:
                    self.inside -= 1


async def test_one_at_a_time_in_the_order_of_their_coming() -> None:
    queue = Queue()
    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(queue.go, number)
            await anyio.lowlevel.checkpoint()
    assert queue.went == sorted(queue.went)
    assert len(queue.went) == 5


async def test_a_free_one_is_taken_without_a_wait() -> None:
    turns = Turns()
    with pytest.raises(StopIteration):
        turns.__aenter__().send(None)


async def test_who_is_cancelled_leaves_the_queue() -> None:
    queue = Queue()
    async with queue.turns, anyio.create_task_group() as tasks:
        tasks.start_soon(queue.go, 1)
        await anyio.wait_all_tasks_blocked()
        queue.scopes[1].cancel()
    await queue.go(2)
    assert queue.went == [2]


async def test_a_turn_that_comes_to_one_who_is_cancelled_goes_to_the_next() -> None:
    queue = Queue()
    async with anyio.create_task_group() as tasks, queue.turns:
        tasks.start_soon(queue.go, 1)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(queue.go, 2)
        await anyio.wait_all_tasks_blocked()
        queue.scopes[1].cancel()
    with anyio.fail_after(5):
        await queue.go(3)
    assert queue.went in ([2, 3], [1, 2, 3])  # its turn may have come first


async def test_a_turn_ends_with_an_error_too() -> None:
    turns = Turns()
    with pytest.raises(ValueError, match="in it"):
        async with turns:
            raise ValueError("in it")
    with anyio.fail_after(5):
        async with turns:
            pass
