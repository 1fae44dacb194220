"""What became of a pod, in a sentence."""

from __future__ import annotations

from pumice.cluster.controllers.unserved.kinds import SERVED
from pumice.core.messages.decisions import Evict
from pumice.core.objects.pod import Task
from pumice.core.session.trail.records import FITS, Look
from pumice.questions.adviser.judge import nobody_is


def of_other(pod: str, task: Task) -> tuple[str, str]:
    """What became of a pod that is not Volcano's is for its own scheduler to say."""
    if task.scheduler not in SERVED:
        return "NoScheduler", nobody_is(task.scheduler, "the pod asks")
    reason, message = task.condition or ("Waiting", "it has not looked at the pod yet")
    return reason, f"{pod} is {task.scheduler}'s: {message}"


def placed(pod: str, node: str, look: Look | None) -> str:
    """Where, and why there, as far as was seen."""
    if look is None:
        return f"{pod} was placed on {node}"
    if look.nominated == node:
        return f"{pod} was placed on {node}: it was nominated, for room had been made there; no other node was asked"
    totals, fitting = look.totals(), look.by_reason().get(FITS, 0)
    nodes = f"{look.looked_at} nodes" + (" that were looked at" if look.looked_at < look.nodes else "")
    if node not in totals and len(look.fitting) == 1:
        fit = "fit, one of them now" if fitting > 1 else "fits"
        return f"{pod} was placed on {node}: {fitting} of {nodes} {fit}, and a single one is not scored"
    if node not in totals:
        return f"{pod} was placed on {node}, one of {fitting} of {nodes} that could take it"
    best = sum(total == totals[node] for total in totals.values())
    among = f", the first by name of {best} with that score" if best > 1 else ""
    return f"{pod} was placed on {node}: {fitting} of {nodes} fit, it scored {totals[node]:g}{among}"


def evicted(pod: str, evict: Evict) -> str:
    """From where, by whom and for whom."""
    room = f" to make room for {evict.preemptor}" if evict.preemptor else ""
    score = f", score {evict.score:g}" if evict.score else ""
    return f"{pod} was evicted from {evict.node} by {evict.action or 'the scheduler'}{room}: {evict.reason}{score}"
