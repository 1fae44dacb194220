"""A reason for every task that a one-shot run leaves pending, those that no session ever saw included."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from actors.controllers.jobs.state import controlling_job
from core.messages.decisions import CycleReport, CycleResult, PendingReason
from core.objects.metadata import section
from core.objects.pod import GROUP_NAME, is_strange
from core.session.fit import SCHEDULABLE, UNSCHEDULABLE
from pumice.measures.jobs import OVER
from pumice.oneshot.between import Object, object_key
from pumice.oneshot.prepare import stored_as

if TYPE_CHECKING:
    from core.session.trail.records import Ended
    from core.session.trail.trail import Trail

SCHEDULER: Final = "volcano"


def left_pending(objects: Iterable[Object], result: CycleResult) -> dict[str, dict[str, str]]:
    """Reason and message by "ns/pod", after a cycle over exactly these objects.

    Pods of other schedulers are not tasks and are left out, unless they name a PodGroup.
    """
    listed = list(objects)
    groups = {object_key(obj): obj for obj in listed if obj["kind"] == "PodGroup"}
    queues = {obj["metadata"]["name"] for obj in listed if obj["kind"] == "Queue"}
    placed = {f"{bind.namespace}/{bind.name}" for bind in result.binds}
    reasons: dict[str, dict[str, str]] = {}
    for obj in listed:
        key = object_key(obj)
        if obj["kind"] == "Pod" and key not in placed and _waits(obj):
            found = result.report.pending.get(key) or _promised(key, result.report) or _unseen(obj, groups, queues)
            reasons[key] = {"reason": found.reason, "message": found.message}
    return dict(sorted(reasons.items()))


def _promised(key: str, report: CycleReport) -> PendingReason | None:
    """In the words of the pod's condition: it was promised room, or had some without its gang being whole."""
    if node := report.pipelined.get(key):
        where = f"can possibly be assigned to {node}, once resource is released and minAvailable is satisfied"
        return PendingReason(UNSCHEDULABLE, f"Pod {key} {where}")
    if node := report.uncommitted.get(key):
        where = f"can possibly be assigned to {node}, once minAvailable is satisfied"
        return PendingReason(SCHEDULABLE, f"Pod {key} {where}")
    return None


def _waits(pod: Object) -> bool:
    spec, status = section(pod, "spec"), section(pod, "status")
    if spec.get("nodeName") or status.get("phase", "Pending") != "Pending":
        return False
    if pod["metadata"].get("deletionTimestamp"):
        return False
    return spec.get("schedulerName", SCHEDULER) == SCHEDULER or bool(group_of(pod))


def waiting_jobs(objects: Iterable[Object]) -> frozenset[str]:
    """The jobs ("namespace/PodGroup") that have a pod without a node."""
    pods = (obj for obj in objects if obj["kind"] == "Pod" and _waits(obj))
    return frozenset(f"{pod['metadata'].get('namespace') or ''}/{group_of(pod)}" for pod in pods)


def without_pods(objects: Iterable[Object]) -> dict[str, dict[str, str]]:
    """Reason and message of each Volcano Job ("namespace/name") that is not over and of which there is no pod."""
    listed = list(objects)
    owners = (controlling_job(obj["metadata"]) for obj in listed if obj["kind"] == "Pod")
    there = {owner["uid"] for owner in owners if owner is not None}
    jobs = (obj for obj in listed if stored_as(obj) == "Job" and obj["metadata"].get("uid") not in there)
    states = {object_key(job): section(section(job, "status"), "state") for job in jobs}
    return {
        name: {"reason": str(state.get("reason") or "NoPods"), "message": str(state.get("message") or "it has no pods")}
        for name, state in sorted(states.items())
        if state.get("phase") not in OVER
    }


def endings(trail: Trail, pending: Iterable[str], objects: Iterable[Object]) -> dict[str, list[str]]:
    """By job with a pod among `pending` ("ns/pod"): where each action that looked at it ended, in order."""
    left = set(pending)
    jobs = waiting_jobs(obj for obj in objects if obj["kind"] == "Pod" and object_key(obj) in left)
    return {job: list(dict.fromkeys(map(_said, trail.of_job(job)))) for job in sorted(jobs)}


def _said(ended: Ended) -> str:
    return f"{ended.action}: {ended.ending}" + (f" ({ended.detail})" if ended.detail else "")


def group_of(pod: Object) -> str:
    """The PodGroup that a pod names; empty when it names none."""
    return str(section(pod["metadata"], "annotations").get(GROUP_NAME) or "")


def _unseen(pod: Object, groups: Mapping[str, Object], queues: set[str]) -> PendingReason:
    """Why a pod is not a task of any session."""
    name = group_of(pod)
    if is_strange(section(pod, "spec")):
        asked = section(pod, "spec")["schedulerName"]
        return PendingReason("NoScheduler", f"the pod asks for scheduler {asked}, which nobody here is")
    if not name:
        return PendingReason(
            "NoPodGroup",
            f"the pod names no PodGroup (annotation {GROUP_NAME}), and no controller runs here to make one",
        )
    key = f"{pod['metadata'].get('namespace') or ''}/{name}"
    group = groups.get(key)
    if group is None:
        return PendingReason("PodGroupNotFound", f"PodGroup {key} is not among the objects")
    queue = str(section(group, "spec").get("queue") or "default")
    if queue not in queues:
        return PendingReason("QueueNotFound", f"queue {queue!r} of PodGroup {key} is not among the objects")
    return PendingReason("NotConsidered", f"no action of this cycle looked at PodGroup {key}")
