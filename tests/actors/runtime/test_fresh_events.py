"""Events made one after the other: each is its own, and the event loop's."""

from __future__ import annotations

import anyio
import pytest
import trio

from actors.runtime.fresh_events import FreshEvents

pytestmark = pytest.mark.anyio


async def test_each_is_a_new_one_of_the_loop(anyio_backend_name: str) -> None:
    events = FreshEvents()
    first, second = events.make(), events.make()
    first.set()
    native = {"trio": trio.Event, "asyncio": type(anyio.Event())}
    assert type(first) is type(second) is native[anyio_backend_name]
    assert (first.is_set(), second.is_set()) == (True, False)


async def test_wakes_who_waits() -> None:
    events = FreshEvents()
    events.make()
    event = events.make()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(event.wait)
            await anyio.wait_all_tasks_blocked()
            event.set()
