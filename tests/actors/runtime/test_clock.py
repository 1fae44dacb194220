"""The wall clock: it never goes back, and nothing waits longer for a machine whose clock was set back."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.actors.runtime.clock import SLEWED_S, RealClock
from pumice.core.messages.commands import Get
from pumice.core.messages.replies import Accepted
from pumice.storage import codec
from tests.actors.rig import idle, started, three_nodes
from tests.kit.jobs import gang

HOUR_S = 3600.0


@dataclass
class Hands:
    """A wall clock and a steady one, moved by hand."""

    wall: float = 1_000_000.0
    steady: float = 0.0

    def pass_(self, seconds: float, jump: float = 0.0) -> None:
        self.wall += seconds + jump
        self.steady += seconds

    def clock(self) -> RealClock:
        return RealClock(lambda: self.wall, lambda: self.steady)


def test_a_clock_that_is_set_back_goes_on_until_the_machines_has_caught_up(caplog: pytest.LogCaptureFixture) -> None:
    hands = Hands()
    clock = hands.clock()
    began = clock.now()
    hands.pass_(10, jump=-HOUR_S)
    assert clock.now() == began + 10
    hands.pass_(HOUR_S / 2)
    assert clock.now() == began + 10 + HOUR_S / 2
    hands.pass_(1, jump=HOUR_S + 5)
    assert clock.now() == hands.wall == began + 10 + HOUR_S / 2 + 6
    assert [record.levelno for record in caplog.records] == [logging.WARNING], "it is said once"
    assert "went back by 3600 s" in caplog.text


def test_a_clock_that_is_set_forward_or_corrected_a_little_is_followed() -> None:
    hands = Hands()
    clock = hands.clock()
    clock.now()
    hands.pass_(1, jump=HOUR_S)
    assert clock.now() == hands.wall
    hands.pass_(10, jump=-SLEWED_S / 2)
    assert clock.now() == hands.wall


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(-5000, 5000)), max_size=20))
def test_it_never_goes_back_nor_slower_than_the_time_that_passed(steps: list[tuple[float, float]]) -> None:
    hands = Hands()
    clock = hands.clock()
    before = clock.now()
    for seconds, jump in steps:
        hands.pass_(seconds, jump)
        now = clock.now()
        assert now >= before
        assert now >= before + seconds - SLEWED_S - 1e-6
        assert now >= hands.wall
        before = now


@pytest.mark.anyio
async def test_pods_end_and_cycles_go_on_when_the_machines_clock_goes_back_by_an_hour() -> None:
    back_s = 0.0
    clock = RealClock(lambda: time.time() - back_s)
    async with started(clock=clock) as system:
        await system.submit([*three_nodes(), *gang("g", pods=3, duration="0.3s")])
        await system.until_cycles(2)
        back_s = HOUR_S
        await system.submit(gang("h", pods=3, duration="0.1s"))
        with anyio.fail_after(20):
            await idle(system)
        for name in ("g-0", "h-0"):
            reply = await system.api.ask(Get("Pod", "default", name))
            assert isinstance(reply, Accepted)
            assert codec.unpack(reply.blob)["status"]["phase"] == "Succeeded"
