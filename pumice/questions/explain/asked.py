# SPDX-License-Identifier: Apache-2.0
"""An account of a subject, in the cycle of a journal that has the most information about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

import anyio

from pumice.belonging import owner_of
from pumice.config.errors import ConfigError
from pumice.core.life.task import TaskStatus, status_of
from pumice.core.messages.decisions import Bind, Evict
from pumice.core.messages.events import CycleRecord, Mutation
from pumice.core.objects.metadata import Object, section
from pumice.questions.explain.account import Account, NotFoundError, account_of, is_waiting
from pumice.questions.explain.ended import JobEnd
from pumice.questions.explain.refused import refused_in
from pumice.questions.explain.scene import Scene, scene_of
from pumice.questions.history.entries import NameFilter
from pumice.questions.history.naming import open_naming
from pumice.questions.history.rewind import newest_of_volcano, owners_at, rewind_file, warn_of_damage
from pumice.questions.oneshot.cycles import fill
from pumice.storage import codec
from pumice.storage.journal import API, CYCLE, DECISION
from pumice.storage.records import read_as

# --- A Job submitted again


async def last_job(file: Path, name: str) -> Object | None:
    """Return the last state of the Job "namespace/name" in a journal; None when it never existed, or is gone."""
    last = None
    async with open_naming(file, NameFilter(name)) as naming:
        async for stored in naming.read((API,)):
            change = read_as(stored, Mutation)
            if change.kind == "Job" and f"{change.namespace}/{change.name}" == name:
                last = None if change.type == "DELETED" else change.blob
    return None if last is None else codec.unpack(last)


def submitted_again(scene: Scene, job: Object) -> Scene:
    """Return that moment, with the Job as it was submitted and the objects that controllers make of it."""
    from pumice.questions.oneshot.expand import expanded  # noqa: PLC0415 - all controllers

    fresh = {part: value for part, value in job.items() if part != "status"}
    objects = expanded([*scene.objects(), fresh], scene.clock.now).objects
    return replace(scene, view=fill(objects, scene.in_flight), recorded=None, objects=lambda: objects)


SETTLED: Final = ("Bound", "Running", "Evicted", "Succeeded", "Failed", "Releasing", "Completed")
"""States of objects that do not wait: they need no advice."""


def accounted(scene: Scene, kind: str, name: str, ended: JobEnd | None) -> Account:
    """Return the account of the object in the cycle; `ended`: its controller's words about its end, if any. Raises
    NotFoundError."""
    try:
        account = account_of(scene, kind, name)
    except NotFoundError:
        if ended is None:
            raise
        return Account(kind, name, scene.clock.cycle, ended["state"], ended["reason"], ended["message"])
    if ended is not None:
        account.add_cause(**ended)
    return account


async def recorded(db: Path, kind: str, name: str, cycle: int | None, warn: Callable[[str], None]) -> Scene:
    """Return the account in that cycle; None: the newest while the subject waits, else the last that decided about it.
    Raises ConfigError.
    """
    found, newest = await _telling_cycles(db, kind, name) if cycle is None else (cycle, cycle)
    past = await rewind_file(db, newest, path="--cycle")
    if found not in (0, newest) and not is_waiting(past.view, kind, name):
        past = await rewind_file(db, found, path="--cycle")
    warn_of_damage(past, db, warn)
    return replace(scene_of(past), refused=await refused_in(db, cycle))


def with_owners(scene: Scene, db: Path) -> Scene:
    """Return the recorded cycle, which saw pods, with the objects of the same moment that controllers make pods
    from.
    """
    assert scene.recorded is not None
    sequence = scene.recorded.sequence

    @cache
    def objects() -> list[Object]:
        return [*scene.objects(), *anyio.run(owners_at, db, sequence)]

    return replace(scene, objects=objects)


async def _telling_cycles(db: Path, kind: str, name: str) -> tuple[int, int]:
    """Return the last cycle that decided about the pod, or about a pod of the job (0: none), and the one to ask first:
    the newest, if the subject may wait there.
    """
    owned = OwnedGroups(name)
    async with open_naming(db, owned.named) as naming:
        newest = await naming.journal.last(CYCLE)
        if newest is None:
            raise ConfigError("the journal has no cycle", source=str(db))
        record = read_as(newest, CycleRecord)
        pods, found, cycle = LastPods(record.revision), 0, None
        async for stored in naming.read((CYCLE, DECISION, API)):
            if stored.kind == CYCLE:
                cycle = stored
            elif stored.kind == API:
                change = read_as(stored, Mutation)
                owned.note(change)
                pods.note(change)
            elif cycle is not None and _is_about(read_as(stored, Bind | Evict), kind, name, owned):
                found = read_as(cycle, CycleRecord).cycle
    # The records of other owners' pods may name none of them; another scheduler's cycle saw a later moment.
    is_settled = kind in ("pod", "podgroup", "job") and not record.scheduler and not pods.may_wait(kind, name)
    return found, found if found and is_settled else newest_of_volcano(record)


class LastPods:
    """The last states of pods, up to a revision: a cycle that need not be rewound is half of an answer's work."""

    def __init__(self, revision: int) -> None:
        self._revision = revision
        self._last: dict[str, Mutation] = {}

    def note(self, change: Mutation) -> None:
        """Note the next change of an object."""
        if change.kind == "Pod" and change.revision <= self._revision:
            self._last[f"{change.namespace}/{change.name}"] = change

    def may_wait(self, kind: str, name: str) -> bool:
        """Return whether the pod of that name, or any where the subject is not a pod, has no node and has not ended."""
        changes = [each for pod, each in self._last.items() if kind != "pod" or pod == name]
        return any(_is_pending(codec.unpack(each.blob)) for each in changes if each.type != "DELETED")


def _is_pending(pod: Object) -> bool:
    phase, node = section(pod, "status").get("phase") or "Pending", section(pod, "spec").get("nodeName")
    return status_of(phase, False, node) == TaskStatus.PENDING


class OwnedGroups:
    """PodGroups of an object "namespace/name", its own or through a ReplicaSet, by a journal."""

    def __init__(self, name: str) -> None:
        self._owners = {name}
        self.groups = set[str]()
        self.named = NameFilter(name)

    def note(self, change: Mutation) -> None:
        """Note a change of an object, if it has an owner."""
        if change.kind in ("PodGroup", "ReplicaSet") and owner_of(codec.unpack(change.blob)) in self._owners:
            (self.groups if change.kind == "PodGroup" else self._owners).add(f"{change.namespace}/{change.name}")
            self.named.add(change.name)


def _is_about(decision: Bind | Evict, kind: str, name: str, owned: OwnedGroups) -> bool:
    if kind == "pod":
        return f"{decision.namespace}/{decision.name}" == name
    return decision.job == name or decision.job in owned.groups
