"""How long the parts of a cycle took, by a stopwatch that only they move."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pumice.actors.scheduling.core_decider import core_decider
from pumice.actors.scheduling.session_runner import Measure
from pumice.core.messages.decisions import CycleResult, Evict
from pumice.core.messages.events import CycleMeasured
from tests.actors.rig import QUICK, idle, started, three_nodes
from tests.kit.jobs import gang

OPEN_S, ACTION_S, CLOSE_S = 4.0, 0.5, 2.0


@pytest.mark.anyio
async def test_the_time_of_each_part_of_a_cycle_is_its_own() -> None:
    passed = 0.0

    def taking(seconds: float, step: Callable[..., Any]) -> Any:
        def taken(*given: Any) -> Any:
            nonlocal passed
            passed += seconds
            return step(*given)

        return taken

    real = core_decider()
    slow = replace(
        real,
        open_session=taking(OPEN_S, real.open_session),
        run_action=taking(ACTION_S, real.run_action),
        close_session=taking(CLOSE_S, real.close_session),
    )
    told: list[CycleMeasured] = []
    async with started(decider=slow, settings=replace(QUICK, stopwatch=lambda: passed)) as system:
        metrics = system.switchboard.mailboxes["metrics"]
        tell = metrics.tell

        async def heard(*messages: Any, through: bool = False) -> None:
            told.extend(each for each in messages if isinstance(each, CycleMeasured))
            await tell(*messages, through=through)

        setattr(metrics, "tell", heard)  # noqa: B010
        await system.submit([*three_nodes(), *gang("g", pods=2, duration="0")])
        await idle(system)
    assert len(told) > 1
    actions = dict.fromkeys(("enqueue", "allocate", "backfill"), ACTION_S)
    for each in told:
        assert (each.open_s, each.actions, each.close_s) == (OPEN_S, actions, CLOSE_S)
        assert each.total_s == OPEN_S + 3 * ACTION_S + CLOSE_S


def test_whoever_makes_room_in_a_cycle_counts_once() -> None:
    """Victims that go for nobody's sake are victims all the same."""
    evicts = [
        Evict("default", f"p{number}", f"u{number}", "n0", "default/low", "preempt", preemptor)
        for number, preemptor in enumerate(("default/high", "default/high", "default/higher", ""))
    ]
    measured = Measure(lambda: 0.0).finish(CycleResult(1, "", evicts=tuple(evicts)), 5.0)
    assert (measured.victims, measured.preemption_attempts) == (4, 2)
