"""Starting on a journal that holds something: the api's truth back in the store, and where the cycles were.

A decision without an outcome is resolved against that truth: the pod is on the node, or it is simply pending again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.messages.decisions import Bind, Decision, Evict
from core.messages.events import BindTimedOut, Bound, Evicted, EvictTimedOut, Outcome
from core.messages.replies import Accepted
from core.objects.metadata import section
from storage import codec
from storage.journal import OUTCOME, Record
from storage.recovery import Recovered, recover

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.messages.replies import ApiReply
    from storage.journal import Journal

__all__ = ["Recovered", "recover", "resolve"]

LOST = "the process ended before an answer came"


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
