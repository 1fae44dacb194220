"""A cycle that could not yet see what was written for the one before says it again: it is not written again. What a
crash came over is."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from pumice.actors.effects.status_writer import StatusWriter
from pumice.actors.runtime.actor import Context
from pumice.actors.runtime.clock import RealClock
from pumice.actors.runtime.mailbox import Mailbox
from pumice.actors.system.ports import ApiPort, CacheMessage, CachePort, CacheReply, StatusPort
from pumice.cluster.api.bootstrap import system_queues
from pumice.core.messages import commands, replies
from pumice.core.messages.commands import StatusWriterCommand, WriteStatus
from pumice.core.messages.decisions import PodGroupEvent, PodGroupStatus
from pumice.storage.codec import pack, unpack
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
    mailbox: StatusPort = Mailbox("status-writer", StatusWriterCommand, replies.Done)
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
async def test_what_every_cycle_has_seen_is_remembered_no_longer_though_events_come_with_it() -> None:
    bench = Bench()
    mailbox: StatusPort = Mailbox("status-writer", StatusWriterCommand, replies.Done)
    cache: CachePort = Mailbox("cache", CacheMessage, CacheReply)
    writer = StatusWriter("status-writer", mailbox, bench.context, api=bench.api, cache=cache, recorder=bench.recorder)
    async with running(bench), anyio.create_task_group() as tasks:
        tasks.start_soon(writer.run)
        for obj in (*system_queues(), *[pod_group(f"g{number}") for number in range(1, 6)]):
            assert isinstance(await bench.api.ask(commands.Create(pack(obj))), replies.Accepted)
        for number in range(1, 6):
            name = f"g{number}"
            statuses = (PodGroupStatus("default", name, "Running"),)
            said = WriteStatus(number, pod_groups=statuses, seen=bench.store.revision)
            events = WriteStatus(number, events=(PodGroupEvent("default", name, "Unschedulable", "no room"),))
            await mailbox.ask_many([said, events])
            assert len(vars(writer)["_written"]) == 1
        mailbox.close()
    mailbox.abort()


@pytest.mark.anyio
async def test_what_nobody_waits_for_outlives_a_crash_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, crashes = Bench(), 2
    mailbox: StatusPort = Mailbox("status-writer", StatusWriterCommand, replies.Done)
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
    """Never answers; `asked`: what reached it."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def ask_many(self, messages: Sequence[Any], *, within_s: float) -> list[None]:
        self.asked += messages
        return [None for _ in messages]


GROUP = PodGroupStatus("default", "g", "Inqueue")


@asynccontextmanager
async def unheard() -> AsyncGenerator[tuple[StatusPort, Silent, Told]]:
    """The way to a writer, the api that never answers it, and what its cache is told."""
    mailbox: StatusPort = Mailbox("w", StatusWriterCommand, replies.Done)
    api, cache = Silent(), Told()
    ports: dict[str, Any] = {"api": api, "cache": cache, "recorder": Told()}
    writer = StatusWriter("w", mailbox, Context(RealClock()), **ports)
    async with anyio.create_task_group() as tasks:
        yield mailbox, api, cache
        tasks.start_soon(writer.run)
        mailbox.close()
    mailbox.abort()


@pytest.mark.anyio
async def test_what_is_not_answered_for_the_first_time_is_said_anew_after_volcanos_period() -> None:
    async with unheard() as (mailbox, _, cache):
        await mailbox.tell(WriteStatus(1, pod_groups=(GROUP,)))
    assert cache.messages == [commands.LookLater(1.0)]


@pytest.mark.anyio
async def test_what_is_not_answered_again_and_again_is_said_anew_ever_later_and_after_64_s_at_the_latest() -> None:
    async with unheard() as (mailbox, _, cache):
        for cycle in range(8 * StatusWriter.cap):  # so many batches
            await mailbox.tell(WriteStatus(cycle, pod_groups=(GROUP,)))
    assert cache.messages == [commands.LookLater(wait_s) for wait_s in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 64.0)]


@pytest.mark.anyio
async def test_of_statuses_that_wait_the_newest_is_written_of_eight_at_a_time() -> None:
    async with unheard() as (mailbox, api, _):
        for cycle in range(9):
            await mailbox.tell(WriteStatus(cycle, pod_groups=(GROUP,), seen=cycle))
    assert [(each.cycle, each.as_of) for each in api.asked] == [(7, 7), (8, 8)]


@pytest.mark.anyio
async def test_a_cycle_that_does_not_say_what_it_saw_is_taken_to_have_seen_nothing() -> None:
    """It is told where the object is by now, and nothing was laid over that unseen."""
    async with unheard() as (mailbox, api, _):
        await mailbox.tell(WriteStatus(1, pod_groups=(GROUP,)))
    assert [each.as_of for each in api.asked] == [0]


@pytest.mark.anyio
async def test_statuses_are_written_in_a_turn_of_their_own_while_the_api_is_at_work() -> None:
    """On virtual time, where others write them in the turn of who sends: there, waiting is a crash."""
    mailbox: StatusPort = Mailbox("w", StatusWriterCommand, replies.Done)
    api: ApiPort = Mailbox("api-server", commands.ApiRequest, replies.ApiReply)
    ports: dict[str, Any] = {"api": api, "cache": Told(), "recorder": Told()}
    writer = StatusWriter("w", mailbox, Context(RealClock(), inline_delivery=True), **ports)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(writer.run)
            await anyio.wait_all_tasks_blocked()
            await mailbox.tell(WriteStatus(1, pod_groups=(GROUP,), seen=7))
            (asked,) = await api.receive()
            assert asked.message == commands.ReportStatus("PodGroup", "default", "g", GROUP, 1, 7)
            asked.reply(replies.Accepted(8))
            mailbox.close()
    mailbox.abort()


async def _crash(*_: object) -> None:
    raise RuntimeError("planted")
