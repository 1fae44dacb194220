"""What PodGroups say of themselves when a storm is over and the system at rest, against what their pods do.

Source: Volcano `framework/session.go` (jobStatus, getPodGroupPhase).
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Final

from pumice.core.objects.metadata import Object, section
from pumice.proof.storm.invariants.pod_book import PodBook

if TYPE_CHECKING:
    from pumice.proof.storm.invariants.truth import StormTruth

MOST: Final = 3
WAITING: Final = ("Pending", "Inqueue")
"""Which of them it is depends on when there was room to let the group in."""


def wrong_statuses(truth: StormTruth, *, gang: bool) -> list[str]:
    """Groups whose phase, or count of pods that run, is not what the api's pods say. `gang`: the gang plugin is there,
    which finds a group unschedulable that is not ready.
    """
    found = (_wrong(truth, job, gang=gang) for job in _groups(truth))
    return list(islice(filter(None, found), MOST))


def phases(truth: StormTruth) -> dict[str, str]:
    """What each group says, by "namespace/name"."""
    return {job: _status(truth, job).get("phase") or "" for job in _groups(truth)}


def _groups(truth: StormTruth) -> list[str]:
    return sorted(f"{namespace}/{name}" for kind, namespace, name in truth.blobs if kind == "PodGroup")


def _status(truth: StormTruth, job: str) -> Object:
    namespace, _, name = job.partition("/")
    return section(truth.read(truth.blobs["PodGroup", namespace, name]), "status")


def _wrong(truth: StormTruth, job: str, *, gang: bool) -> str:
    needed, queue = truth.groups[job].last
    if queue not in truth.queues or truth.queues[queue].last is None:
        return ""  # no session has such a job, so nobody says anything of it
    status = _status(truth, job)
    doing = Counter(map(_state, truth.members(job)))
    right = _phases(doing, needed, gang=gang)
    phase, running = status.get("phase") or "", status.get("running") or 0
    if phase in right and running == doing["Running"]:
        return ""
    return f"group {job} says {phase}, {running} running; it is {' or '.join(right)}, {doing['Running']} running"


def _state(pod: PodBook) -> str:
    """Its phase, but for those on their way out and those that have not started; some wait, and ask for nothing."""
    if pod.ended or (pod.phase == "Running" and not pod.deleting):
        return pod.phase
    if pod.deleting:
        return "Releasing"
    if pod.node:
        return "Bound"
    return "Pending" if any(amount for name, amount in pod.requests.items() if name != "pods") else "BestEffort"


def _phases(doing: Counter[str], needed: int, *, gang: bool) -> tuple[str, ...]:
    """Those that it may be in, by how many pods do what."""
    ended = doing["Succeeded"] + doing["Failed"]
    ready = doing["Running"] + doing["Bound"] + doing["Succeeded"] + doing["BestEffort"]
    scheduled = doing["Running"] + doing["Bound"] + ended
    if gang and doing["Running"] and ready < needed:
        return ("Unknown",)
    if scheduled < needed:
        return WAITING
    return ("Completed",) if scheduled == ended else ("Running",)
