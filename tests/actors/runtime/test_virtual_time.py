"""What waits, on trio's virtual clock: no real time passes, and the wall clock follows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import cast

import anyio
import pytest

from pumice.actors.runtime.clock import VirtualClock
from pumice.core.messages.commands import BindPod, StoreRequest, TakeSnapshot
from pumice.core.messages.events import BindTimedOut, Bound, Outcome
from pumice.core.messages.replies import ApiReply
from pumice.storage.memory import MemoryJournal
from tests.actors.rig import QUICK, idle, journaled, placed, started, stored, three_nodes
from tests.actors.runtime.test_actor import CRASH, staged
from tests.kit.jobs import gang
from tests.kit.pods import pod

pytestmark = pytest.mark.trio


async def test_the_virtual_clock_follows_the_event_loop(autojump_clock: object) -> None:
    clock = VirtualClock(start=1000.0)
    assert clock.now() == 1000.0
    await anyio.sleep(3600)
    assert clock.now() == 4600.0


async def test_backoff_doubles_up_to_its_limit_and_calms_down(autojump_clock: object) -> None:
    """Real time would take a minute and a half."""
    async with staged() as stage:
        for _ in range(12):
            await stage.box.tell(TakeSnapshot(CRASH))
            await stage.context.activity.wait_idle()
        await anyio.sleep(61)
        await stage.box.tell(TakeSnapshot(CRASH))
        await stage.context.activity.wait_idle()
    waits = [crash.restart_in_s for crash in stage.crashes()]
    assert waits == [min(0.01 * 2**n, 10.0) for n in range(12)] + [0.01]


async def test_a_bind_without_an_answer_times_out_and_backs_off(autojump_clock: object) -> None:
    """On virtual time: six answers never come, each waited for 30 s; the delays in between double."""
    swallowed: list[str] = []
    journal = MemoryJournal()
    clock = VirtualClock()
    system_settings = replace(QUICK, bind_workers=1)
    async with started(journal, settings=system_settings, clock=clock) as system:
        ask_many = cast("Callable[..., Awaitable[Sequence[ApiReply | None]]]", system.api.ask_many)

        async def silent(messages: Sequence[StoreRequest], **within: float) -> Sequence[ApiReply | None]:
            if len(swallowed) < 6 and messages and isinstance(messages[0], BindPod):
                swallowed.append(messages[0].name)
                await anyio.sleep(within["within_s"])
                return [None] * len(messages)
            return await ask_many(messages, **within)

        setattr(system.api, "ask_many", silent)  # noqa: B010
        await system.submit([*three_nodes(), *gang("g", pods=1, duration="0")])
        await idle(system, 600)
        assert placed(system)
    outcomes = await journaled(journal, "outcome", Outcome)
    assert [type(outcome) for outcome in outcomes] == [BindTimedOut] * 6 + [Bound]
    at = [stored.at for stored in await journal.read(kinds=["outcome"])]
    for number, (before, after) in enumerate(pairwise(at[:-1])):
        assert after - before == pytest.approx(30 + 0.005 * 2**number, abs=0.02)


async def test_virtual_time_runs_pods_to_their_end_immediately(autojump_clock: object) -> None:
    began = anyio.current_time()
    async with started(clock=VirtualClock(), settings=replace(QUICK, schedule_period_s=None)) as system:
        await system.submit([*three_nodes(), pod("p", duration="3h")])
        await idle(system, 4 * 3600)
        (only,) = stored(system, "Pod")
        assert only["status"]["phase"] == "Succeeded"
    assert 3 * 3600 <= anyio.current_time() - began < 3 * 3600 + 60


async def test_an_actor_that_crashes_again_and_again_in_the_same_way_fills_no_log(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    async with staged() as stage:
        for _ in range(10):
            await stage.box.tell(TakeSnapshot(CRASH))
            await stage.context.activity.wait_idle()
    traces = [record.exc_info is not None for record in caplog.records]
    assert traces == [True, False, False, False], "the first with its trace; the 2nd, 4th and 8th in a line"
    assert "crashed 8 times in the same way, 1.28 s apart" in caplog.records[-1].getMessage()
