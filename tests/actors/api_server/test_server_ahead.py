"""The api server ahead of the journal: what is on its way there is applied, and nobody knows of it yet."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from pumice.actors.errors import ActorFailedError, ActorStoppedError
from pumice.actors.runtime.level_signal import LevelSignal
from pumice.core.messages import commands, replies
from pumice.core.messages.commands import Append
from pumice.storage import codec
from tests.actors.bench import PATIENCE_S, Bench
from tests.kit.nodes import node

pytestmark = pytest.mark.anyio

AHEAD = 2


class Asked:
    """A server ahead of a recorder that writes one append at a time, when it is told to."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.answers: dict[str, object] = {}
        self.told = LevelSignal()
        self.scope = anyio.CancelScope()
        self.ended: list[BaseException] = []

    async def serve(self) -> None:
        try:
            with self.scope:
                await self.bench.server().run()
        except* (ActorStoppedError, ActorFailedError) as errors:
            self.ended += errors.exceptions

    async def create(self, name: str) -> None:
        await self._ask(name, commands.Create(codec.pack(node(name))))

    async def get(self, name: str) -> None:
        await self._ask(f"get {name}", commands.Get("Node", "", name))

    async def _ask(self, what: str, request: commands.ApiRequest) -> None:
        try:
            self.answers[what] = await self.bench.api.ask(request)
        except (ActorFailedError, ActorStoppedError) as error:
            self.answers[what] = error
        self.told.raise_to(len(self.answers))

    async def write(self) -> None:
        """The oldest append is on disk."""
        (item,) = await self.bench.recorder.receive(1)
        assert isinstance(item.message, Append)
        self.bench.written += item.message.entries
        item.reply(replies.Appended(1, len(self.bench.written)))
        await anyio.wait_all_tasks_blocked()

    @property
    def names(self) -> list[str]:
        """What watchers see."""
        return [event.name for event in self.bench.store.log.read(0).events]

    @property
    def accepted(self) -> list[str]:
        return [what for what, answer in self.answers.items() if isinstance(answer, replies.Accepted)]


@asynccontextmanager
async def asking(*names: str, after: str = "") -> AsyncGenerator[Asked]:
    """These nodes are asked for, one batch each; `after`: then that one is read."""
    asked = Asked(Bench(ahead=AHEAD))
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked.serve)
            for name in names:
                tasks.start_soon(asked.create, name)
                await anyio.wait_all_tasks_blocked()
            if after:
                tasks.start_soon(asked.get, after)
                await anyio.wait_all_tasks_blocked()
            try:
                yield asked
            finally:
                asked.bench.api.close()
                asked.bench.recorder.abort()
        asked.bench.api.abort()


async def test_what_is_on_its_way_is_applied_and_told_to_nobody_in_its_order() -> None:
    async with asking("a", "b") as asked:
        assert asked.bench.store.revision == 2
        assert (asked.accepted, asked.names) == ([], [])
        assert not asked.bench.context.activity.is_idle()
        await asked.write()
        assert (asked.accepted, asked.names) == (["a"], ["a"])
        assert asked.bench.store.log.published == 1
        await asked.write()
        assert (asked.accepted, asked.names) == (["a", "b"], ["a", "b"])
        assert asked.bench.context.activity.is_idle()


async def test_no_more_batches_are_under_way_than_it_may_be_ahead() -> None:
    async with asking("a", "b", "c", "d") as asked:
        assert asked.bench.store.revision == AHEAD + 1
        await asked.write()
        assert asked.bench.store.revision == AHEAD + 2
        for _ in range(AHEAD + 1):
            await asked.write()
        assert asked.accepted == ["a", "b", "c", "d"]


async def test_who_reads_what_is_on_its_way_waits_until_it_is_there() -> None:
    async with asking("a", after="a") as asked:
        assert asked.answers == {}
        await asked.write()
        assert sorted(asked.accepted) == ["a", "get a"]


async def test_a_server_that_is_told_to_stop_answers_all_first() -> None:
    async with asking("a", "b") as asked:
        asked.bench.api.close()
        await anyio.wait_all_tasks_blocked()
        await asked.write()
        await asked.write()
        assert asked.accepted == ["a", "b"]
    assert asked.ended == []


async def test_a_server_that_is_taken_away_has_answered_what_it_sent_before_the_next_one_begins() -> None:
    async with asking("a", "b", "c", "d") as asked:
        assert asked.bench.store.revision == AHEAD + 1
        asked.scope.cancel()
        await anyio.wait_all_tasks_blocked()
        assert asked.accepted == []
        for _ in range(AHEAD + 1):
            await asked.write()
        assert asked.accepted == asked.names == ["a", "b", "c"]
        asked.scope = anyio.CancelScope()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(asked.serve)
            await asked.write()
            asked.bench.api.close()
        assert asked.accepted == ["a", "b", "c", "d"]
    assert [entry.kind for entry in asked.bench.written] == ["api"] * 4


async def test_nobody_is_told_yes_when_the_recorder_dies_over_it() -> None:
    async with asking("a", "b") as asked:
        await asked.write()
        asked.bench.recorder.abort()
        await asked.told.wait_beyond(1)
        assert asked.accepted == asked.names == ["a"]
        assert isinstance(asked.answers["b"], ActorFailedError)
        assert asked.bench.context.activity.is_idle()
    assert [error.actor for error in asked.ended if isinstance(error, ActorStoppedError)] == ["recorder"]
