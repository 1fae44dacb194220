# SPDX-License-Identifier: Apache-2.0
"""Trace `journal:FILE`: what came from outside while a journal was written, as arrivals.

What they handed in before the first work came is there from the beginning, and stands as they had changed it by
then. Work comes as long after the beginning as it did, and runs as long as it ran: a pod by itself, those of a
template as long as the longest of them, where it does not say so already; for ever what still ran in the end. Later
changes and deletions are not arrivals: they are left out and counted (`pumice replay --config` has them too).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pumice.cluster.api.kinds import MAKERS
from pumice.cluster.api.origin import as_new
from pumice.cluster.kubelets.pod_runs import DURATION
from pumice.core.life.task import ENDED_PHASES
from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import Object, annotations_of, owners_of, section, text_map
from pumice.errors import InputError
from pumice.executors import waited
from pumice.load.traces.jobs import Left
from pumice.questions.measures.beginning import beginning
from pumice.questions.measures.lives import Lives
from pumice.questions.replay.remainder import ITSELF, asked
from pumice.runtime.arrivals import ARRIVAL, duration_text
from pumice.storage import codec
from pumice.storage.journal import API, Stored
from pumice.storage.records import read_as
from pumice.storage.sqlite import open_history

if TYPE_CHECKING:
    from collections.abc import Iterator

Key = tuple[str, str, str]
"""Kind, namespace, name."""

TASK: Final = "volcano.sh/task-spec"
UNTOLD: Final = frozenset(("Event", "Lease"))
WORK: Final = frozenset((*MAKERS, "Pod", "PodGroup"))
"""Kinds that arrive when their users come; all other objects from before the first of them exist from the beginning."""


@dataclass
class Arrived:
    """Objects that came from outside: `first` exist from the beginning, `later` arrive so many seconds after it.

    `ran`: (uid of the object that came, task) -> how long the longest of its pods ran that ended by itself; 0.0: one
    still runs.
    """

    first: dict[Key, Object] = field(default_factory=dict[Key, Object])
    later: list[tuple[float, Object]] = field(default_factory=list[tuple[float, Object]])
    left: Left = field(default_factory=lambda: Left(what="requests"))
    _owners: dict[str, str] = field(default_factory=dict[str, str])
    _running: dict[str, tuple[float, tuple[str, str]]] = field(
        default_factory=dict[str, "tuple[float, tuple[str, str]]"]
    )
    _ran: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])

    def note(self, mutation: Mutation, at: float, *, outside: bool) -> None:
        """Take the next change, so many seconds after the beginning."""
        obj: Object = codec.unpack(mutation.blob)
        metadata = section(obj, "metadata")
        if owners := owners_of(obj):
            self._owners[str(metadata.get("uid"))] = str(owners[0].get("uid"))
        if mutation.kind == "Pod":
            self._run(mutation, obj, at)
        if outside and mutation.kind not in UNTOLD:
            self._hand_in(mutation, obj, at)

    def _hand_in(self, mutation: Mutation, obj: Object, at: float) -> None:
        key = (mutation.kind, mutation.namespace, mutation.name)
        if not self.later and mutation.kind not in WORK:
            if mutation.type == "DELETED":
                self.first.pop(key, None)
            else:
                self.first[key] = obj
        elif mutation.type == "ADDED":
            self.later.append((at, obj))
        else:
            self.left.note("changes and deletions of what had come")

    def _run(self, mutation: Mutation, pod: Object, at: float) -> None:
        metadata, phase = section(pod, "metadata"), section(pod, "status").get("phase")
        uid = str(metadata.get("uid"))
        if mutation.type != "DELETED" and phase == "Running":
            whose = self._root(uid), text_map(metadata.get("annotations")).get(TASK, "")
            self._running.setdefault(uid, (at, whose))
        elif (ran := self._running.pop(uid, None)) is not None and phase in ENDED_PHASES:
            began, whose = ran
            if not metadata.get("deletionTimestamp"):
                self._ran[whose] = max(self._ran.get(whose, 0.0), at - began)

    def _root(self, uid: str) -> str:
        while uid in self._owners:
            uid = self._owners[uid]
        return uid

    def objects(self) -> Iterator[Object]:
        """Return the objects in order of arrival."""
        for _, whose in self._running.values():
            self._ran.setdefault(whose, 0.0)
        for obj in self.first.values():
            yield as_new(asked(obj))
        for at, obj in self.later:
            yield self._coming(obj, at)

    def _coming(self, given: Object, at: float) -> Object:
        uid = str(section(given, "metadata").get("uid"))
        obj = as_new(asked(given))
        if obj["kind"] == "Pod":
            obj = _annotated(obj, DURATION, self._ran.get((uid, text_map(_annotations(obj)).get(TASK, ""))))
        elif obj["kind"] == "Job" and "tasks" in section(obj, "spec"):
            tasks = [self._task(task, uid) for task in obj["spec"]["tasks"]]
            obj = {**obj, "spec": {**obj["spec"], "tasks": tasks}}
        elif section(obj, "spec").get("template"):
            template = _annotated(obj["spec"]["template"], DURATION, self._ran.get((uid, "")))
            obj = {**obj, "spec": {**obj["spec"], "template": template}}
        return _annotated(obj, ARRIVAL, at)

    def _task(self, task: Object, uid: str) -> Object:
        template = _annotated(task.get("template") or {}, DURATION, self._ran.get((uid, str(task.get("name") or ""))))
        return {**task, "template": template}


def _annotations(obj: Object) -> Object:
    return annotations_of(obj)


def _annotated(obj: Object, name: str, seconds: float | None) -> Object:
    """Return the object with a time, unless there is none or the object has a duration of its own."""
    there = _annotations(obj)
    if seconds is None or (name == DURATION and name in there):
        return obj
    annotations = {**there, name: duration_text(seconds)}
    return {**obj, "metadata": {**section(obj, "metadata"), "annotations": annotations}}


def read_recorded(file: Path) -> tuple[Iterator[Object], Left]:
    """Return the objects of a journal, and those that were left out. Raises InputError, OpenError, DamagedError."""
    if not file.exists():
        raise InputError("does not exist", source=str(file))
    arrived = waited(_arrived, file)
    return arrived.objects(), arrived.left


async def _arrived(file: Path) -> Arrived:
    arrived = Arrived()
    async with open_history(file) as journal:
        begun = await beginning(journal)
        for mutation in begun.there():
            roots = not owners_of(codec.unpack(mutation.blob))
            arrived.note(mutation, 0.0, outside=roots)

        def follow(stored: Stored) -> None:
            if stored.kind == API:
                mutation = read_as(stored, Mutation)
                outside = mutation.user.partition(" ")[0] not in ITSELF and not stored.cause
                arrived.note(mutation, round(stored.at - begun.at, 3), outside=outside)

        await begun.through(journal, Lives(()), follow)
    return arrived
