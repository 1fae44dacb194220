"""Starting on a journal that holds something: the api's truth back in the store, and where the cycles were.

A decision without an outcome is resolved against that truth: the pod is on the node, or it is simply pending again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from core.messages.decisions import Bind, Decision, Evict
from core.messages.events import (
    BindTimedOut,
    Bound,
    ConfigLoaded,
    CycleRecord,
    Evicted,
    EvictTimedOut,
    Mutation,
    Outcome,
)
from core.messages.replies import Accepted
from core.objects.metadata import section
from storage import codec
from storage.journal import API, CONFIG, CYCLE, DECISION, OUTCOME, Record

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.messages.replies import ApiReply
    from storage.journal import Journal, Stored

READ = 10_000
LOST = "the process ended before an answer came"


@dataclass
class Recovered:
    """Where the journal left off. `unresolved`: decisions without an outcome by journal number, with their cycle."""

    sequence: int = 0
    cycle: int = 0
    carry: dict[str, Any] = field(default_factory=dict[str, Any])
    config_digest: str = ""
    mutations: int = 0
    unresolved: dict[int, tuple[int, Decision]] = field(default_factory=dict[int, "tuple[int, Decision]"])

    def note(self, stored: Stored, restore: Callable[[Mutation], None]) -> None:
        """One record, in order."""
        match stored.kind:
            case "api":
                restore(codec.decode(stored.payload, Mutation))
                self.mutations += 1
            case "cycle":
                record = codec.decode(stored.payload, CycleRecord)
                self.cycle, self.carry = record.cycle, record.carry
            case "decision":
                self.unresolved[stored.sequence] = (self.cycle, codec.decode(stored.payload, Decision))
            case "outcome":
                self.unresolved.pop(stored.cause, None)
            case "config":
                loaded = codec.decode(stored.payload, ConfigLoaded)
                self.config_digest = loaded.digest or self.config_digest
            case _:
                pass


async def recover(journal: Journal, restore: Callable[[Mutation], None]) -> Recovered:
    """Read the whole journal; `restore` gets every mutation of the api in order."""
    recovered = Recovered()
    after = 0
    while batch := await journal.read(after, (API, CYCLE, DECISION, OUTCOME, CONFIG), READ):
        for stored in batch:
            recovered.note(stored, restore)
        after = batch[-1].sequence
    recovered.sequence = (await journal.head()).sequence
    return recovered


async def resolve(
    journal: Journal, recovered: Recovered, get_pod: Callable[[str, str], ApiReply], now: float
) -> list[Outcome]:
    """Give every unresolved decision its outcome, as the api's truth has it, and write it down."""
    outcomes: list[Outcome] = []
    records: list[Record] = []
    for sequence, (cycle, decision) in sorted(recovered.unresolved.items()):
        outcome = _outcome(cycle, sequence, decision, get_pod(decision.namespace, decision.name))
        outcomes.append(outcome)
        records.append(Record(OUTCOME, codec.encode(outcome), sequence, now))
    if records:
        recovered.sequence = await journal.append(records)
    recovered.unresolved.clear()
    return outcomes


def _outcome(cycle: int, sequence: int, decision: Decision, reply: ApiReply) -> Outcome:
    pod: dict[str, Any] = codec.unpack(reply.blob) if isinstance(reply, Accepted) else {}
    metadata = section(pod, "metadata")
    same = metadata.get("uid") == decision.uid
    whose = (f"{cycle}/{decision.uid}", sequence, decision.namespace, decision.name, decision.uid)
    match decision:
        case Bind():
            if same and section(pod, "spec").get("nodeName") == decision.node:
                return Bound(*whose, decision.node)
            return BindTimedOut(*whose, decision.node, LOST)
        case Evict():
            if not same or metadata.get("deletionTimestamp"):
                return Evicted(*whose)
            return EvictTimedOut(*whose, LOST)
