# SPDX-License-Identifier: Apache-2.0
"""Running times of pods: read from a journal as they end, and grouped by owner."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from pumice.belonging import group_of, minimum_of, owner_of
from pumice.cluster.controllers.job_keys import GROUP_NAME, JOB_NAME
from pumice.core.life.task import ENDED_PHASES
from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import Object, rows, section, text_map
from pumice.storage import codec
from pumice.storage.journal import API
from pumice.storage.records import read_as
from pumice.storage.sqlite import open_history

TASK: Final = "volcano.sh/task-spec"
ALIKE: Final = ("image", "command", "args", "resources")


class RunKeys(NamedTuple):
    """Keys of similar runs, the nearest first: the job of that name and its task, the containers and their requests in
    a gang of that size, the same in any gang, the queue. "" where one is missing.
    """

    job: str
    shape: str
    template: str
    queue: str


class GangFacts(NamedTuple):
    """Facts that a PodGroup, or a Job, states for all its pods: the queue, and its minimum."""

    queue: str = ""
    size: int = 1


class EndedRun(NamedTuple):
    """A pod ran for so long and ended by itself, at `ended` (seconds since the epoch). `whose`: its PodGroup."""

    keys: RunKeys
    lasted_s: float
    ended: float
    whose: str


def keys_of(namespace: str, meta: Object, spec: Object, gang: GangFacts, job: str = "") -> RunKeys:
    """Return the keys of a pod, or of a template for pods of `job`."""
    annotations = text_map(meta.get("annotations"))
    owner = job or annotations.get(JOB_NAME) or annotations.get(GROUP_NAME) or str(meta.get("name") or "")
    template = template_of(spec)
    return RunKeys(f"{namespace}/{owner}/{annotations.get(TASK, '')}", f"{gang.size}×{template}", template, gang.queue)


def gang_of(group: Object) -> GangFacts:
    """Return the facts of a PodGroup."""
    spec = section(group, "spec")
    return GangFacts(str(spec.get("queue") or "default"), minimum_of(group))


def template_of(spec: Object) -> str:
    """Return a digest of what a pod's containers are and ask for."""
    alike = [{name: each[name] for name in ALIKE if each.get(name)} for each in rows(spec, "containers")]
    return hashlib.blake2b(msgspec.json.encode(alike, order="sorted"), digest_size=8).hexdigest()


@dataclass(slots=True)
class RunBook:
    """Known runs. `ended`: runs in the order in which they ended. `started`: owner of a PodGroup -> when its minimum of
    pods had nodes at the same time, for the first time; `asked`: when it was created.
    """

    ended: list[EndedRun] = field(default_factory=list[EndedRun])
    started: dict[str, float] = field(default_factory=dict[str, float])
    asked: dict[str, float] = field(default_factory=dict[str, float])
    _gangs: dict[str, GangFacts] = field(default_factory=dict[str, GangFacts])
    _owners: dict[str, str] = field(default_factory=dict[str, str])
    _placed: dict[str, set[str]] = field(default_factory=dict[str, "set[str]"])
    _running: dict[str, float] = field(default_factory=dict[str, float])

    def note(self, mutation: Mutation, at: float) -> None:
        """Take a change of an object."""
        if mutation.kind not in ("Pod", "PodGroup"):
            return
        name, obj = f"{mutation.namespace}/{mutation.name}", codec.unpack(mutation.blob)
        if mutation.kind == "PodGroup":
            self._gangs[name] = gang_of(obj)
            owner = self._owners[name] = owner_of(obj)
            self.asked.setdefault(owner, at)
            return
        self._place(name, mutation, obj, at)
        phase = section(obj, "status").get("phase")
        if phase == "Running" and mutation.type != "DELETED":
            self._running.setdefault(name, at)
        elif (began := self._running.pop(name, None)) is not None and phase in ENDED_PHASES:
            group = group_of(mutation.namespace, obj) or name
            self.ended.append(EndedRun(self._keys(mutation.namespace, obj), at - began, at, group))

    def _keys(self, namespace: str, pod: Object) -> RunKeys:
        gang = self._gangs.get(group_of(namespace, pod), GangFacts())
        return keys_of(namespace, pod["metadata"], section(pod, "spec"), gang)

    def _place(self, name: str, mutation: Mutation, pod: Object, at: float) -> None:
        group = group_of(mutation.namespace, pod)
        placed = self._placed.setdefault(group, set())
        if mutation.type == "DELETED":
            placed.discard(name)
        elif section(pod, "spec").get("nodeName"):
            placed.add(name)
            if group in self._owners and len(placed) >= self._gangs[group].size:
                self.started.setdefault(self._owners[group], at)


async def runs_in(file: Path, until: float | None = None) -> RunBook:
    """Return all that a journal still holds, up to a moment (seconds since the epoch)."""
    book, after = RunBook(), 0
    async with open_history(file) as journal:
        while batch := await journal.read(after, (API,)):
            for stored in batch:
                if until is not None and stored.at > until:
                    return book
                book.note(read_as(stored, Mutation), stored.at)
            after = batch[-1].sequence
    return book
