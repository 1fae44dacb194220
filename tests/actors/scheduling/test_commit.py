"""A cycle ends when its statuses are written: what it waits for, and what it does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from pumice.actors.runtime.level_signal import LevelSignal
from pumice.actors.runtime.mailbox import Mailbox
from pumice.actors.scheduling.commit import Commit, statuses_of
from pumice.actors.scheduling.cycle_memory import CycleMemory, Unsent
from pumice.actors.system import ports
from pumice.actors.system.ports import StatusPort
from pumice.core.messages import replies
from pumice.core.messages.commands import (
    ApiRequest,
    BindWorkerCommand,
    EvictWorkerCommand,
    RecorderCommand,
    ReportStatus,
    Restart,
    StatusWriterCommand,
    WriteStatus,
)
from pumice.core.messages.decisions import CycleResult, PodGroupEvent, PodGroupStatus
from pumice.core.messages.replies import ApiReply, Done
from pumice.storage import codec
from pumice.storage.memory import MemoryJournal
from tests.actors.rig import cycles, idle, started, stored, three_nodes
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod

pytestmark = pytest.mark.anyio
SAID = (PodGroupStatus("default", "g", "Inqueue"),)
EVENTS = (PodGroupEvent("default", "g", "Unschedulable", "no room"),)


class Desk:
    """A commit whose status writer is whoever receives here, and the memory of a cycle that is to be carried out."""

    def __init__(self, result: CycleResult) -> None:
        self.status: StatusPort = Mailbox("status-writer", StatusWriterCommand, replies.Done)
        binder: ports.BindPort = Mailbox("bind-worker:0", BindWorkerCommand, replies.Done)
        self.commit = Commit(
            cache=Mailbox("cache", ports.CacheMessage, ports.CacheReply),
            recorder=Mailbox("recorder", RecorderCommand, replies.Appended),
            binders=[binder],
            pre_binder=binder,
            evictors=[Mailbox("evict-worker:0", EvictWorkerCommand, replies.Done)],
            status=self.status,
        )
        self.memory = CycleMemory(LevelSignal(), cycle=1, done=0, carry={}, seen=0)
        self.memory.unsent = Unsent(result, statuses_of(result, 7), first=2, now=0.0)
        self.ended = anyio.Event()

    async def carry_out(self) -> None:
        await self.commit.carry_out(self.memory)
        self.ended.set()

    async def received(self) -> list[Any]:
        with anyio.fail_after(5):
            return list(await self.status.receive())


@asynccontextmanager
async def carrying_out(**said: Any) -> AsyncGenerator[Desk]:
    desk = Desk(CycleResult(1, "", **said))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(desk.carry_out)
        yield desk
        with anyio.fail_after(5):
            await desk.ended.wait()


async def test_a_cycle_is_carried_out_when_its_statuses_are_written_and_no_event_is_waited_for() -> None:
    async with carrying_out(pod_groups=SAID, events=EVENTS) as desk:
        statuses, events = await desk.received()
        assert statuses.message == WriteStatus(1, pod_groups=SAID, seen=7)
        assert (events.message, events.asked) == (WriteStatus(1, events=EVENTS), False)
        await anyio.wait_all_tasks_blocked()
        assert not desk.ended.is_set()
        assert desk.memory.unsent is None, "handed out: whoever comes next does not do so again"
        statuses.reply(Done())


async def test_where_there_is_nothing_to_write_nobody_waits() -> None:
    async with carrying_out(events=EVENTS) as desk:
        await desk.ended.wait()
        assert [item.message for item in await desk.received()] == [WriteStatus(1, events=EVENTS)]


async def test_statuses_that_a_status_writer_crashed_over_are_left_to_the_next_one() -> None:
    async with carrying_out(pod_groups=SAID) as desk:
        (statuses,) = await desk.received()
        statuses.fail("status-writer", "planted")
        await desk.ended.wait()
        (again,) = await desk.received()
        assert (again.message, again.asked) == (statuses.message, False)


@pytest.mark.parametrize("before", [False, True])
async def test_who_stops_does_not_wait_for_statuses(before: bool) -> None:
    async with carrying_out(pod_groups=SAID) as desk:
        if before:
            desk.commit.wait_no_more()
        await desk.received()
        desk.commit.wait_no_more()


async def test_a_runner_that_is_taken_away_while_it_waits_has_handed_out_once() -> None:
    desk = Desk(CycleResult(1, "", pod_groups=SAID))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(desk.carry_out)
        await desk.received()
        tasks.cancel_scope.cancel()
    await desk.commit.carry_out(desk.memory)
    assert desk.status.statistics().sent == 1


async def test_statuses_that_are_left_to_the_next_status_writer_reach_it_whoever_is_taken_away() -> None:
    """There is no room for them at first, and nobody else knows of them any more."""
    desk, runner = Desk(CycleResult(1, "", pod_groups=SAID)), anyio.CancelScope()

    async def until_taken_away() -> None:
        with runner:
            await desk.carry_out()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(until_taken_away)
        (statuses,) = await desk.received()
        for _ in range(desk.status.capacity):
            await desk.status.tell(WriteStatus(2))
        statuses.fail("status-writer", "planted")
        await anyio.wait_all_tasks_blocked()
        runner.cancel()
        await anyio.wait_all_tasks_blocked()
        assert [item.message for item in await desk.received()][-1] == statuses.message


async def test_events_reach_the_status_writer_whoever_is_taken_away_while_there_is_no_room_for_them() -> None:
    desk, runner = Desk(CycleResult(1, "", events=EVENTS)), anyio.CancelScope()
    for _ in range(desk.status.capacity):
        await desk.status.tell(WriteStatus(2))

    async def until_taken_away() -> None:
        with runner:
            await desk.carry_out()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(until_taken_away)
        await anyio.wait_all_tasks_blocked()
        runner.cancel()
        await anyio.wait_all_tasks_blocked()
        assert [item.message for item in await desk.received()][-1] == WriteStatus(1, events=EVENTS)


class Gate:
    """Holds what the status writer asks the api until it is opened."""

    def __init__(self, system: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ask_many = system.api.ask_many
        self._open = anyio.Event()
        self.reached = anyio.Event()
        monkeypatch.setattr(system.api, "ask_many", self._held)

    def open(self) -> None:
        self._open.set()

    async def _held(self, messages: Sequence[ApiRequest], **within: float) -> list[ApiReply | None]:
        if any(isinstance(each, ReportStatus) for each in messages):
            self.reached.set()
            await self._open.wait()
        replied: list[ApiReply | None] = await self._ask_many(messages, **within)
        return replied


async def admissions(journal: MemoryJournal) -> Counter[str]:
    """How often a cycle admitted each PodGroup."""
    said = [codec.decode(record.statuses, WriteStatus) for record in await cycles(journal) if record.statuses]
    return Counter(group.name for each in said for group in each.pod_groups if group.phase == "Inqueue")


async def test_no_cycle_begins_before_the_statuses_of_the_one_before_are_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would admit all over again what that one admitted."""
    journal = MemoryJournal()
    async with started(journal) as system:
        await system.submit(three_nodes())
        await idle(system)
        gate, before = Gate(system, monkeypatch), system.memory.cycle
        await system.submit([pod_group("g"), pod_group("h")])
        await gate.reached.wait()
        for number in range(3):
            await system.submit([pod(f"p{number}", duration="0")])
            await anyio.sleep(0.03)  # six periods
        assert system.memory.cycle == before + 1
        gate.open()
        await idle(system)
        assert {group["status"]["phase"] for group in stored(system, "PodGroup")} >= {"Inqueue"}
    admitted = await admissions(journal)
    assert (admitted["g"], admitted["h"]) == (1, 1)


async def test_a_status_writer_that_crashes_holds_up_no_cycle_and_its_next_instance_writes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with started() as system:
        await system.submit(three_nodes())
        await idle(system)
        gate, before = Gate(system, monkeypatch), system.memory.done
        await system.submit([pod_group("g")])
        await gate.reached.wait()
        await anyio.sleep(0.03)
        assert system.memory.done == before
        await system.supervisor.mailbox.tell(Restart("status-writer"))
        with anyio.fail_after(5):
            while system.memory.done == before:  # noqa: ASYNC110
                await anyio.sleep(0.005)
        gate.open()
        await idle(system)
        (group,) = stored(system, "PodGroup")
        assert group["status"]["phase"] == "Inqueue"
        assert system.supervisor.restarts["status-writer"] == 1


async def test_each_decision_has_its_cycle_as_its_cause() -> None:
    journal = MemoryJournal()
    async with started(journal) as system:
        await system.submit([*three_nodes(), pod("a", duration="0"), pod("b", duration="0")])
        await idle(system)
        await system.submit([pod("c", duration="0")])
        await idle(system)
    decisions = await journal.read(kinds=["decision"])
    cycles_at = {record.sequence for record in await journal.read(kinds=["cycle"])}
    assert len(decisions) == 3
    assert {record.cause for record in decisions} <= cycles_at
    assert len({record.cause for record in decisions}) > 1
