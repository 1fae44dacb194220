"""Level signals, the activity board, the table of handles, the clocks."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from pumice.actors.runtime.activity import Activity
from pumice.actors.runtime.clock import RealClock
from pumice.actors.runtime.level_signal import LevelSignal
from pumice.cluster.handles import HandleTable

pytestmark = pytest.mark.anyio


async def test_a_level_signal_wakes_everybody_and_forgets_nobody() -> None:
    signal = LevelSignal()
    woken: list[int] = []

    async def wait(beyond: int) -> None:
        woken.append(await signal.wait_beyond(beyond))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait, 0)
        tasks.start_soon(wait, 4)
        await anyio.wait_all_tasks_blocked()
        signal.raise_to(3)
        await anyio.wait_all_tasks_blocked()
        assert woken == [3]
        signal.raise_to(2)  # lower: nothing
        assert signal.value == 3
        signal.raise_to(5)
    assert woken == [3, 5]
    assert await signal.wait_beyond(4) == 5  # late, so without a wait


async def test_idle_waits_for_everything_on_the_board() -> None:
    board = Activity()
    board.published(3)
    board.seen("cache", 2)
    board.timers("agents", 1)
    board.settled("scheduler", False)
    board.begin(2)
    assert board.reasons() == [
        "2 messages or pieces of work in flight",
        "cache is at revision 2 of 3",
        "agents has 1 timers",
        "scheduler has not settled",
    ]
    idle = anyio.Event()

    async def wait() -> None:
        await board.wait_idle()
        idle.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        steps: list[Callable[[], None]] = [
            lambda: board.end(2),
            lambda: board.seen("cache", 3),
            lambda: board.timers("agents", 0),
            lambda: board.settled("scheduler", True),
        ]
        for step in steps:
            await anyio.wait_all_tasks_blocked()
            assert not idle.is_set()
            step()
    assert board.is_idle()
    assert board.reasons() == []
    board.published(4)  # news nobody has looked at
    assert not board.is_idle()
    board.forget("cache")
    assert board.is_idle()


async def test_busy_counts_even_when_the_work_fails() -> None:
    board = Activity()

    def fail() -> None:
        with board.busy():
            assert not board.is_idle()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert board.is_idle()


def test_a_table_of_handles_hands_out_by_number() -> None:
    table: HandleTable[str] = HandleTable(str)
    first, second = table.put("a"), table.put("b")
    assert first != second
    assert table.get(first) == "a"
    assert table.take(first) == "a"
    with pytest.raises(KeyError):
        table.get(first)
    table.drop(first)
    table.drop(second)
    assert len(table) == 0


def test_the_real_clock_is_in_this_century() -> None:
    assert 1.7e9 < RealClock().now() < 5e9
