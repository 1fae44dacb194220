"""Cycles that are lost because an action raises: tried again, given up, and begun anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import anyio
import pytest

from pumice.actors.scheduling.core_decider import core_decider
from pumice.actors.scheduling.session_runner import GIVE_UP_AFTER
from pumice.core.messages.decisions import Decision
from pumice.core.messages.events import ActorCrashed, CycleDropped
from pumice.storage.memory import MemoryJournal
from tests.actors.rig import cycles, idle, journaled, lives, placed, started, tampered, three_nodes
from tests.kit.jobs import gang

pytestmark = pytest.mark.anyio


async def test_a_crashed_action_costs_the_cycle_and_never_the_process(caplog: pytest.LogCaptureFixture) -> None:
    crashes = 0

    def run_action(real: Callable[[Any, str], None], session: Any, action: str) -> None:
        nonlocal crashes
        real(session, action)
        if action == "allocate" and session.binds and crashes < 3:
            crashes += 1  # after it has allocated: what it did must not leak
            raise RuntimeError("planted")

    journal = MemoryJournal()
    async with started(journal, decider=tampered(run_action)) as system:
        await system.submit([*three_nodes(), *gang("g", pods=6, duration="0")])
        await idle(system)
        assert len(placed(system)) == 6
        assert system.supervisor.restarts["action-worker:allocate"] == 3
        assert system.memory.lost == 3
        assert len(system.sessions) == 0, "neither of a lost cycle nor of another anything is kept"
    numbers = [record.cycle for record in await cycles(journal)]
    assert numbers == list(range(1, len(numbers) + 1))  # a lost cycle takes no number
    error = "bug in Pumice: action allocate: RuntimeError('planted')"
    (binding,) = [record.cycle for record in await cycles(journal) if record.decisions]
    lost = [(event.cycle, event.error) for event in await lives(journal, CycleDropped)]
    assert lost == [(binding, error)] * 3, "each of them would have been the one that binds"
    assert caplog.messages.count(f"cycle {binding} is lost: {error}") == 3
    assert len([event for event in await lives(journal, ActorCrashed) if event.restart_in_s]) == 3
    assert len(await journaled(journal, "decision", Decision)) == 6


async def test_a_cycle_that_always_fails_is_given_up_until_something_changes() -> None:
    broken = True

    def run_action(real: Callable[[Any, str], None], session: Any, action: str) -> None:
        if broken:
            raise RuntimeError("planted")
        real(session, action)

    async with started(decider=tampered(run_action)) as system:
        await system.submit([*three_nodes(), *gang("g", pods=2, duration="0")])
        await idle(system)
        assert placed(system) == {}
        broken = False
        await system.submit(gang("h", pods=2, duration="0"))
        await idle(system)
        assert len(placed(system)) == 4


async def test_a_cycle_that_always_fails_is_tried_five_times_on_what_does_not_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pumice.actors.scheduling.session_runner.FIRST_PAUSE_S", 0.0005)

    def run_action(real: Callable[[Any, str], None], session: Any, action: str) -> None:
        raise RuntimeError("planted")

    async with started(decider=tampered(run_action)) as system:
        await idle(system)
        await anyio.sleep(0.05)  # three of the longest pauses
        assert system.memory.lost == GIVE_UP_AFTER == 5


@pytest.mark.parametrize("step", ["open", "close"])
async def test_a_session_that_cannot_be_opened_or_closed_costs_the_cycle(step: str) -> None:
    real, broken = core_decider(), 2

    def intercepted(*given: Any) -> Any:
        nonlocal broken
        if broken:
            broken -= 1
            raise RuntimeError("planted")
        return getattr(real, f"{step}_session")(*given)

    journal = MemoryJournal()
    planted: dict[str, Any] = {f"{step}_session": intercepted}
    async with started(journal, decider=replace(real, **planted)) as system:
        await system.submit([*three_nodes(), *gang("g", pods=2, duration="0")])
        await idle(system)
        assert len(placed(system)) == 2
        assert system.memory.lost == 2
        assert system.supervisor.restarts["session-runner"] == 0
    lost = [event.error for event in await lives(journal, CycleDropped)]
    assert lost == [f"bug in Pumice: {step} of the session: RuntimeError('planted')"] * 2
