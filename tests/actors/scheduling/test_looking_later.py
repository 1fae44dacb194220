"""There may be more to say though nothing changed: another cycle comes when it is time, here in virtual time."""

from __future__ import annotations

import anyio
import pytest

from actors.runtime.clock import VirtualClock
from core.messages.commands import LookLater
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
