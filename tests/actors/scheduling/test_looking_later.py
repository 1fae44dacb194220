"""When the scheduler looks again, in virtual time: at what failed or is unheard of, and at the view."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import anyio
import msgspec
import pytest
import trio.testing

from pumice.actors.runtime.clock import VirtualClock
from pumice.actors.scheduling.core_decider import core_decider
from pumice.core.messages.commands import Assume, Get, LookLater, StoreRequest
from pumice.core.messages.decisions import Bind, CycleResult
from pumice.core.messages.events import BindRefused, Bound, CycleDropped
from pumice.core.messages.replies import ApiReply
from pumice.storage.memory import MemoryJournal
from tests.actors.rig import QUICK, idle, lives, started, tampered
from tests.kit.nodes import node


@pytest.mark.trio
@pytest.mark.parametrize("waits_s", [[5.0], [9.0, 5.0], [5.0, 9.0]])
async def test_a_view_is_another_one_at_the_first_time_it_was_to_be_looked_at_again(
    waits_s: list[float], autojump_clock: object
) -> None:
    async with started(clock=VirtualClock()) as system:
        await idle(system)
        before = system.changed.value
        await system.switchboard.mailboxes["cache"].tell(*[LookLater(wait_s) for wait_s in waits_s])
        await anyio.sleep(4.9)
        assert system.changed.value == before
        await anyio.sleep(0.2)
        assert system.changed.value > before
        await idle(system)
        assert system.memory.seen == system.changed.value
        await anyio.sleep(10)
        assert system.memory.seen == system.changed.value == before + 1, "once is enough"


@pytest.mark.trio
async def test_a_pod_that_was_bound_at_last_is_looked_at_as_soon_as_any_other_when_it_fails_again(
    autojump_clock: object,
) -> None:
    """And what failed before is remembered no longer."""
    whose = ("1/u", 1, "default", "p", "u", "n0")
    refused, bound = BindRefused(*whose, 500, "InternalError", "planted"), Bound(*whose, 7)
    looked_at: list[float] = []
    async with started(clock=VirtualClock()) as system:
        await idle(system)
        cache, ask_many = system.switchboard.mailboxes["cache"], system.api.ask_many

        async def noted(messages: Sequence[Any], *more: Any) -> Any:
            if any(isinstance(each, Get) for each in messages):
                looked_at.append(anyio.current_time())
            return await ask_many(messages, *more)

        setattr(system.api, "ask_many", noted)  # noqa: B010
        after_s: list[float] = []
        for outcomes in ([refused], [refused], [refused], [bound, refused]):
            began = anyio.current_time()
            await cache.tell(*outcomes)
            await idle(system)
            after_s.append(looked_at[-1] - began)
    assert after_s == pytest.approx([0.005, 0.01, 0.02, 0.005], abs=1e-3)


@pytest.mark.trio
async def test_a_bind_of_which_nobody_ever_hears_is_looked_at_in_the_end_and_the_log_says_so(
    autojump_clock: object, caplog: pytest.LogCaptureFixture
) -> None:
    async with started(clock=VirtualClock(), settings=replace(QUICK, answer_timeout_s=4.0)) as system:
        await idle(system)
        began = anyio.current_time()
        await system.switchboard.mailboxes["cache"].ask(Assume(7, (Bind("default", "p", "u", "n0", "default/g"),)))
        await idle(system)
        assert anyio.current_time() - began == pytest.approx(3 * 4.0, abs=0.1)
    assert "no outcome ever came of default/p: looking at it again" in caplog.messages


@pytest.mark.trio
async def test_while_the_process_stands_still_no_bind_is_overdue_but_for_the_one_it_woke_for(
    autojump_clock: trio.testing.MockClock,
) -> None:
    looked_at: dict[str, float] = {}

    def looking(request: StoreRequest, apply: Callable[[StoreRequest, float], ApiReply], now: float) -> ApiReply:
        if isinstance(request, Get):
            looked_at[request.name] = anyio.current_time() - began
        return apply(request, now)

    async with started(clock=VirtualClock(), settings=replace(QUICK, answer_timeout_s=4.0), api=looking) as system:
        await idle(system)
        began, cache = anyio.current_time(), system.switchboard.mailboxes["cache"]
        await cache.ask(Assume(7, (Bind("default", "early", "e", "n0", "default/g"),)))
        await anyio.sleep(5.0)
        await cache.ask(Assume(8, (Bind("default", "late", "l", "n0", "default/g"),)))
        autojump_clock.jump(95.0)
        await idle(system)
    assert looked_at == pytest.approx({"early": 100.0, "late": 105.0}, abs=0.1)


@pytest.mark.trio
async def test_a_cycle_comes_in_the_moment_in_which_there_is_reason_for_one(autojump_clock: object) -> None:
    async with started(clock=VirtualClock()) as system:
        await idle(system)
        await anyio.sleep(1.0)
        began, wanted = anyio.current_time(), await system.cycles() + 1
        await system.submit([node("n0")])
        await system.until_cycles(wanted)
        assert anyio.current_time() - began < 1e-6


@pytest.mark.trio
async def test_a_scheduler_that_is_to_look_again_at_some_time_is_not_idle_before(autojump_clock: object) -> None:
    real, clock = core_decider(), VirtualClock()
    later = clock.start + 5.0

    def close(session: Any) -> CycleResult:
        wake_at = later if session.clock.now < later else None
        return msgspec.structs.replace(real.close_session(session), wake_at=wake_at)

    async with started(clock=clock, decider=replace(real, close_session=close)) as system:
        began = anyio.current_time()
        await idle(system)
        assert anyio.current_time() - began == pytest.approx(5.0, abs=0.1)


@pytest.mark.trio
async def test_each_cycle_that_is_lost_again_makes_the_pause_before_the_next_try_twice_as_long(
    autojump_clock: object,
) -> None:
    def run_action(real: Callable[[Any, str], None], session: Any, action: str) -> None:
        raise RuntimeError("planted")

    journal = MemoryJournal()
    async with started(journal, clock=VirtualClock(), decider=tampered(run_action)) as system:
        await idle(system)
    lost_at = [event.at for event in await lives(journal, CycleDropped)]
    assert [after - before for before, after in pairwise(lost_at)] == pytest.approx([0.02, 0.04, 0.08, 0.16], abs=1e-3)
