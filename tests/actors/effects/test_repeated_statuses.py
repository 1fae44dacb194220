"""A cycle that could not yet see what was written for the one before says it again: it is not written again. What a
crash came over is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import anyio
import pytest

from actors.api.bootstrap import system_queues
from actors.effects.status_writer import StatusWriter
from actors.runtime.clock import RealClock
from actors.runtime.context import Context
from actors.runtime.mailbox import Mailbox
from actors.system.ports import CacheMessage, CachePort, CacheReply, StatusPort
from core.messages import commands, orders, replies
from core.messages.decisions import PodGroupStatus
from core.messages.orders import WriteStatus
from storage.codec import pack, unpack
from tests.actors.bench import Bench, running
from tests.actors.effects.told import Told
from tests.kit.pod_groups import pod_group

Reports = list[tuple[str, int]]


async def written(says: Sequence[tuple[str, int]], monkeypatch: pytest.MonkeyPatch) -> Reports:
    """What reaches the api, as (phase, cycle), of a PodGroup that cycles 1, 2, ... say to be in these phases; beside
    each, how far behind the api's newest revision, that of the first one, the cycle was.
    """
    bench, asked = Bench(), Reports()
    apply = bench.store.apply

    def remember(request: commands.StoreRequest, now: float) -> Any:
        if isinstance(request, commands.ReportStatus) and isinstance(request.wanted, PodGroupStatus):
            asked.append((request.wanted.phase, request.cycle))
        return apply(request, now)

    monkeypatch.setattr(bench.store, "apply", remember)
    mailbox: StatusPort = Mailbox("status-writer", orders.StatusWriterCommand, replies.Done)
    cache: CachePort = Mailbox("cache", CacheMessage, CacheReply)
    async with running(bench):
        for obj in (*system_queues(), pod_group("g")):
            assert isinstance(await bench.api.ask(commands.Create(pack(obj))), replies.Accepted)
        known = bench.store.revision
        writer = StatusWriter(
            "status-writer", mailbox, bench.context, api=bench.api, cache=cache, recorder=bench.recorder
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(writer.run)
            for cycle, (phase, ahead) in enumerate(says, 1):
                group = PodGroupStatus("default", "g", phase)
                seen = known + ahead if ahead >= 0 else 0
                await mailbox.ask(WriteStatus(cycle, pod_groups=(group,), seen=seen))
            mailbox.close()
        mailbox.abort()
    return asked


CASES: dict[str, tuple[list[tuple[str, int]], Reports]] = {
    "not seen yet": ([("Running", 0), ("Running", 0), ("Running", 0)], [("Running", 1)]),
    "seen, and meant": ([("Running", 0), ("Running", 9)], [("Running", 1), ("Running", 2)]),
    "nobody says what was seen": ([("Running", 0), ("Running", -1)], [("Running", 1), ("Running", 2)]),
    "something else in between": (
        [("Running", 0), ("Unknown", 0), ("Running", 0)],
        [("Running", 1), ("Unknown", 2), ("Running", 3)],
    ),
}


@pytest.mark.anyio
@pytest.mark.parametrize(("says", "expected"), CASES.values(), ids=CASES)
async def test_only_what_may_be_news_is_written(
    says: list[tuple[str, int]], expected: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await written(says, monkeypatch) == expected


@pytest.mark.anyio
async def test_what_nobody_waits_for_outlives_a_crash_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, crashes = Bench(), 2
    mailbox: StatusPort = Mailbox("status-writer", orders.StatusWriterCommand, replies.Done)
    cache: CachePort = Mailbox("cache", CacheMessage, CacheReply)
    async with running(bench):
        for obj in (*system_queues(), pod_group("g")):
            assert isinstance(await bench.api.ask(commands.Create(pack(obj))), replies.Accepted)
        await mailbox.tell(WriteStatus(1, pod_groups=(PodGroupStatus("default", "g", "Inqueue"),)))
        mailbox.close()
        for planted in [*[True] * crashes, False]:
            writer = StatusWriter(
                "status-writer", mailbox, bench.context, api=bench.api, cache=cache, recorder=bench.recorder
            )
            with monkeypatch.context() as patch:
                if planted:
                    patch.setattr(writer, "_write", _crash)
                    with pytest.raises(RuntimeError, match="planted"):
                        await writer.run()
                else:
                    await writer.run()
        group = bench.store.get("PodGroup", "default", "g")
        assert isinstance(group, replies.Accepted)
        assert unpack(group.blob)["status"]["phase"] == "Inqueue"


class Silent:
    """Never answers."""

    async def ask_many(self, messages: Sequence[Any], *, within_s: float) -> list[None]:
        del within_s
        return [None for _ in messages]


@pytest.mark.anyio
async def test_what_is_not_answered_for_the_first_time_is_said_anew_after_volcanos_period() -> None:
    mailbox: StatusPort = Mailbox("w", orders.StatusWriterCommand, replies.Done)
    cache, ports = Told(), dict[str, Any](api=Silent(), recorder=Told())
    writer = StatusWriter("w", mailbox, Context(RealClock()), cache=cast("Any", cache), **ports)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(writer.run)
        await mailbox.ask(WriteStatus(1, pod_groups=(PodGroupStatus("default", "g", "Inqueue"),)))
        mailbox.close()
    mailbox.abort()
    assert cache.messages == [commands.LookLater(1.0)]


async def _crash(*_: object) -> None:
    raise RuntimeError("planted")
