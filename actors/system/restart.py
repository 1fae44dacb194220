# SPDX-License-Identifier: Apache-2.0
"""Starting on a journal with content: the api's state back in the store, and the state of the cycles.

A decision without an outcome is resolved against that truth: the pod is on the node, or it is simply pending again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.messages.decisions import Bind, Decision, Evict
from pumice.core.messages.events import BindTimedOut, Bound, Evicted, EvictTimedOut
from pumice.core.messages.replies import Accepted
from pumice.core.objects.metadata import Object, section
from pumice.storage import codec
from pumice.storage.journal import OUTCOME, Record
from pumice.storage.recovery import Recovered, recover

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.messages.replies import ApiReply
    from pumice.storage.journal import Journal

__all__ = ["Recovered", "recover", "resolve"]

DecisionOutcome = Bound | BindTimedOut | Evicted | EvictTimedOut
LOST = "the process ended before an answer came"


def resolved(recovered: Recovered, get_pod: Callable[[str, str], ApiReply]) -> list[DecisionOutcome]:
    """Return the outcome of every unresolved decision, by the api's state; none is unresolved afterwards."""
    found = [
        _outcome(cycle, sequence, decision, get_pod(decision.namespace, decision.name))
        for sequence, (cycle, decision) in sorted(recovered.unresolved.items())
    ]
    recovered.unresolved.clear()
    return found


async def resolve(
    journal: Journal, recovered: Recovered, get_pod: Callable[[str, str], ApiReply], now: float
) -> list[DecisionOutcome]:
    """Give every unresolved decision its outcome, and write it down."""
    outcomes = resolved(recovered, get_pod)
    if outcomes:
        records = [Record(OUTCOME, codec.encode(outcome), outcome.sequence, now) for outcome in outcomes]
        recovered.sequence = await journal.append(records)
    return outcomes


def _outcome(cycle: int, sequence: int, decision: Decision, reply: ApiReply) -> DecisionOutcome:
    pod: Object = codec.unpack(reply.blob) if isinstance(reply, Accepted) else {}
    metadata = section(pod, "metadata")
    same = metadata.get("uid") == decision.uid
    whose = (f"{cycle}/{decision.uid}", sequence, decision.namespace, decision.name, decision.uid)
    match decision:
        case Bind():
            if same and section(pod, "spec").get("nodeName") == decision.node:
                return Bound(*whose, decision.node)
            # Not refused: the answer is unknown. What the pod still needs, the next cycle decides anew.
            return BindTimedOut(*whose, decision.node, LOST)
        case Evict():
            # A pod that is gone, or whose name another one has, left its node, as was decided.
            if not same or metadata.get("deletionTimestamp"):
                return Evicted(*whose)
            return EvictTimedOut(*whose, LOST)
