"""Reading the api's changes for all watches."""

from __future__ import annotations

from typing import Any, cast

import anyio
import pytest
import trio.testing

from actors.gateway.hub import GATHER_S, Hub
from actors.runtime.activity import Activity
from actors.runtime.news import News
from actors.runtime.shelf import Shelf
from core.messages.events import Mutation
from core.messages.watch import Events
from storage import codec
from tests.kit.pods import pod

POD = codec.pack(pod("p"))


class Log:
    """All changes are of one pod."""

    def __init__(self, news: News) -> None:
        self._news = news

    def read(self, since: int, kinds: tuple[str, ...] = (), limit: int = 1000) -> Events:
        """See `ChangeLog`."""
        del kinds, limit
        numbers = range(since + 1, self._news.value + 1)
        changes = tuple(Mutation(number, "MODIFIED", "Pod", "default", "p", POD) for number in numbers)
        return Events(self._news.value, changes)


def no_kinds() -> list[str]:
    return []


def nobody(*_: Any) -> None:
    """Is told of definitions."""


@pytest.mark.trio
async def test_the_first_change_goes_out_at_once_and_those_soon_after_it_together(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A watch is woken, and writes to its client, once for all of them."""
    news = News()
    news.open_log(Log(news))
    hub = Hub(cast("Any", None), Shelf(), news, Activity(news))
    began = autojump_clock.current_time()
    seen: list[tuple[float, int]] = []

    async def follow() -> None:
        while True:
            revision = await hub.revision.wait_beyond(seen[-1][1] if seen else 0)
            seen.append((round(autojump_clock.current_time() - began, 6), revision))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hub.run, "hub", no_kinds, nobody)
        tasks.start_soon(follow)
        await anyio.sleep(1.0)
        for revision in range(1, 5):
            news.publish(revision, {"Pod"})
            await anyio.sleep(GATHER_S / 10)
        await anyio.sleep(1.0)
        news.publish(5, {"Pod"})
        await anyio.sleep(1.0)
        tasks.cancel_scope.cancel()
    assert seen == [(1.0, 1), (1.0 + GATHER_S, 4), (round(2.0 + GATHER_S * 0.4, 6), 5)]
