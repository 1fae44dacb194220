# SPDX-License-Identifier: Apache-2.0
"""Stories from entries: everything about one job or pod, one cycle with its outcomes, the whole in numbers."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from msgspec import UNSET, UnsetType

from pumice.core.objects.metadata import Object
from pumice.questions.history.entries import EntryTold, NameFilter, StoryEntry
from pumice.results import Result
from pumice.storage import journal
from pumice.storage.journal import CYCLE, DECISION, OUTCOME, SHADOW

LAST_CYCLES = 10


async def story_of(name: str, read: AsyncIterator[StoryEntry], named: NameFilter | None = None) -> list[StoryEntry]:
    """Return the entries about the object of that name ("ns/name", or a bare name) and its parts, in order.

    A change that shows in no word of the object's state is left out. `named`: what `read` is filtered by; it learns the
    names of the parts.
    """
    known, states, told = {name}, dict[str, str](), list[StoryEntry]()
    async for entry in read:
        if entry.parts_of & known:
            known |= entry.about
            if named is not None:
                named.add(*entry.about)
        if not entry.about & known:
            continue
        who = entry.data.get("object")
        if who is not None:
            if states.get(who) == entry.text:
                continue
            states[who] = entry.text
        told.append(entry)
    return told


class JournalCycle(Result, kw_only=True, tag="journal/1"):
    """One cycle: its record (see `EntryTold`), its `decisions`, the `outcomes` of these, and the differences that a
    `shadow` found, where one ran.
    """

    sequence: int
    at: float
    kind: str
    text: str
    cycle: int
    now: float
    revision: int
    digest: str
    config: str
    decisions: list[Object]
    outcomes: list[Object]
    shadow: list[EntryTold] | UnsetType = UNSET


@dataclass(slots=True)
class CycleStory:
    """One cycle: its record, its decisions, their outcomes, and the differences that a shadow found."""

    record: StoryEntry | None = None
    decisions: list[StoryEntry] = field(default_factory=list[StoryEntry])
    outcomes: list[StoryEntry] = field(default_factory=list[StoryEntry])
    shadows: list[StoryEntry] = field(default_factory=list[StoryEntry])

    def result(self) -> JournalCycle:
        """Return it as `pumice journal --cycle` prints it. There is a record."""
        assert self.record is not None
        record, data = self.record, self.record.data
        return JournalCycle(
            sequence=record.sequence,
            at=record.at,
            kind=record.kind,
            text=record.text,
            cycle=data["cycle"],
            now=data["now"],
            revision=data["revision"],
            digest=data["digest"],
            config=data["config"],
            decisions=[{"sequence": one.sequence, **one.data["decision"]} for one in self.decisions],
            outcomes=[{"sequence": one.sequence, "at": one.at, **one.data["outcome"]} for one in self.outcomes],
            shadow=[one.told() for one in self.shadows] or UNSET,
        )


async def cycle_of(number: int, read: AsyncIterator[StoryEntry]) -> CycleStory:
    """Return the cycle of that number; one without a record for an unknown number."""
    story, current, made = CycleStory(), 0, set[int]()
    async for entry in read:
        if entry.kind == CYCLE:
            current = entry.data["cycle"]
            if current == number:
                story.record = entry
        elif entry.kind == DECISION and current == number and len(made) < story_size(story):
            story.decisions.append(entry)
            made.add(entry.sequence)
        elif entry.kind == OUTCOME and entry.cause in made:
            story.outcomes.append(entry)
        elif entry.kind == SHADOW and entry.data["cycle"] == number:
            story.shadows.append(entry)
    return story


def story_size(story: CycleStory) -> int:
    """Return the number of decisions that the record states."""
    return int(story.record.data["decisions"]) if story.record else 0


class JournalOverview(Result, kw_only=True, tag="journal/1"):
    """A journal in numbers: records, also by kind, cycles and decisions, when it `began` and `ended` (seconds since the
    epoch), its last cycles, and its `events`: configurations, crashes, lost cycles, profiles of faults.
    """

    records: int
    kinds: dict[str, int]
    cycles: int
    decisions: int
    began: float
    ended: float
    last_cycles: list[EntryTold]
    events: list[EntryTold]


@dataclass(slots=True)
class Overview:
    """A journal in numbers."""

    records: Counter[str] = field(default_factory=Counter[str])
    cycles: int = 0
    decisions: int = 0
    began: float = 0.0
    ended: float = 0.0
    last_cycles: deque[StoryEntry] = field(default_factory=lambda: deque[StoryEntry](maxlen=LAST_CYCLES))
    events: list[StoryEntry] = field(default_factory=list[StoryEntry])

    def add(self, entry: StoryEntry) -> None:
        """Add one more record. Crashes, lost cycles, configurations and profiles of faults are kept whole."""
        self.records[entry.kind] += 1
        self.began = self.began or entry.at
        self.ended = max(self.ended, entry.at)
        if entry.kind == CYCLE:
            self.cycles += 1
            self.decisions += entry.data["decisions"]
            self.last_cycles.append(entry)
        elif _is_event(entry):
            self.events.append(entry)

    def result(self) -> JournalOverview:
        """Return it as `pumice journal` prints it."""
        return JournalOverview(
            records=sum(self.records.values()),
            kinds=dict(sorted(self.records.items())),
            cycles=self.cycles,
            decisions=self.decisions,
            began=self.began,
            ended=self.ended,
            last_cycles=[entry.told() for entry in self.last_cycles],
            events=[entry.told() for entry in self.events],
        )


def _is_event(entry: StoryEntry) -> bool:
    """Return whether a record is told in the overview: there are few of them."""
    match entry.kind:
        case journal.CONFIG:
            return True
        case journal.ACTOR:
            return "crashed" in entry.text or "lost" in entry.text
        case journal.FAULT:
            return "rules" in entry.data["fault"]
        case _:
            return False


async def overview_of(read: AsyncIterator[StoryEntry]) -> Overview:
    """Return the whole journal in numbers."""
    overview = Overview()
    async for entry in read:
        overview.add(entry)
    return overview
