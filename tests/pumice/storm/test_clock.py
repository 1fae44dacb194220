"""Virtual time of a storm."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from math import inf

import pytest
import trio
from trio.testing import MockClock

from pumice.storm.clock import START, JumpingClock, LeapingClock

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


def test_nobody_sleeps_even_when_all_wait_for_ever() -> None:
    """A storm that got stuck is found out by its use of the processor."""
    clock = LeapingClock()
    clock.start_clock()
    assert clock.deadline_to_sleep_time(inf) == 0.0
    assert clock.current_time() == 0.0


def test_the_wall_clock_follows_and_jumps() -> None:
    wall = JumpingClock()

    async def main() -> None:
        assert wall.now() == START
        await trio.sleep(2.5)
        assert wall.now() == START + 2.5
        wall.jump(-5.0)
        assert wall.now() == START - 2.5
        await trio.sleep(1.0)
        assert wall.now() == START - 1.5

    trio.run(main, clock=LeapingClock())
