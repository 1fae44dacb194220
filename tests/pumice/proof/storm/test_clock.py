"""The wall clock of a storm."""

from __future__ import annotations

import trio

from pumice.proof.storm.driver import START, JumpingClock
from pumice.runtime.leaping import LeapingClock


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
