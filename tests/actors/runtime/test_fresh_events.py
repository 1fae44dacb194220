"""Events made one after the other: each is its own, and such as `anyio.Event()` makes."""

from __future__ import annotations

import anyio
import pytest

from actors.runtime.fresh_events import FreshEvents

pytestmark = pytest.mark.anyio


async def test_each_is_a_new_one_as_anyio_makes_it() -> None:
    events = FreshEvents()
    first, second, third = events.make(), events.make(), events.make()
    second.set()
    assert type(first) is type(second) is type(third) is type(anyio.Event())
    assert (first.is_set(), second.is_set(), third.is_set()) == (False, True, False)


async def test_wakes_who_waits() -> None:
    events = FreshEvents()
    events.make()
    event = events.make()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(event.wait)
            await anyio.wait_all_tasks_blocked()
            event.set()


async def test_asks_which_loop_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    make = anyio.Event.__new__

    def counted(cls: type[anyio.Event]) -> anyio.Event:
        asked.append(1)
        return make(cls)

    monkeypatch.setattr(anyio.Event, "__new__", counted)
    events = FreshEvents()
    for _ in range(3):
        events.make()
    assert len(asked) == 1
