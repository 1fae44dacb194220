"""An alarm wakes at its time, at an earlier one when it is moved, and never because it was moved."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
import trio.testing

from pumice.actors.runtime.clock import Alarm, VirtualClock

SHORT_S = 0.01


@asynccontextmanager
async def sleeping(alarm: Alarm, seconds: float) -> AsyncGenerator[list[float]]:
    """Somebody who sleeps so long by it, and then how long that was."""
    slept: list[float] = []
    began = anyio.current_time()

    async def sleep() -> None:
        await alarm.sleep_until(began + seconds)
        slept.append(anyio.current_time() - began)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sleep)
        await anyio.wait_all_tasks_blocked()
        yield slept


@pytest.mark.trio
async def test_it_wakes_once_at_the_earliest_of_its_times(autojump_clock: object) -> None:
    alarm = Alarm()
    async with sleeping(alarm, 100.0) as slept:
        began = anyio.current_time()
        for seconds in (200.0, 30.0, 70.0):
            alarm.no_later_than(began + seconds)
            await anyio.wait_all_tasks_blocked()
            assert slept == []
    assert slept == [30.0]


@pytest.mark.trio
async def test_it_tells_which_time_has_come(autojump_clock: object) -> None:
    alarm, told = Alarm(), list[float]()

    async def sleep() -> None:
        told.append(await alarm.sleep_until(began + 100.0))

    for moved, came in ((40.0, 40.0), (200.0, 100.0)):
        began = anyio.current_time()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sleep)
            await anyio.wait_all_tasks_blocked()
            alarm.no_later_than(began + moved)
        assert told.pop() == began + came


@pytest.mark.anyio
async def test_a_time_that_has_passed_wakes_immediately() -> None:
    alarm = Alarm()
    with anyio.fail_after(10):
        async with sleeping(alarm, 1000.0):
            alarm.no_later_than(anyio.current_time() - 1.0)


@pytest.mark.anyio
async def test_a_time_before_the_sleep_is_nobodys() -> None:
    alarm = Alarm()
    alarm.no_later_than(0.0)
    for _ in range(2):
        async with sleeping(alarm, SHORT_S) as slept:
            pass
        alarm.no_later_than(0.0)
        assert slept[0] >= SHORT_S * 0.9


@pytest.mark.anyio
async def test_who_sleeps_can_be_cancelled() -> None:
    alarm = Alarm()
    with anyio.move_on_after(SHORT_S) as scope:
        await alarm.sleep_until(float("inf"))
    assert scope.cancelled_caught


@pytest.mark.anyio
async def test_an_event_is_waited_for_and_no_longer() -> None:
    alarm, event = Alarm(), anyio.Event()
    began = anyio.current_time()
    await alarm.wait(event, began + SHORT_S)
    assert anyio.current_time() - began >= SHORT_S * 0.9
    await alarm.wait(event, began)  # that has passed
    event.set()
    with anyio.fail_after(10):
        await alarm.wait(event, began + 1000.0)


@pytest.mark.anyio
async def test_many_wait_while_one_sleeps() -> None:
    alarm, event = Alarm(), anyio.Event()
    with anyio.fail_after(10):
        async with sleeping(alarm, 1000.0) as slept, anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(alarm.wait, event, anyio.current_time() + 1000.0)
            await anyio.wait_all_tasks_blocked()
            event.set()
            alarm.no_later_than(anyio.current_time())
    assert slept


@pytest.mark.trio
@pytest.mark.parametrize(("stopped_s", "waits_s"), [(0.0, 30.0), (0.9, 30.9), (300.0, 360.0)])
async def test_who_waited_while_the_process_stood_still_waits_once_more(
    mock_clock: trio.testing.MockClock, stopped_s: float, waits_s: float
) -> None:
    """What an answer took in the meantime is not the fault of whoever was to give it."""
    alarm, came = Alarm(), anyio.Event()
    began = anyio.current_time()
    ended: list[float] = []

    async def wait() -> None:
        await alarm.wait(came, began + 30.0)
        ended.append(anyio.current_time() - began)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        mock_clock.jump(30.0 + stopped_s)
        await anyio.wait_all_tasks_blocked()
        assert ended == ([] if stopped_s > 1 else [waits_s])
        mock_clock.jump(30.0)
    assert ended == [waits_s]


@pytest.mark.trio
async def test_what_is_due_at_one_moment_has_one_time_wherever_it_was_reckoned(autojump_clock: object) -> None:
    """A time of day is no finer than a quarter of a microsecond, and who yields wakes a little late."""
    alarm, clock = Alarm(), VirtualClock(1_700_000_000.0)
    clock.now()
    for begun, late in ((0.0, 0.0), (0.13, 2e-7), (0.7, -1e-10)):
        await alarm.sleep_until(begun + late)
        assert alarm.after(clock.start + 1.141 - clock.now()) == 1.141


@pytest.mark.trio
async def test_after_nothing_is_later_than_now(autojump_clock: object) -> None:
    """Whoever sleeps so until a time that is off the moments gets there."""
    alarm = Alarm()
    for wait_s in (0.0, -1.0, 1e-9):
        began = anyio.current_time()
        await alarm.sleep_until(alarm.after(wait_s))
        assert began < anyio.current_time() < began + 2e-6
