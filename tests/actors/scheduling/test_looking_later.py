"""When the cache looks again, in virtual time: at what failed, and at a view of which there may be more to say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from actors.runtime.clock import VirtualClock
from core.messages.commands import Get, LookLater
from core.messages.events import BindRefused, Bound
from tests.actors.rig import idle, started


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
