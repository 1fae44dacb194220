"""Which request held the loop longest."""

from __future__ import annotations

import gc
import time
import weakref

import anyio
import anyio.lowlevel
import pytest

from pumice.actors.runtime.longest import Laps, Longest


def spin(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


@pytest.mark.anyio
async def test_steps_count_one_by_one_and_waiting_does_not() -> None:
    longest = Longest()

    async def work() -> str:
        for _ in range(3):
            spin(0.02)
            await anyio.sleep(0.03)
        return "done"

    assert await longest.timed(work(), "GET", "/a\n\x1b[31m") == "done"
    assert 0.02 <= longest.seconds < 0.04
    assert longest.request == "GET /a\\n\\x1b[31m"

    async def short() -> None:
        spin(0.001)

    await longest.timed(short(), "GET", "/b")
    assert longest.request.startswith("GET /a")
    longest.forget()
    assert (longest.seconds, longest.request) == (0.0, "")


@pytest.mark.anyio
async def test_errors_and_cancellation_pass_through() -> None:
    longest = Longest()
    seen: list[str] = []

    async def fail() -> None:
        await anyio.lowlevel.checkpoint()
        raise ValueError("no")

    async def sleep() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            seen.append("left")

    with pytest.raises(ValueError, match="no"):
        await longest.timed(fail(), "GET", "/")
    with anyio.move_on_after(0.02) as scope:
        await longest.timed(sleep(), "GET", "/")
    assert scope.cancelled_caught
    assert seen == ["left"]


def test_laps_give_each_step_its_own_time_and_count_no_waiting() -> None:
    longest = Longest()
    laps = Laps(longest)
    laps.begin()
    spin(0.005)
    laps.lap("Create", lambda: "first")
    spin(0.02)
    laps.lap("Patch", lambda: "second")
    time.sleep(0.05)
    laps.lap("Get", lambda: "asleep")
    spin(0.002)
    laps.lap("Get", lambda: "short")
    assert longest.request == "Patch second"
    assert 0.02 <= longest.seconds < 0.04


@pytest.mark.anyio
async def test_what_a_cancellation_leaves_is_nothing_for_the_collector() -> None:
    """Every watch ends so."""
    longest, seen = Longest(), list[weakref.ref[BaseException]]()

    async def work() -> None:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class() as error:
            seen.append(weakref.ref(error))
            raise

    gc.disable()
    try:
        with anyio.move_on_after(0):
            await longest.timed(work(), "GET", "/watch")
        await anyio.lowlevel.checkpoint()
        assert [each() for each in seen] == [None]
    finally:
        gc.enable()
