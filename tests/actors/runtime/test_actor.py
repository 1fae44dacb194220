"""The loop every actor runs, and the supervisor that starts it again."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from pumice.actors.errors import ActorFailedError, ActorStoppedError
from pumice.actors.runtime.actor import Actor, Context
from pumice.actors.runtime.clock import VirtualClock
from pumice.actors.runtime.mailbox import Mailbox
from pumice.actors.runtime.supervisor import Child, Supervisor
from pumice.core.messages.commands import Restart, TakeSnapshot
from pumice.core.messages.events import ActorCrashed, ActorEvent, ActorStarted, ActorStopped
from pumice.core.messages.replies import ViewChecked

pytestmark = pytest.mark.anyio
CRASH, HANG, SILENT = 1_000_001, 1_000_002, 1_000_003
Box = Mailbox[TakeSnapshot, ViewChecked]


class Echo(Actor[TakeSnapshot, ViewChecked]):
    """Answers with what it was sent; a few numbers make it crash, hang or say nothing."""

    def __init__(self, name: str, mailbox: Box, context: Context, seen: list[int]) -> None:
        super().__init__(name, mailbox, context)
        self.seen = seen

    async def handle(self, message: TakeSnapshot) -> ViewChecked | None:
        number = message.known_version
        self.seen.append(number)
        if number == CRASH:
            raise RuntimeError("planted")
        if number == HANG:
            await anyio.sleep_forever()
        return None if number == SILENT else ViewChecked((str(number),))


class CrashingLoop(Echo):
    """Its loop beside the mailbox crashes immediately, the first time."""

    def loops(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        return (self._loop,)

    async def _loop(self) -> None:
        if not self.seen:
            self.seen.append(-1)
            raise RuntimeError("planted in a loop")
        await anyio.sleep_forever()


@dataclass
class Stage:
    """An Echo under a supervisor, and what the supervisor noted."""

    box: Box
    supervisor: Supervisor
    context: Context
    seen: list[int]
    notes: list[ActorEvent] = field(default_factory=list[ActorEvent])

    async def ask(self, number: int) -> tuple[str, ...]:
        return (await self.box.ask(TakeSnapshot(number))).problems

    def crashes(self) -> list[ActorCrashed]:
        return [note for note in self.notes if isinstance(note, ActorCrashed)]


@asynccontextmanager
async def staged(
    kind: type[Echo] = Echo, *, vital: bool = False, inline_delivery: bool = False
) -> AsyncGenerator[Stage]:
    context = Context(VirtualClock(), inline_delivery=inline_delivery)
    seen: list[int] = []
    notes: list[ActorEvent] = []

    async def note(events: Sequence[ActorEvent]) -> None:
        notes.extend(events)

    box: Box = Mailbox("echo", TakeSnapshot, ViewChecked, capacity=64, activity=context.activity)
    supervisor = Supervisor([Child("echo", box, lambda: kind("echo", box, context, seen), vital)], context, note)
    async with anyio.create_task_group() as tasks:
        await tasks.start(supervisor.run)
        yield Stage(box, supervisor, context, seen, notes)
        supervisor.stop()


async def test_an_actor_answers_and_stops() -> None:
    async with staged() as stage:
        assert await stage.ask(7) == ("7",)
    assert [type(note) for note in stage.notes] == [ActorStarted, ActorStopped]
    with pytest.raises(ActorStoppedError):
        await stage.ask(8)


async def test_what_is_queued_is_handled_before_stopping() -> None:
    async with staged() as stage:
        await stage.box.tell(*[TakeSnapshot(number) for number in range(50)])
    assert stage.seen == list(range(50))


async def test_a_crash_costs_the_message_in_hand_and_no_other() -> None:
    async with staged() as stage:
        answers: dict[int, tuple[str, ...] | None] = {}

        async def ask(number: int) -> None:
            try:
                answers[number] = await stage.ask(number)
            except ActorFailedError as error:
                answers[number] = None if "planted" in error.error else (error.error,)

        async with anyio.create_task_group() as tasks:
            for number in (1, 2, CRASH, 3, 4):
                tasks.start_soon(ask, number)
    assert answers == {1: ("1",), 2: ("2",), 3: ("3",), 4: ("4",), CRASH: None}
    assert len(stage.crashes()) == 1
    assert "planted" in stage.crashes()[0].error
    assert stage.supervisor.restarts == {"echo": 1}


async def test_told_messages_behind_a_crash_survive_it() -> None:
    async with staged() as stage:
        await stage.box.tell(*[TakeSnapshot(number) for number in (1, CRASH, 2, CRASH, 3)])
        await stage.context.activity.wait_idle()
        assert stage.seen == [1, CRASH, 2, CRASH, 3]
    assert [crash.restart_in_s for crash in stage.crashes()] == [0.01, 0.02]


async def test_an_asker_left_without_an_answer_is_told_so() -> None:
    async with staged() as stage:
        with pytest.raises(ActorFailedError, match="without an answer"):
            await stage.ask(SILENT)
        assert await stage.ask(1) == ("1",)
    assert not stage.crashes()


async def test_a_crashing_loop_restarts_the_actor() -> None:
    async with staged(CrashingLoop) as stage:
        assert await stage.ask(5) == ("5",)
    assert len(stage.crashes()) == 1


async def test_a_hung_actor_can_be_taken_away() -> None:
    async with staged() as stage:
        async with anyio.create_task_group() as tasks:

            async def ask_hang() -> None:
                with pytest.raises(ActorFailedError):
                    await stage.ask(HANG)

            tasks.start_soon(ask_hang)
            await anyio.wait_all_tasks_blocked()
            await stage.supervisor.mailbox.tell(Restart("echo"))
        assert await stage.ask(6) == ("6",)
    assert "taken away" in stage.crashes()[0].error


async def test_idle_is_not_announced_between_crash_and_restart() -> None:
    async with staged() as stage:
        await stage.box.tell(TakeSnapshot(CRASH))
        await stage.context.activity.wait_idle()
        assert stage.supervisor.restarts == {"echo": 1}


async def test_a_vital_actor_takes_everything_with_it() -> None:
    with pytest.RaisesGroup(RuntimeError, flatten_subgroups=True):
        async with staged(vital=True) as stage:
            with pytest.raises(ActorFailedError):
                await stage.ask(CRASH)
            await anyio.sleep(5)
            raise AssertionError("the supervisor went on")


class Lingering(Echo):
    """Says when it is told to stop, and a moment later that it has (`-number`)."""

    async def on_stop(self) -> None:
        self.seen.append(int(self.name))
        await anyio.sleep(0.01)
        self.seen.append(-int(self.name))


async def test_receivers_outlive_senders_and_those_of_one_rank_stop_together() -> None:
    context, seen = Context(VirtualClock()), list[int]()
    notes: list[str] = []

    async def note(events: Sequence[ActorEvent]) -> None:
        notes.extend([event.actor for event in events if isinstance(event, ActorStopped)])

    def child(name: str, rank: int) -> Child:
        box: Box = Mailbox(name, TakeSnapshot, ViewChecked)
        return Child(name, box, lambda: Lingering(name, box, context, seen), vital=name == "5", rank=rank)

    supervisor = Supervisor([child("5", 9), child("1", 0), child("2", 0), child("3", 1), child("4", 1)], context, note)
    async with anyio.create_task_group() as tasks:
        await tasks.start(supervisor.run)
        supervisor.stop()
    assert [sorted(seen[at : at + 2]) for at in range(0, 10, 2)] == [[3, 4], [-4, -3], [1, 2], [-2, -1], [-5, 5]]
    assert notes == [str(-number) for number in seen if number < 0]
