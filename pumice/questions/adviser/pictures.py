# SPDX-License-Identifier: Apache-2.0
"""Pictures of a journal as data: the board at a cycle, the cycles one after the other, a job's story."""

from __future__ import annotations

from collections import Counter, deque
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.actors.gateway.page import frames
from pumice.core.board import BoardReader, residents_of
from pumice.core.cycle import cards_later, open_session
from pumice.core.messages.events import ActorCrashed, ActorEvent, CycleRecord, Outcome
from pumice.core.messages.queue_tables import CardTable
from pumice.core.objects.metadata import Object
from pumice.core.plugins import OF_DEVICES
from pumice.core.state.volumes import volume_rules
from pumice.questions.explain.account import NotFoundError
from pumice.questions.history.entries import NameFilter, StoryEntry, entry_of
from pumice.questions.history.naming import open_naming
from pumice.questions.history.story import story_of
from pumice.questions.measures.jobs import JobRow
from pumice.questions.measures.lives import Listener, Lives
from pumice.questions.measures.measures import measure
from pumice.storage.errors import DamagedError
from pumice.storage.journal import ACTOR, API, CONFIG, CYCLE, DECISION, OUTCOME
from pumice.storage.records import read_as
from pumice.storage.sqlite import open_history

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

    from pumice.questions.explain.scene import Scene
    from pumice.questions.history.naming import Naming
    from pumice.questions.measures.lives import GroupLife, PodLife
    from pumice.storage.journal import Stored

# --- Stories

MOST_PODS: Final = 400
MOST_ENTRIES: Final = 1_000
STORY_KINDS: Final = (API, CYCLE, DECISION, OUTCOME)
FOLLOWS: Final = "has already predicated failed, skip"
"""Volcano's words for a pod that it did not look at, as it would be refused like the one before."""
DELETED: Final = "being deleted"


@dataclass
class GangLives(Listener):
    """The lives of one job's pods; `attempts` by uid, in the order in which they were made."""

    job_name: str
    attempts: dict[str, PodLife] = field(default_factory=dict[str, Any])
    group_now: GroupLife | None = None
    admitted: float | None = None

    def pod_created(self, pod: PodLife) -> None:
        """Note a pod of the job, if its job is known by now."""
        if self.job_name in (pod.job, pod.group, pod.full_name):
            self.attempts[pod.uid] = pod

    def pod_moved(self, pod: PodLife, job: str, queue: str) -> None:
        """Note a pod that may belong to this job after all."""
        self.pod_created(pod)

    def group(self, group: GroupLife) -> None:
        """Note a PodGroup, if it is the job's."""
        if self.job_name in (group.job, f"{group.namespace}/{group.name}"):
            self.group_now, self.admitted = group, group.first_admitted(self.admitted)


@dataclass
class RecordsNaming:
    """Reads the records that name the job, once, for readers of lives and of entries."""

    naming: Naming
    lives: Lives
    moments: dict[int, int] = field(default_factory=dict[int, int])
    _cycle: Stored | None = None
    _number: int = 0

    async def entries(self) -> AsyncIterator[StoryEntry]:
        """Yield the entries in order; the cycle before each is in `moments`."""
        async for stored in self.naming.read(STORY_KINDS):
            if stored.kind == CYCLE:
                self._cycle = stored
            else:
                self.lives.follow(stored)
                self.moments[stored.sequence] = self._newest()
                yield entry_of(stored)

    def _newest(self) -> int:
        """Return the number of the newest cycle, read only on demand."""
        if self._cycle is not None:
            self._number, self._cycle = read_as(self._cycle, CycleRecord).cycle, None
        return self._number


async def story_as_data(db: Path, name: str) -> Object:
    """Return a job's story. `events`: every entry with the newest cycle before it; `pods`: each attempt with its
    moments (seconds since the epoch, None before); `tries`: the scheduler's words about the gang, and about `pods` of
    it that got no node, whenever they changed. Raises NotFoundError.
    """
    gang, named = GangLives(name), NameFilter(name)
    async with open_naming(db, named) as naming:
        reading = RecordsNaming(naming, Lives((gang,)))
        told = await story_of(name, reading.entries(), named)
    if not told:
        raise NotFoundError(f"the journal tells nothing of {name!r}")
    events: list[Object] = [{"at": each.at, "cycle": reading.moments[each.sequence], **_plain(each)} for each in told]
    pods = [asdict(pod) for pod in list(gang.attempts.values())[:MOST_PODS]]
    group = gang.group_now
    return {
        "job": name,
        "queue": group.queue if group else "",
        "min_member": group.min_member if group else 1,
        "submitted": events[0]["at"],
        "admitted": gang.admitted,
        "pods": pods,
        "pods_left_out": max(0, len(gang.attempts) - MOST_PODS),
        "tries": tries_of(events)[-MOST_ENTRIES:],
        "events": events[-MOST_ENTRIES:],
        "events_left_out": max(0, len(events) - MOST_ENTRIES),
    }


def tries_of(events: Sequence[Object]) -> list[Object]:
    """Return the answers among the events: each with what was `said`, and for which `pods` (none: for the gang). One
    cycle's words about several pods are one answer; words that only point to another pod's are none.
    """
    of_gang, found = "", dict[tuple[Any, str], Object]()
    for each in events:
        (kind, _, name), said = each["object"].partition(" "), each["said"]
        if kind == "PodGroup" and said and said != of_gang:
            of_gang = said
            found[each["at"], said] = {**each, "pods": []}
        elif kind == "Pod" and said and not said.startswith(("on ", DELETED)) and FOLLOWS not in said:
            found.setdefault((each["cycle"], said), {**each, "pods": []})["pods"].append(name)
    return sorted(found.values(), key=lambda each: each["cycle"])


def _plain(entry: StoryEntry) -> Object:
    _, _, said = str(entry.data.get("state", "")).partition(", ")
    return {"kind": entry.kind, "text": entry.text, "object": str(entry.data.get("object", "")), "said": said}


MOST_EVENTS: Final = 300
"""Number of the newest starts, crashes and configurations that are listed."""
KINDS: Final = (CYCLE, OUTCOME, ACTOR, CONFIG)


def board_of(scene: Scene, node: str = "") -> Object:
    """Return the board as the cycle opened; of `node` the pods on it. Raises NotFoundError."""
    head = {"cycle": scene.clock.cycle, "now": scene.clock.now}
    if node:
        found = residents_of(scene.view, node)
        if not found.known:
            raise NotFoundError(f"cycle {scene.clock.cycle} knew no node {node!r}")
        return {**head, "residents": [msgspec.to_builtins(each) for each in found.pods]}
    read = BoardReader().read(scene.view, 0)
    assert read.layout is not None
    return {**head, **frames.whole(read.layout, read.columns(read.layout), read), "cards": frames.cards(_cards(scene))}


def _cards(scene: Scene) -> CardTable:
    """Return those that pods share, as the cycle found them: an open session counts them."""
    if not any(map(scene.config.plugin, OF_DEVICES)):
        return CardTable()
    snapshot = scene.view.snapshot(volume_rules(scene.config))
    session = open_session(snapshot, scene.config, scene.clock, scene.carry, scene.options, ask=scene.ask())
    return cards_later(session)()


async def course_of(db: Path) -> Object:
    """Return every cycle (number, moment, decisions), how decisions ended, which actors crashed how often, events of
    actors and configurations, and when the journal `ended` (seconds since the epoch).
    """
    cycles, outcomes, crashes = list[list[float]](), Counter[str](), Counter[str]()
    events = deque[StoryEntry](maxlen=MOST_EVENTS)
    async with open_history(db) as journal:
        after, ended = 0, 0.0
        head = await journal.head()
        with suppress(DamagedError):  # what comes before the damage is shown; `view_journal` says that there is some
            while batch := await journal.read(after, KINDS):
                for stored in batch:
                    if stored.kind == CYCLE:
                        record = read_as(stored, CycleRecord)
                        cycles.append([record.cycle, record.now, record.decisions])
                    elif stored.kind == OUTCOME:
                        outcomes[type(read_as(stored, Outcome)).__name__] += 1
                    else:
                        events.append(entry_of(stored))
                        crashes.update(_crashed(stored))
                after = batch[-1].sequence
            last = await journal.read(head.sequence - 1)
            ended = last[-1].at if last else 0.0
    return {
        "cycles": cycles,
        "outcomes": dict(sorted(outcomes.items())),
        "crashes": dict(sorted(crashes.items())),
        "events": [{"at": each.at, "kind": each.kind, "text": each.text} for each in events],
        "records": head.sequence,
        "ended": ended or (cycles[-1][1] if cycles else 0.0),
    }


def _crashed(stored: Stored) -> list[str]:
    event = read_as(stored, ActorEvent) if stored.kind == ACTOR else None
    return [event.actor] if isinstance(event, ActorCrashed) else []


async def measures_of(db: Path, sees: Callable[[str], bool] | None = None) -> Object:
    """Return the measures of the run so far and over time, and its jobs, the newest first: of the namespaces that
    `sees` takes, where it is given.
    """
    rows: list[JobRow] = []
    async with open_history(db) as journal:
        found = await measure(journal, rows.append, shares=False, sees=sees)  # a page asks again every few seconds
    plain: Object = msgspec.to_builtins(found)
    rows.sort(key=lambda row: (-row.submitted, row.job))
    return {**plain, "jobs": [{"job": row.job, "queue": row.queue, "state": row.state} for row in rows]}
