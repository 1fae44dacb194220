"""Turns: one at a time, in the order of coming, whoever is cancelled in between."""

from __future__ import annotations

import anyio
import pytest

from actors.turns import Turns

pytestmark = pytest.mark.anyio


class Bench:
    """Tasks that take a turn and keep it until they are let go."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.log: list[str] = []
        self.inside = 0
        self.go = {name: anyio.Event() for name in "abcd"}
        self.scopes = {name: anyio.CancelScope() for name in "abcd"}

    async def take(self, name: str) -> None:
        with self.scopes[name]:
            async with self.turns:
                self.inside += 1
                assert self.inside == 1
                self.log.append(name)
                try:
                    await self.go[name].wait()
                finally:
                    self.inside -= 1


async def _settle() -> None:
    await anyio.wait_all_tasks_blocked()


async def test_one_at_a_time_in_the_order_of_coming() -> None:
    bench = Bench()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for name in "abcd":
                tasks.start_soon(bench.take, name)
                await _settle()
            assert bench.log == ["a"]
            for name in "abcd":
                bench.go[name].set()
                await _settle()
    assert bench.log == ["a", "b", "c", "d"]


async def test_who_is_cancelled_while_waiting_is_passed_over() -> None:
    bench = Bench()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for name in "abc":
                tasks.start_soon(bench.take, name)
                await _settle()
            bench.scopes["b"].cancel()
            await _settle()
            for name in "ac":
                bench.go[name].set()
    assert bench.log == ["a", "c"]


async def test_who_is_cancelled_as_its_turn_comes_hands_it_on() -> None:
    bench = Bench()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for name in "abc":
                tasks.start_soon(bench.take, name)
                await _settle()
            bench.scopes["a"].cancel()
            bench.scopes["b"].cancel()
            await _settle()
            bench.go["c"].set()
    assert bench.log == ["a", "c"]


async def test_nobody_slips_in_before_who_waits() -> None:
    bench = Bench()
    bench.go["b"].set()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            async with bench.turns:
                tasks.start_soon(bench.take, "b")
                await _settle()
            async with bench.turns:
                bench.log.append("again")
    assert bench.log == ["b", "again"]


async def test_a_turn_that_fails_is_over() -> None:
    turns = Turns()
    with pytest.raises(ValueError, match="boom"):
        async with turns:
            raise ValueError("boom")
    with anyio.fail_after(5):
        async with turns:
            pass
