"""Reading the api's changes for all watches."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
import trio.testing

from pumice.actors.gateway.hub import GATHER_S, Hub
from pumice.actors.gateway.request.selection import remembered_traits
from pumice.core.messages.commands import Create, Patch
from pumice.core.messages.replies import Accepted
from pumice.storage import codec
from tests.actors.bench import Bench, running
from tests.kit.pods import pod


def no_kinds() -> list[str]:
    return []


def nobody(*_: Any) -> None:
    """Is told of definitions."""


@pytest.mark.trio
async def test_the_first_change_goes_out_immediately_and_those_soon_after_it_together(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A watch is woken, and writes to its client, once for all of them."""
    bench = Bench()
    hub = Hub(bench.api, bench.store.listings, bench.context)
    began = autojump_clock.current_time()
    seen: list[tuple[float, int]] = []

    async def follow() -> None:
        while True:
            revision = await hub.revision.wait_beyond(seen[-1][1] if seen else 0)
            seen.append((round(autojump_clock.current_time() - began, 6), revision))

    async with running(bench), anyio.create_task_group() as tasks:
        tasks.start_soon(hub.run, "hub", no_kinds, nobody)
        tasks.start_soon(follow)
        await anyio.sleep(1.0)
        for number in range(1, 5):
            await bench.api.ask(Create(codec.pack(pod(f"p{number}"))))
            await anyio.sleep(GATHER_S / 10)
        await anyio.sleep(1.0)
        await bench.api.ask(Create(codec.pack(pod("p5"))))
        await anyio.sleep(1.0)
        tasks.cancel_scope.cancel()
    assert seen == [(1.0, 1), (1.0 + GATHER_S, 4), (round(2.0 + GATHER_S * 0.4, 6), 5)]


@pytest.mark.trio
async def test_traits_of_a_change_without_a_selector_are_not_read() -> None:
    """The ring holds the bytes that the store has, and what selectors see of them is read for those who select."""
    bench = Bench()
    read = remembered_traits.cache_info().misses
    hub = Hub(bench.api, bench.store.listings, bench.context)
    async with running(bench), anyio.create_task_group() as tasks:
        tasks.start_soon(hub.run, "hub", no_kinds, nobody)
        await hub.ready.wait()
        await bench.api.ask(Create(codec.pack(pod("p"))))
        for change in ({"status": {"message": "one"}}, {"status": {"message": "two"}}):
            await bench.api.ask(Patch("Pod", "default", "p", codec.pack(change), "merge", subresource="status"))
        said = await bench.api.ask(Patch("Pod", "default", "p", codec.pack({"metadata": {"labels": {"a": "b"}}})))
        assert isinstance(said, Accepted)
        await hub.reach(said.revision)
        tasks.cancel_scope.cancel()
    made, one, two, labelled = hub.ring("Pod").entries()
    assert remembered_traits.cache_info().misses == read
    assert [one.old, two.old, labelled.old] == [made.blob, one.blob, two.blob]
    assert one.old is made.blob
    assert one.after is two.before
    assert made.before is None
    assert labelled.after is not None
    assert labelled.after.labels["a"] == "b"
