"""Watching: in order, at least once, and whole again after falling off the log."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from pumice.actors.api_server.server import ApiServer
from pumice.actors.errors import ActorStoppedError
from pumice.actors.journal.recorder import Recorder
from pumice.actors.runtime.actor import Context
from pumice.actors.runtime.clock import RealClock
from pumice.actors.runtime.envelope import Received
from pumice.actors.runtime.mailbox import Mailbox, expected
from pumice.actors.runtime.watcher import WatchedChanges, Watcher
from pumice.actors.system.ports import ApiPort, RecorderPort
from pumice.cluster.api.store import Store
from pumice.core.messages import commands, replies
from pumice.core.messages.commands import Pull, Pulled, ReadRevision, RecorderCommand, RevisionRead
from pumice.core.messages.events import Mutation
from pumice.core.objects.parts import POD_PLACED
from pumice.storage import codec
from pumice.storage.memory import MemoryJournal
from tests.kit.nodes import node
from tests.kit.pods import pod
from tests.kit.queues import queue

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def serving(log_capacity: int = 1000) -> AsyncGenerator[tuple[ApiPort, Context]]:
    context = Context(RealClock())
    recorder: RecorderPort = Mailbox("recorder", RecorderCommand, replies.Appended, activity=context.activity)
    api: ApiPort = Mailbox("api-server", commands.ApiRequest, replies.ApiReply, activity=context.activity)
    store = Store(log_capacity=log_capacity)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Recorder("recorder", recorder, context, MemoryJournal(), 0).run)
        tasks.start_soon(ApiServer("api-server", api, context, store=store, recorder=recorder).run)
        yield api, context
        api.close()
        recorder.close()
    api.abort()
    recorder.abort()


async def create(api: ApiPort, *objects: dict[str, Any]) -> None:
    for reply in await api.ask_many([commands.Create(codec.pack(each)) for each in objects]):
        assert isinstance(reply, replies.Accepted), reply


async def newest(api: ApiPort) -> int:
    return expected(await api.ask(ReadRevision()), RevisionRead).revision


def names(changes: WatchedChanges) -> list[tuple[str, str]]:
    return [(event.type, event.name) for event in changes.events]


async def test_changes_come_once_in_order_and_idle_waits_for_them() -> None:
    async with serving() as (api, context):
        watcher = Watcher("test", api, context, ["Node"])
        await create(api, node("a"), queue("q"), node("b"))
        assert not context.activity.is_idle()
        changes = await watcher.next()
        assert names(changes) == [("ADDED", "a"), ("ADDED", "b")]
        assert not context.activity.is_idle()  # taken, not dealt with
        watcher.done(changes)
        await context.activity.wait_idle()
        with anyio.move_on_after(0.05) as scope:
            await watcher.next()
        assert scope.cancelled_caught
        await create(api, node("c"))
        assert names(await watcher.next()) == [("ADDED", "c")]


async def test_a_long_log_comes_in_parts() -> None:
    async with serving() as (api, context):
        watcher = Watcher("test", api, context, ["Node"], limit=10)
        await create(api, *(node(f"n{number:02d}") for number in range(25)))
        seen: list[str] = []
        while len(seen) < 25:
            changes = await watcher.next()
            assert len(changes.events) <= 10
            seen += [event.name for event in changes.events]
            watcher.done(changes)
        assert seen == [f"n{number:02d}" for number in range(25)]


async def test_what_was_not_done_comes_again() -> None:
    async with serving() as (api, context):
        watcher = Watcher("test", api, context, ["Node"])
        await create(api, node("a"))
        assert names(await watcher.next()) == names(await watcher.next()) == [("ADDED", "a")]


async def test_a_laggard_lists_again_and_learns_what_vanished() -> None:
    async with serving(log_capacity=8) as (api, context):
        watcher = Watcher("test", api, context, ["Node", "Queue"])
        await create(api, node("gone"), node("stays"))
        watcher.done(await watcher.next())
        assert isinstance(await api.ask(commands.Delete("Node", "", "gone")), replies.Accepted)
        await create(api, *(queue(f"q{number:02d}") for number in range(40)))
        changes = await watcher.next()
        assert changes.relisted
        assert names(changes)[0] == ("DELETED", "gone")
        assert ("MODIFIED", "stays") in names(changes)
        assert len(changes.events) == 1 + 1 + 40
        watcher.done(changes)
        await create(api, node("new"))
        assert ("ADDED", "new") in names(await watcher.next())


async def test_a_watcher_of_a_part_is_behind_and_woken_only_by_what_concerns_it() -> None:
    async with serving() as (api, context):
        await create(api, pod("p", group="g"), pod("q", group="g"))
        watcher = Watcher("test", api, context, [POD_PLACED], since=await newest(api))
        await context.activity.wait_idle()
        await api.ask(commands.UpdateStatus("Pod", "default", "q", codec.pack({"reason": "Unschedulable"})))
        assert context.activity.is_idle()
        await api.ask(commands.BindPod("default", "p", "", "n1"))
        assert not context.activity.is_idle()
        changes = await watcher.next()
        assert names(changes) == [("MODIFIED", "p")]
        watcher.done(changes)
        assert context.activity.is_idle()


async def test_what_came_into_a_part_and_vanished_unseen_is_told_after_a_new_list() -> None:
    async with serving(log_capacity=4) as (api, context):
        await create(api, pod("p", group="g"), pod("stays", group="g"))
        watcher = Watcher("test", api, context, [POD_PLACED], since=await newest(api))
        await api.ask(commands.BindPod("default", "p", "", "n1"))
        watcher.done(await watcher.next())
        await api.ask(commands.Delete("Pod", "default", "p", None, 0))
        await create(api, *(queue(f"q{number}") for number in range(20)))
        changes = await watcher.next()
        assert changes.relisted
        assert names(changes) == [("DELETED", "p"), ("MODIFIED", "stays")]


async def test_a_pull_waits_for_news_of_what_it_asks_for_and_a_later_one_takes_its_place() -> None:
    async with serving() as (api, context):
        replies_of: dict[str, replies.ApiReply] = {}

        async def pull(what: str, watcher: str, kind: str) -> None:
            replies_of[what] = await api.ask(Pull(watcher, 0, (kind,)))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pull, "earlier", "one", "Node")
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(pull, "later", "one", "Node")
            tasks.start_soon(pull, "of queues", "other", "Queue")
            await anyio.wait_all_tasks_blocked()
            assert replies_of == {"earlier": Pulled(0)}
            assert context.activity.is_idle(), "who waits for news is not at work"
            await create(api, node("a"))
            await anyio.wait_all_tasks_blocked()
            assert replies_of.keys() == {"earlier", "later"}
            await create(api, queue("q"))
        found = [replies_of[what] for what in ("later", "of queues")]
        assert [each.revisions for each in found if isinstance(each, Pulled)] == [(1,), (2,)]
        immediate = await api.ask(Pull("one", 1, ("Node",), held=False))
        assert immediate == Pulled(2)


async def test_a_watcher_that_keeps_up_asks_once() -> None:
    async with serving() as (api, context), anyio.create_task_group() as tasks:
        watcher, told = Watcher("test", api, context, ["Node"]), list[tuple[str, str]]()

        async def follow() -> None:
            while True:
                changes = await watcher.next()
                told.extend(names(changes))
                watcher.done(changes)

        tasks.start_soon(follow)
        await anyio.wait_all_tasks_blocked()
        for name in "abc":
            await create(api, node(name), queue(name))
            await anyio.wait_all_tasks_blocked()
        assert told == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]
        assert api.statistics().received == 1 + 3 * 2, "one pull, and the objects"
        tasks.cancel_scope.cancel()


async def test_what_came_while_a_watcher_was_busy_is_asked_for() -> None:
    async with serving() as (api, context):
        watcher = Watcher("test", api, context, ["Node"])
        await create(api, node("a"))
        changes = await watcher.next()
        await create(api, node("b"))
        await create(api, node("c"))
        watcher.done(changes)
        assert names(changes) + names(await watcher.next()) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]


async def test_who_waits_for_news_of_a_server_that_ends_is_told() -> None:
    told: list[str] = []
    async with serving() as (api, _), anyio.create_task_group() as tasks:

        async def pull() -> None:
            with pytest.raises(ActorStoppedError):
                await api.ask(Pull("one", 0))
            told.append("stopped")

        tasks.start_soon(pull)
        await anyio.wait_all_tasks_blocked()
        api.close()
    assert told == ["stopped"]


class Scripted:
    """An api that gives prepared answers to pulls, one after the other; None: it crashes over this one."""

    def __init__(self, *answers: Pulled | None) -> None:
        self.api: ApiPort = Mailbox("api-server", commands.ApiRequest, replies.ApiReply)
        self.asked: list[commands.ApiRequest] = []
        self.items: list[Received[commands.ApiRequest, replies.ApiReply]] = []
        self._answers = list(answers)

    async def run(self) -> None:
        while self._answers:
            for item in await self.api.receive():
                self.asked.append(item.message)
                self.items.append(item)
                answer = self._answers.pop(0)
                if answer is None:
                    item.fail("api-server", "the connection broke")
                else:
                    item.reply(answer)


def pulled(*changes: Mutation) -> Pulled:
    frames = tuple(codec.encode(change) for change in changes)
    return Pulled(changes[-1].revision, tuple(change.revision for change in changes), frames)


async def test_what_a_replayed_watch_brings_again_is_no_news() -> None:
    """A deletion that came again ended the bind that was on its way for the pod's namesake."""
    scripted = Scripted(pulled(*(Mutation(at, "DELETED", "Pod", "d", "p", b"") for at in (3, 4, 5, 6))))
    watcher = Watcher("test", scripted.api, Context(RealClock()), ["Pod"], since=4)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scripted.run)
        changes = await watcher.next()
        assert [event.revision for event in changes.events] == [5, 6]
        assert changes.revision == 6
    assert scripted.asked == [Pull("test", 4, ("Pod",), 1000)]


async def test_a_server_that_ended_after_its_answer_is_not_waited_for() -> None:
    scripted = Scripted(*(pulled(Mutation(at, "ADDED", "Pod", "d", f"p{at}", b"")) for at in (6, 7)))
    watcher = Watcher("test", scripted.api, Context(RealClock()), ["Pod"], since=5)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scripted.run)
        changes = await watcher.next()
        scripted.items[0].fail("api-server", "crashed")
        watcher.done(changes)
        assert names(await watcher.next()) == [("ADDED", "p7")]
    assert scripted.asked == [Pull("test", at, ("Pod",), 1000) for at in (5, 6)]


async def test_a_broken_watch_is_pulled_again() -> None:
    scripted = Scripted(None, pulled(Mutation(6, "ADDED", "Pod", "d", "p", b"")))
    watcher = Watcher("test", scripted.api, Context(RealClock()), ["Pod"], since=4)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scripted.run)
        assert names(await watcher.next()) == [("ADDED", "p")]
