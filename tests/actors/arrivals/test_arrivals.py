"""Objects come at their time, in order, once each, whatever crashes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.actors.arrivals import BATCH, Coming
from pumice.actors.system.system import System
from pumice.core.messages.commands import Announced
from pumice.storage import codec
from tests.actors.rig import QUICK, idle, started
from tests.kit.pods import pod

SETTINGS = replace(QUICK, arrivals=True)


def arrival(at: float, obj: dict[str, Any]) -> Announced:
    return Announced(at, codec.pack(obj))


async def names(system: System) -> list[str]:
    found = await system.listed("Pod")
    return [obj["metadata"]["name"] for obj in found]


@pytest.mark.anyio
async def test_each_comes_at_its_time_and_the_system_is_not_idle_before_the_last() -> None:
    async with started(settings=SETTINGS) as system:
        now = system.context.clock.now()
        soon, late = pod("soon"), pod("late")
        await system.announce([arrival(now + 0.3, late), arrival(now + 0.05, soon)])
        assert await names(system) == []
        assert "arrivals has 2 timers" in system.context.activity.reasons()
        await anyio.sleep(0.15)
        assert await names(system) == ["soon"]
        await idle(system)
        assert sorted(await names(system)) == ["late", "soon"]
        assert system.context.clock.now() >= now + 0.3


@pytest.mark.anyio
async def test_one_that_is_refused_does_not_keep_the_others(caplog: pytest.LogCaptureFixture) -> None:
    async with started(settings=SETTINGS) as system:
        now = system.context.clock.now()
        bad = {**pod("bad"), "metadata": {"name": "NOT a name", "namespace": "default"}}
        await system.announce([arrival(now, bad), arrival(now, pod("good")), arrival(now, pod("good"))])
        await idle(system)
        assert await names(system) == ["good"]
    assert [record.getMessage() for record in caplog.records if "arrival" in record.getMessage()] != []


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 99)), max_size=40), st.integers(0, 6))
def test_what_is_due_comes_in_the_order_of_time_and_of_announcement(said: list[tuple[int, int]], now: int) -> None:
    coming = Coming()
    for at, what in said:
        coming.add(Announced(float(at), bytes([what])))
    taken = coming.take_due(float(now))
    assert [blob for _, _, blob in taken] == [
        bytes([what]) for at, what in sorted(said, key=lambda one: one[0]) if at <= now
    ]
    assert len(coming) == len(said) - len(taken)
    coming.give_back(taken)
    assert coming.take_due(float(now)) == taken


def test_at_most_a_batch_is_taken() -> None:
    coming = Coming()
    for _ in range(BATCH + 1):
        coming.add(Announced(0.0, b""))
    assert (len(coming.take_due(1.0)), len(coming.take_due(1.0))) == (BATCH, 1)
