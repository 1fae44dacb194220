"""What the network holds is due at its time, whatever came to be held before or after it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest
from trio.testing import MockClock

from pumice.actors.api_server.faults.network import Network
from pumice.actors.runtime.actor import Context
from pumice.actors.runtime.clock import RealClock

Act = Callable[[Network], object]


def due_at(first_s: float | None, act: Act, at_s: float = 1.0) -> float:
    """When a waiter wakes: it waits from 0 s on for what is held for `first_s`, and at `at_s` something happens."""

    async def woken() -> float:
        network = Network(Context(RealClock()))
        began = anyio.current_time()
        if first_s is not None:
            network.hold(first_s)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(happen, network)
            with anyio.fail_after(60.0):
                await network.wait()
            tasks.cancel_scope.cancel()
        return anyio.current_time() - began

    async def happen(network: Network) -> None:
        await anyio.sleep(at_s)
        act(network)

    return run(woken)


def run(main: Callable[[], Awaitable[float]]) -> float:
    return anyio.run(main, backend="trio", backend_options={"clock": MockClock(autojump_threshold=0)})


CASES: dict[str, tuple[float | None, Act, float]] = {
    "earlier": (5.0, lambda network: network.hold(1.0), 2.0),
    "later": (5.0, lambda network: network.hold(9.0), 5.0),
    "first": (None, lambda network: network.hold(3.0), 4.0),
    "crash": (5.0, lambda network: network.crash("cache", 0), 1.0),
    "crash, nothing held": (None, lambda network: network.crash("cache", 0), 1.0),
    "nothing": (5.0, lambda network: None, 5.0),
}


@pytest.mark.parametrize(("first_s", "act", "expected_s"), CASES.values(), ids=CASES)
def test_who_waits_wakes_when_the_next_is_due(first_s: float | None, act: Act, expected_s: float) -> None:
    assert due_at(first_s, act) == pytest.approx(expected_s)


def test_what_is_held_before_anybody_waits_is_found() -> None:
    async def found() -> float:
        network = Network(Context(RealClock()))
        network.hold(2.0)
        await network.wait()
        assert len(network.take(anyio.current_time())) == 1
        network.hold(1.0)  # while nobody waits
        await network.wait()
        return float(len(network.take(anyio.current_time())))

    assert run(found) == 1.0
