# pyright: reportPrivateUsage=false
"""What defects do in place of what is right; `planted` says where each is put in, and who is to find it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import numpy as np
import pytest
from msgspec import structs

from pumice.actors.api_server.faults.faulty_server import FaultyApiServer
from pumice.actors.api_server.server import ApiServer
from pumice.actors.effects.effect_worker import Outcomes
from pumice.actors.runtime.level_signal import LevelSignal
from pumice.actors.runtime.mailbox import Mailbox, expected
from pumice.actors.runtime.watcher import WatchedChanges, Watcher
from pumice.actors.scheduling.cache import Cache
from pumice.actors.scheduling.commit import Commit
from pumice.actors.scheduling.cycle_memory import CycleMemory, Unsent
from pumice.actors.scheduling.resync import LONGEST_S
from pumice.cluster.api.object_tables import ObjectTables
from pumice.cluster.api.verbs.placement import Placement
from pumice.cluster.kubelets.machine import NodeAgentsMachine
from pumice.cluster.kubelets.pod_life import PodState
from pumice.core.default_scheduler.cycle import OneByOne
from pumice.core.devices.vgpu import choosing, sharing
from pumice.core.kube.devices import Allocator
from pumice.core.life.pod_group import AFTER_FINDING, RUNS_UNSCHEDULABLE, PodGroupPhase
from pumice.core.messages.commands import Append, BindPod, Entry, ReadRevision, RevisionRead
from pumice.core.messages.events import BindTimedOut, Bound, Mutation
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.pod import Task
from pumice.core.plugins.extender import Extender
from pumice.core.plugins.gang import Gang
from pumice.core.plugins.pdb import Pdb
from pumice.core.plugins.predicates.dynamic_resources import DynamicResources
from pumice.core.session.points.nodes import TaskBatch
from pumice.core.state.nodes import NodeTable
from pumice.core.state.snapshot import AssumedPods, Snapshot
from pumice.core.state.view import View
from pumice.proof.storm.invariants.monitor import OF_EVICTIONS

LATE_FROM_S = 8.0


def as_the_api_has_it(_: Snapshot, task: Task) -> Any:
    """What its bind is still to write is not known."""
    return task.annotations


def has_any_memory(patch: pytest.MonkeyPatch) -> None:
    real = choosing.has_room

    def patched(asked: Any, memory: Any, split: Any, size: Any, sharers: Any, used: Any, cores: Any) -> Any:
        return real(asked, memory * 0, split, size, sharers, used * 0, cores)

    for module in (choosing, sharing):
        patch.setattr(module, "has_room", patched)


def ignores_silence(made: Any) -> Any:
    def patched(self: Extender, arguments: dict[str, Any]) -> None:
        made(self, {**arguments, "extender.ignorable": True})

    return patched


def counts_retries_twice(assume: Any) -> Any:
    """A pod that is tried a second time takes its room a second time."""
    tried: set[str] = set()

    def patched(self: View, namespace: str, name: str, node: str, pre_bind: Any = None, uid: str | None = None) -> bool:
        held: bool = assume(self, namespace, name, node, pre_bind, uid)
        task = self.tasks.by_key.get(f"{namespace}/{name}")
        if held and task is not None and task.uid in tried:
            self.nodes.place(int(self.tasks.node[task.row]), task.template, int(self.tasks.status[task.row]), 1)
        tried.add(uid or "")
        return held

    return patched


def permits_everybody(_: Gang, __: Any, batch: TaskBatch) -> Any:
    return np.ones(len(batch.job), dtype=np.bool_)


def one_too_many(self: Gang, _: Any, batch: TaskBatch) -> Any:
    """What a job has from its minimum on."""
    order, rank = batch.ranks()
    jobs = batch.job[order]
    mask = np.empty(len(order), dtype=np.bool_)
    mask[order] = (self._jobs.ready_tasks[jobs] - rank >= self._jobs.columns.min_member[jobs]) & (jobs >= 0)
    return mask


def running_with_one_pod() -> Any:
    """Of what becomes of a group when some of its pods run and others cannot, nothing is said (Volcano #4383)."""
    table = AFTER_FINDING.copy()
    table[:, RUNS_UNSCHEDULABLE] = PodGroupPhase.RUNNING
    return table


def everybody(_: Pdb, tasks: Sequence[Any]) -> list[Any]:
    return list(tasks)


def keeps_room(forget: Any) -> Any:
    """The bind failed, the job is told, the node keeps the room taken."""

    def patched(self: View, namespace: str, name: str, uid: str | None = None) -> bool:
        task = self.tasks.by_key.get(f"{namespace}/{name}")
        row = -1 if task is None else int(self.tasks.node[task.row])
        undone: bool = forget(self, namespace, name, uid)
        if undone and row >= 0 and task is not None:
            self.nodes.place(row, task.template, int(self.tasks.status[task.row]), 1)
        return undone

    return patched


def without_scalars(place: Any) -> Any:
    def patched(self: NodeTable, row: int, template: Any, status: int, sign: int) -> None:
        before = self.idle[2:, row].copy()
        place(self, row, template, status, sign)
        self.idle[2:, row] = before

    return patched


def believes_timeouts(handle: Any) -> Any:
    async def patched(self: Cache, message: Any) -> Any:
        if isinstance(message, BindTimedOut):
            message = Bound(*(getattr(message, name) for name in message.__struct_fields__[:6]))
        return await handle(self, message)

    return patched


def loses_the_second(entries: Any) -> Any:
    """Of two changes in one request only the first is written down."""

    def patched(self: ApiServer, cause: int = 0) -> list[Entry]:
        written: list[Entry] = entries(self, cause)
        return written[:1]

    return patched


def keeps_the_deleted(restore: Any) -> Any:
    def patched(self: ObjectTables, mutation: Mutation) -> None:
        if mutation.type == "DELETED" and mutation.kind == "Pod":
            self.revision = mutation.revision
            return
        restore(self, mutation)

    return patched


def skips_when_behind(pull: Any) -> Any:
    """After falling off the log it goes on from now instead of listing again."""

    async def patched(self: Watcher) -> WatchedChanges:
        async def no_list() -> WatchedChanges:
            newest = expected(await self._api.ask(ReadRevision()), RevisionRead)
            return WatchedChanges((), newest.revision)

        if self.revision > 0:
            self._relist = no_list  # type: ignore[method-assign]
        changes: WatchedChanges = await pull(self)
        return changes

    return patched


def without_vanished(relist: Any) -> Any:
    async def patched(self: Watcher) -> WatchedChanges:
        changes = await relist(self)
        events = [event for event in changes.events if event.type != "DELETED"]
        return WatchedChanges(events, changes.revision, True, changes.listed)

    return patched


async def reports_first_only(self: Outcomes, outcomes: Sequence[Any]) -> None:
    """One failed bind loses the outcomes after it (Volcano #2865)."""
    for outcome in outcomes:
        await self._cache.tell(outcome)
        if not isinstance(outcome, Bound):
            return


async def leaves_evictions_out(self: Outcomes, outcomes: Sequence[Any]) -> None:
    """The cache sees evictions, the journal does not."""
    frames = [self._cache.encode(outcome) for outcome in outcomes]
    entries = [
        Entry("outcome", frame, outcome.sequence)
        for outcome, frame in zip(outcomes, frames, strict=True)
        if not isinstance(outcome, OF_EVICTIONS)
    ]
    if outcomes:
        await self._cache.tell(*frames, through=True)
        await self._recorder.tell(Append(tuple(entries)), through=True)


def takes_refusals_for_done(outcome: Any) -> Any:
    def patched(pod: Any, reply: Any) -> Any:
        return outcome(pod, Accepted(0) if isinstance(reply, Refused) else reply)

    return patched


def adds_up(tallied: Any) -> Any:
    """What has succeeded is counted again at every look."""

    def patched(status: Any, pods: Any) -> Any:
        written = tallied(status, pods)
        if before := status.get("succeeded"):
            written["succeeded"] = written.get("succeeded", 0) + before
        return written

    return patched


def gives_nothing_up(fail: Any) -> Any:
    def patched(self: OneByOne, task: Task, message: str, nominated: str | None) -> None:
        fail(self, task, message, nominated or "")

    return patched


def forgets_resync(self: Cache, namespace: str, name: str, uid: str, *, evicting: bool) -> None:
    """A failed bind is noted and never looked at again: it stays assumed."""
    self._awaited.came(uid)


def chooses_from_all(choose: Any) -> Any:
    """What a claim of the same cycle was promised counts as free."""

    def patched(self: DynamicResources, row: int, asked: Any) -> Any:
        here = self._devices.get(row, [])
        return Allocator(here, self._in_use).allocate(asked)

    return patched


def hears_late(read: Any) -> Any:
    """After a while every batch of changes reaches the cache a hundred seconds late."""

    async def patched(self: Watcher) -> WatchedChanges:
        if self.name == "cache" and anyio.current_time() > LATE_FROM_S:
            await anyio.sleep(100.0)
        changes: WatchedChanges = await read(self)
        return changes

    return patched


async def answers_first(self: FaultyApiServer, entries: Sequence[Entry]) -> None:
    """What is done is answered, and written down while the asker goes on."""
    await self._recorder.tell(Append(tuple(entries)))


def writes_last(record: Any) -> Any:
    """What the cycle decided is handed out before it is on disk."""

    async def patched(self: Commit, cycle: Any, result: Any, memory: CycleMemory) -> None:
        memory.unsent = Unsent(result, cycle.statuses, 1, cycle.now)
        await self.carry_out(memory)
        await record(self, cycle, result, memory)
        memory.unsent = None

    return patched


def forgets_who_runs(pod: Any) -> Any:
    """A pod that was running when the agents came is left to itself."""

    def patched(self: NodeAgentsMachine, obj: Any, revision: int) -> None:
        key = (obj["metadata"]["namespace"], obj["metadata"]["name"])
        new = key not in self._runs
        pod(self, obj, revision)
        if new and key in self._runs and self._runs[key].state is PodState.RUNNING:
            self._fresh.pop(key, None)

    return patched


def drops_when_full(wait: Any) -> Any:
    """What nobody waits to be answered is lost where there is no room."""

    async def patched(self: Mailbox[Any, Any], envelope: Any) -> None:
        if envelope.answer is None:
            self.handled(len(envelope.frames))
            return
        await wait(self, envelope)

    return patched


def keeps_promises(drop: Any) -> Any:
    """The bind has ended, and what its claims were promised stays promised."""

    def patched(self: AssumedPods, pod: str) -> None:
        promised = dict(self._promised)
        drop(self, pod)
        self._promised = promised

    return patched


def binds_any_namesake(bind: Any) -> Any:
    def patched(self: Placement, request: BindPod, moment: Any) -> Any:
        return bind(self, structs.replace(request, uid=""), moment)

    return patched


def looks_without_waiting(look: Any) -> Any:
    """It believes what it read, though the watch has not come as far."""

    async def patched(self: Cache, due: Any) -> None:
        waiting, self._applied = self._applied, LevelSignal(10**12)
        try:
            await look(self, due)
        finally:
            self._applied = waiting

    return patched


def longest_delay_first(_: int) -> float:
    return LONGEST_S
