# SPDX-License-Identifier: Apache-2.0
"""Journal records as entries: an object and its change, in one sentence."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Final, Required, TypedDict

import msgspec

from pumice.core.messages.decisions import Bind
from pumice.core.messages.events import (
    ActorCrashed,
    ActorStarted,
    BindRefused,
    BindTimedOut,
    Bound,
    CheckpointTaken,
    ConfigLoaded,
    CycleDropped,
    CycleRecord,
    Evicted,
    EvictRefused,
    FaultsBegan,
    FaultStruck,
    Mutation,
    ShadowCompared,
)
from pumice.core.messages.questions import OutsideAnswers
from pumice.core.objects.metadata import Object
from pumice.questions.history.objects import belongs_to, cause_of, state_of
from pumice.results import Laid
from pumice.storage import codec
from pumice.storage.journal import (
    ACTOR,
    API,
    CHECKPOINT,
    CONFIG,
    CYCLE,
    DECISION,
    FAULT,
    OUTCOME,
    SHADOW,
    Journal,
    Stored,
)
from pumice.storage.records import told

BATCH = 5_000


class EntryTold(TypedDict, total=False):
    """A record of a journal: its number, when it was written (seconds since the epoch), its kind, a sentence, and
    further fields by its kind.

    api: `type` of the change, "kind name" of the `object`, its `revision` and `state`, with the `reason` and `message`
    of that. cycle: its number, `now` (seconds since the epoch), `revision`, how many `decisions`, their `digest`, and
    the digest of the `config`. decision, outcome, actor: the message itself. config: `source`, `digest` and `error`.
    fault: the message itself. shadow: `cycle`, `decisions`, the `same` ones, `differences`. checkpoint: `through`, the
    last record that it covers.
    """

    sequence: Required[int]
    at: Required[float]
    kind: Required[str]
    text: Required[str]
    type: str
    object: str
    revision: int
    state: str
    reason: str
    message: str
    cycle: int
    now: float
    decisions: int
    digest: str
    config: str
    decision: Object
    outcome: Object
    event: Object
    fault: Object
    source: str
    error: str
    same: int
    differences: list[Object]
    through: int


class JournalRecord(Laid, tag="journal-record/1"):
    """A line of `pumice journal --follow`."""

    record: EntryTold


@dataclass(slots=True)
class StoryEntry:
    """One record. `about`: "ns/name" (or a bare name) of everything it concerns; `parts_of`: the owners of those."""

    sequence: int
    at: float
    kind: str
    text: str
    cause: int = 0
    about: frozenset[str] = frozenset()
    parts_of: frozenset[str] = frozenset()
    data: Object = field(default_factory=Object)

    def told(self) -> EntryTold:
        """Return it as it is printed."""
        head = {"sequence": self.sequence, "at": self.at, "kind": self.kind, "text": self.text}
        return msgspec.convert({**head, **self.data}, EntryTold)


class NameFilter:
    """Tell which records may concern objects of some names, by their bytes: next to none of a journal is decoded then.

    Names stand in MessagePack as they are. A record that only has such bytes elsewhere passes too.
    """

    def __init__(self, *names: str) -> None:
        self.names: set[str] = set()  # bare ones
        self._marks: list[bytes] = []
        self.add(*names)

    def add(self, *names: str) -> None:
        """Let records pass that concern more objects ("namespace/name" or a bare name)."""
        for name in names:
            self.names.add(name.rpartition("/")[2])
            bare = name.rpartition("/")[2].encode()
            if not any(mark in bare for mark in self._marks):
                self._marks = [mark for mark in self._marks if bare not in mark]
                self._marks.append(bare)

    def passes(self, stored: Stored) -> bool:
        """Return whether a record may concern one of the objects."""
        payload = stored.payload
        return any(mark in payload for mark in self._marks)


async def entries(journal: Journal, after: int = 0, kinds: Collection[str] | None = None) -> AsyncIterator[StoryEntry]:
    """Yield every record above `after`, as entries, in order. Raises DamagedError at a damaged one."""
    async for entry in as_entries(_all(journal, after, kinds)):
        yield entry


async def _all(journal: Journal, after: int, kinds: Collection[str] | None) -> AsyncIterator[Stored]:
    while batch := await journal.read(after, kinds, BATCH):
        for stored in batch:
            yield stored
        after = batch[-1].sequence


async def as_entries(records: AsyncIterator[Stored]) -> AsyncIterator[StoryEntry]:
    """Yield records as entries. A decision names its cycle where the cycle's record, which precedes it, is among
    them.
    """
    cycle = 0
    async for stored in records:
        entry = entry_of(stored)
        if stored.kind == CYCLE:
            cycle = entry.data.get("cycle", 0)
        elif stored.kind == DECISION and cycle:
            entry.text = f"cycle {cycle} {entry.text}"
        yield entry


def entry_of(stored: Stored) -> StoryEntry:
    """Return one record as a sentence; a kind of a newer Pumice is only named."""
    entry = StoryEntry(stored.sequence, stored.at, stored.kind, stored.kind, stored.cause)
    tell, found = TELLERS.get(stored.kind), told(stored)
    if tell is not None:
        tell(entry, found)
    return entry


def _key(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def _shadow(entry: StoryEntry, found: ShadowCompared) -> None:
    whose = f"by {found.source} " if found.other else ""
    entry.text = f"beside cycle {found.cycle} {whose}{found.same} of {found.decisions} decisions are the same here"
    for each in found.differences:
        entry.text += f"; {each.what} of {each.name}: there {each.there or 'nothing'}, here {each.here or 'nothing'}"
    entry.about = frozenset(each.name for each in found.differences)
    entry.data = {"cycle": found.cycle, "decisions": found.decisions, "same": found.same}
    entry.data["differences"] = msgspec.to_builtins(found.differences)


def _mutation(entry: StoryEntry, mutation: Mutation) -> None:
    key = _key(mutation.namespace, mutation.name)
    obj: Object = codec.unpack(mutation.blob) if mutation.blob else {}
    verb = {"ADDED": "created", "MODIFIED": "changed", "DELETED": "deleted"}.get(mutation.type, mutation.type)
    state = state_of(obj) if mutation.type != "DELETED" else ""
    entry.text = f"{mutation.kind} {key} {verb}" + (f": {state}" if state else "")
    entry.about = frozenset((key,))
    entry.parts_of = frozenset(_key(mutation.namespace, name) for name in belongs_to(obj))
    entry.data = {
        "type": mutation.type,
        "object": f"{mutation.kind} {key}",
        "revision": mutation.revision,
        "state": state,
    }
    if any(cause := cause_of(obj)):
        entry.data["reason"], entry.data["message"] = cause


def _cycle(entry: StoryEntry, cycle: CycleRecord) -> None:
    whose = f" of {cycle.scheduler}" if cycle.scheduler else ""
    entry.text = f"cycle {cycle.cycle}{whose} decided {cycle.decisions} times at revision {cycle.revision}"
    entry.text += _unanswered(cycle.answers)
    entry.data = {
        "cycle": cycle.cycle,
        "now": cycle.now,
        "revision": cycle.revision,
        "decisions": cycle.decisions,
        "digest": cycle.digest,
        "config": cycle.config_digest,
    }


def _unanswered(answers: OutsideAnswers | None) -> str:
    """Report how many questions to the extender got no answer, and why the last one did not."""
    errors = [error for which in answers.which if (error := answers.distinct[which].error)] if answers else []
    if answers is None or not errors:
        return ""
    return f"; plugin extender: {len(errors)} of {len(answers.which)} questions got no answer: {errors[-1]}"


def _decision(entry: StoryEntry, decision: Bind | Any) -> None:
    pod = _key(decision.namespace, decision.name)
    if isinstance(decision, Bind):
        job = f" (job {decision.job})" if decision.job else ""
        entry.text = f"decided to bind {pod} to {decision.node}{job}"
        entry.about = frozenset((pod, decision.job))
    else:
        room = f" to make room for {decision.preemptor}" if decision.preemptor else ""
        why = decision.action or decision.reason
        why += f", score {decision.score:g}" if decision.score else ""
        entry.text = f"decided to evict {pod} from {decision.node}{room} ({why})"
        entry.about = frozenset((pod, decision.job, decision.preemptor))
    entry.data = {"decision": msgspec.to_builtins(decision)}


def _outcome(entry: StoryEntry, outcome: Any) -> None:
    who = _key(outcome.namespace, outcome.name)
    entry.about = frozenset((who,))
    entry.data = {"outcome": msgspec.to_builtins(outcome)}
    match outcome:
        case Bound():
            entry.text = f"{who} is bound to {outcome.node}"
        case BindRefused() | EvictRefused():
            what = "bind" if isinstance(outcome, BindRefused) else "eviction"
            entry.text = f"the {what} of {who} was refused: {outcome.message or outcome.reason}"
        case BindTimedOut():
            entry.text = f"no answer about the bind of {who} to {outcome.node}: {outcome.message}"
        case Evicted():
            entry.text = f"{who} is evicted"
        case _:
            entry.text = f"{type(outcome).__name__} {who}: {getattr(outcome, 'message', '')}"


def _actor(entry: StoryEntry, event: Any) -> None:
    entry.data = {"event": msgspec.to_builtins(event)}
    match event:
        case ActorStarted():
            entry.text = f"actor {event.actor} started"
        case ActorCrashed():
            entry.text = f"actor {event.actor} crashed: {event.error}"
        case CycleDropped():
            entry.text = f"cycle {event.cycle} was lost: {event.error}"
        case _:
            entry.text = f"actor {event.actor} stopped"


def _config(entry: StoryEntry, loaded: ConfigLoaded) -> None:
    refused = f" was refused and the old one kept: {loaded.error}" if loaded.error else " is in force"
    entry.text = f"configuration {loaded.source} ({loaded.digest[:12]}){refused}"
    entry.data = {"source": loaded.source, "digest": loaded.digest, "error": loaded.error}


def _checkpoint(entry: StoryEntry, taken: CheckpointTaken) -> None:
    entry.text = f"a checkpoint stands for all records up to {taken.sequence}"
    entry.data = {"through": taken.sequence}


def _fault(entry: StoryEntry, event: FaultsBegan | FaultStruck) -> None:
    if isinstance(event, FaultsBegan):
        rules: list[Object] = msgspec.json.decode(event.rules)
        names = ", ".join(str(each.get("rule")) for each in rules) or "none"
        entry.text = f"faults in force from here on, by seed {event.seed}: {names}"
        entry.data = {"fault": {"seed": event.seed, "rules": rules}}
        return
    key = _key(event.namespace, event.name)
    asked = f"{event.verb} {event.kind}{f'/{event.subresource}' if event.subresource else ''} {key}"
    entry.text = f"fault {event.fault} ({event.rule}) struck {event.client or 'the cluster'}: {asked} #{event.nth}"
    entry.about = frozenset((key,))
    entry.data = {"fault": msgspec.to_builtins(event)}


TELLERS: Final[dict[str, Callable[[StoryEntry, Any], None]]] = {
    API: _mutation,
    CYCLE: _cycle,
    DECISION: _decision,
    OUTCOME: _outcome,
    ACTOR: _actor,
    CONFIG: _config,
    CHECKPOINT: _checkpoint,
    SHADOW: _shadow,
    FAULT: _fault,
}
