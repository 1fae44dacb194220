"""What the cache tells a cycle of what it did to the view itself, and the log of what it cannot show it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pumice.actors.runtime.level_signal import LevelSignal
from pumice.actors.runtime.mailbox import Mailbox
from pumice.actors.scheduling.cache import Cache
from pumice.actors.scheduling.core_decider import core_decider
from pumice.actors.scheduling.resync import Awaited
from pumice.actors.system.ports import CacheMessage, CachePort, CacheReply
from pumice.cluster.handles import HandleTable
from pumice.config.errors import RequestError
from pumice.core.messages.commands import TakeSnapshot
from pumice.core.messages.events import BeganAnew, ViewOperation
from pumice.core.messages.replies import SnapshotTaken
from pumice.core.state.snapshot import Snapshot
from pumice.core.state.view import View
from tests.actors.bench import Bench
from tests.actors.rig import idle, placed, started, three_nodes
from tests.kit.jobs import gang

pytestmark = pytest.mark.anyio


async def test_what_was_done_to_the_view_is_told_to_each_try_of_a_cycle_and_to_none_after_it() -> None:
    """One that is lost is tried again under its number. Another number says that it is in the journal."""
    bench = Bench()
    mailbox: CachePort = Mailbox("cache", CacheMessage, CacheReply)
    cache = Cache(
        "cache",
        mailbox,
        bench.context,
        api=bench.api,
        truth=bench.api,
        view=core_decider().new_view(),
        snapshots=HandleTable(Snapshot),
        changed=LevelSignal(),
        awaited=Awaited(30.0),
    )
    told: list[tuple[ViewOperation, ...]] = []
    for cycle in (1, 1, 2):
        taken = await cache.handle(TakeSnapshot(cycle=cycle))
        assert isinstance(taken, SnapshotTaken)
        told.append(taken.operations)
    assert told == [(BeganAnew(0),), (BeganAnew(0),), ()]
    mailbox.abort()


class Picky(View):
    """Cannot read n0."""

    def apply(self, event: str, obj: dict[str, Any]) -> None:
        if obj["metadata"]["name"] == "n0":
            raise RequestError("planted")
        super().apply(event, obj)


async def test_the_log_tells_of_an_object_that_nobody_can_read_and_the_others_are_scheduled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with started(decider=replace(core_decider(), new_view=Picky)) as system:
        await system.submit([*three_nodes(), *gang("g", pods=2, duration="0")])
        await idle(system)
        assert sorted(set(placed(system).values())) == ["n1", "n2"]
    assert "Node /n0 is left out: planted" in caplog.messages
