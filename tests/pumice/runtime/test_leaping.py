"""Virtual time: the clock that leaps, and what rings by it."""

from __future__ import annotations

import time
import weakref
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import anyio
import pytest
import trio
from trio.testing import MockClock

from pumice.actors.runtime.clock import Alarm
from pumice.runtime.bells import FEW
from pumice.runtime.leaping import Bell, LeapingClock

DAY_S = 86_400.0

Seen = list[tuple[float, str]]


def _lived(main: Callable[[Seen], Awaitable[None]], clock: trio.abc.Clock) -> Seen:
    seen: Seen = []
    trio.run(main, seen, clock=clock)
    return seen


async def _sleepers(seen: Seen) -> None:
    async def sleeper(name: str, seconds: float) -> None:
        for _ in range(3):
            await trio.sleep(seconds)
            await trio.lowlevel.checkpoint()  # time stands still while there is something to do
            seen.append((trio.current_time(), name))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sleeper, "day", DAY_S)
        nursery.start_soon(sleeper, "tenth", 0.1)
        nursery.start_soon(sleeper, "zero", 0.0)


async def _cut_off(seen: Seen) -> None:
    with trio.move_on_after(7.5) as scope:
        await trio.sleep(DAY_S)
    seen.append((trio.current_time(), str(scope.cancelled_caught)))


@pytest.mark.parametrize("main", [_sleepers, _cut_off])
def test_time_leaps_to_where_trios_own_clock_does(
    main: Callable[[Seen], Awaitable[None]],
) -> None:
    began = time.monotonic()
    seen = _lived(main, LeapingClock())
    theirs = _lived(main, MockClock(autojump_threshold=0))
    assert time.monotonic() - began < 5.0
    assert [name for _, name in seen] == [name for _, name in theirs]
    assert [at for at, _ in seen] == pytest.approx([at for at, _ in theirs])


def test_a_leap_is_one_turn_of_the_loop() -> None:
    class Turns(trio.abc.Instrument):
        number = 0

        def before_io_wait(self, timeout: float) -> None:
            assert timeout == 0.0
            self.number += 1

    async def sleep_often() -> None:
        for _ in range(100):
            await trio.sleep(1.0)

    turns = Turns()
    trio.run(sleep_often, clock=LeapingClock(), instruments=[turns])
    assert 100 <= turns.number < 110


@dataclass
class _Sleeper:
    """Sleeps by an alarm once, and notes when it woke."""

    alarm: Alarm
    seen: Seen

    async def sleep(self, seconds: float, name: str = "") -> None:
        due = await self.alarm.sleep_until(trio.current_time() + seconds)
        assert due <= trio.current_time()
        self.seen.append((trio.current_time(), name))


def _rung(steps: Callable[[_Sleeper, trio.Nursery], Awaitable[None]], make: Callable[[], Alarm], clock: Any) -> Seen:
    async def main(seen: Seen) -> None:
        async with trio.open_nursery() as nursery:
            await steps(_Sleeper(make(), seen), nursery)

    return _lived(main, clock)


async def _moved(sleeper: _Sleeper, nursery: trio.Nursery) -> None:
    nursery.start_soon(sleeper.sleep, 100.0, "moved")
    for seconds in (200.0, 30.0, 70.0):
        await trio.sleep(0.0)
        await trio.sleep(0.0)
        sleeper.alarm.no_later_than(seconds)
        assert sleeper.seen == []


async def _overdue(sleeper: _Sleeper, nursery: trio.Nursery) -> None:
    nursery.start_soon(sleeper.sleep, 100.0, "moved back")
    await trio.sleep(2.0)
    sleeper.alarm.no_later_than(1.0)


async def _in_turn(sleeper: _Sleeper, nursery: trio.Nursery) -> None:
    for seconds in (3.0, 0.0, 5.0):
        sleeper.alarm.no_later_than(0.0)  # nobody sleeps: it is nobody's
        await sleeper.sleep(seconds, "in turn")


async def _between_deadlines(sleeper: _Sleeper, nursery: trio.Nursery) -> None:
    nursery.start_soon(sleeper.sleep, 4.0, "rung")
    for _ in range(3):
        await trio.sleep(3.0)
        sleeper.seen.append((trio.current_time(), "slept"))


async def _woken_before(sleeper: _Sleeper, nursery: trio.Nursery) -> None:
    nursery.start_soon(sleeper.sleep, 50.0, "moved")
    await trio.sleep(1.0)
    sleeper.alarm.no_later_than(2.0)
    await trio.sleep(100.0)  # past the time that counts no more
    sleeper.seen.append((trio.current_time(), "slept"))


async def _given_up(sleeper: _Sleeper, nursery: trio.Nursery) -> None:
    with trio.move_on_after(1.0) as scope:
        await sleeper.sleep(10.0)
    assert scope.cancelled_caught
    await trio.sleep(20.0)
    sleeper.seen.append((trio.current_time(), "slept"))


async def _at_most(sleeper: _Sleeper, nursery: trio.Nursery) -> None:
    never, soon = anyio.Event(), anyio.Event()
    nursery.start_soon(sleeper.sleep, 100.0, "slept")
    await sleeper.alarm.wait(never, 3.0)
    sleeper.seen.append((trio.current_time(), "in vain"))
    nursery.start_soon(sleeper.alarm.wait, soon, 50.0)
    await trio.sleep(1.0)
    soon.set()
    await sleeper.alarm.wait(soon, 40.0)
    sleeper.seen.append((trio.current_time(), "immediately"))
    await sleeper.alarm.wait(anyio.Event(), 2.0)  # that has passed
    sleeper.seen.append((trio.current_time(), "too late"))


STEPS = [_moved, _overdue, _in_turn, _between_deadlines, _woken_before, _given_up, _at_most]


@pytest.mark.parametrize("steps", STEPS)
def test_a_bell_is_an_alarm(steps: Callable[[_Sleeper, trio.Nursery], Awaitable[None]]) -> None:
    clock = LeapingClock()
    seen = _rung(steps, lambda: Bell(clock), clock)
    assert seen
    assert seen == _rung(steps, Alarm, LeapingClock())


def test_time_does_not_leap_to_a_bell_that_nobody_waits_for() -> None:
    clock = LeapingClock()
    bell = trio.Event()
    clock.ring(bell, 5.0)
    bell.set()
    assert clock.deadline_to_sleep_time(7.0) == 0.0
    assert clock.current_time() == 7.0


@pytest.mark.parametrize("seconds", [0.0, inf])
def test_who_waits_for_ever_sleeps_as_long_as_was_said(seconds: float) -> None:
    clock = LeapingClock(seconds)
    clock.start_clock()
    assert clock.deadline_to_sleep_time(inf) == seconds
    assert clock.current_time() == 0.0


def _rung_early(clock: LeapingClock, time: float) -> weakref.ref[trio.Event]:
    bell = trio.Event()
    clock.ring(bell, time)
    bell.set()
    return weakref.ref(bell)


def test_bells_that_were_set_before_their_time_are_forgotten() -> None:
    clock, late = LeapingClock(), trio.Event()
    clock.ring(late, 7.0)
    kept = [_rung_early(clock, 1e6 + number) for number in range(FEW * 5)]
    assert sum(each() is not None for each in kept) <= FEW
    clock.deadline_to_sleep_time(inf)
    assert late.is_set()
    assert clock.current_time() == 7.0
