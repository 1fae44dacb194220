# SPDX-License-Identifier: Apache-2.0
"""A reason for every task that a one-shot run leaves pending, also for those that no session saw."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypedDict

import msgspec

from pumice.belonging import group_of, owner_of
from pumice.cluster.api.kinds import kind_of
from pumice.cluster.controllers.pods_of import controller_of
from pumice.cluster.controllers.unserved import SCHEDULER, SERVED
from pumice.core.messages.decisions import CycleReport, CycleResult, PendingReason
from pumice.core.objects.metadata import Object, section
from pumice.core.objects.parts import VOLCANO_JOB
from pumice.core.session.fit import SCHEDULABLE, UNSCHEDULABLE
from pumice.questions.adviser.reasons import WaitReason
from pumice.questions.measures.jobs import OVER
from pumice.questions.oneshot.between import object_key
from pumice.questions.oneshot.identity import stored_as

if TYPE_CHECKING:
    from pumice.core.session.trail.records import Ended
    from pumice.core.session.trail.trail import Trail
    from pumice.questions.adviser.wait_reasons import WaitReasons


class LeftPending(msgspec.Struct, frozen=True, kw_only=True):
    """Explanation of a pod that is left pending: the code of the `reason`, its `class`, and a sentence; `wait`: the
    whole reason. `alias`: the reason of the pod's condition, where that is another word.
    """

    reason: str
    message: str
    wait_class: str = msgspec.field(name="class")
    alias: str
    wait: WaitReason | None


class WithoutPods(TypedDict):
    """Explanation of a Job that has no pods."""

    reason: str
    message: str


def left_pending(objects: Iterable[Object], result: CycleResult, reasons: WaitReasons) -> dict[str, LeftPending]:
    """Return why by "ns/pod", after a cycle over exactly these objects.

    Pods of schedulers that do not run here are left out, unless they name a PodGroup.
    """
    listed = list(objects)
    placed = {f"{bind.namespace}/{bind.name}" for bind in result.binds}
    found: dict[str, LeftPending] = {}
    for obj in listed:
        key = object_key(obj)
        if obj["kind"] == "Pod" and key not in placed and _waits(obj):
            said = result.report.pending.get(key) or _promised(key, result.report) or PendingReason("", "")
            if said.reason or key in reasons.pods:
                found[key] = _told(said, reasons.pods.get(key))
    return dict(sorted(found.items()))


def _told(said: PendingReason, wait: WaitReason | None) -> LeftPending:
    if wait is None:
        return LeftPending(reason=said.reason, message=said.message, wait_class="", alias="", wait=None)
    alias = said.reason if said.reason != wait.code else ""
    message = wait.before(said.message)
    return LeftPending(reason=wait.code, message=message, wait_class=wait.wait_class, alias=alias, wait=wait)


def _promised(key: str, report: CycleReport) -> PendingReason | None:
    """Return the reason in the words of the pod's condition: it was promised room, or had some without its gang being
    whole."""
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
    return spec.get("schedulerName", SCHEDULER) in SERVED or bool(group_of("", pod))


def waiting_jobs(objects: Iterable[Object]) -> frozenset[str]:
    """Return the jobs ("namespace/PodGroup") that have a pod without a node."""
    pods = (obj for obj in objects if obj["kind"] == "Pod" and _waits(obj))
    return frozenset(group_of(pod["metadata"].get("namespace") or "", pod) for pod in pods)


def without_pods(objects: Iterable[Object]) -> dict[str, WithoutPods]:
    """Return reason and message of each Volcano Job ("namespace/name") that has not ended and has no pod."""
    listed = list(objects)
    owners = (controller_of(obj, VOLCANO_JOB) for obj in listed if obj["kind"] == "Pod")
    there = {owner["uid"] for owner in owners if owner is not None}
    jobs = (obj for obj in listed if stored_as(obj) == "Job" and obj["metadata"].get("uid") not in there)
    states = {object_key(job): section(section(job, "status"), "state") for job in jobs}
    found: dict[str, WithoutPods] = {
        name: {"reason": str(state.get("reason") or "NoPods"), "message": str(state.get("message") or "it has no pods")}
        for name, state in sorted(states.items())
        if state.get("phase") not in OVER
    }
    absent: dict[str, WithoutPods] = {
        owner_of(group): {"reason": "NoPods", "message": said} for group, said in makers_absent(listed)
    }
    return found | absent


def makers_absent(objects: Sequence[Object]) -> list[tuple[Object, str]]:
    """Return PodGroups without pods whose maker is not among the objects, each with a sentence that says so.

    A controller makes the pods of a Job only once its PodGroup has been admitted: of a Job that waits for that, a dump
    without the Job holds nothing to place.
    """
    named = {group_of(pod["metadata"].get("namespace") or "", pod) for pod in objects if pod["kind"] == "Pod"}
    there = {(stored_as(obj), object_key(obj)) for obj in objects}
    found: list[tuple[Object, str]] = []
    for group in objects:
        owner = next((one for one in group["metadata"].get("ownerReferences") or () if one.get("controller")), None)
        if group["kind"] != "PodGroup" or owner is None or object_key(group) in named:
            continue
        if section(group, "status").get("phase") != "Completed" and (stored_as(owner), owner_of(group)) not in there:
            row = kind_of(owner.get("apiVersion"), owner.get("kind"))
            more = f": give {row.resource} as well" if row is not None else ""
            who = f"{owner.get('kind')} {owner_of(group)}"
            found.append((group, f"it has no pods, and {who}, which makes them, is not in the input{more}"))
    return found


def endings(trail: Trail, pending: Iterable[str], objects: Iterable[Object]) -> dict[str, list[str]]:
    """Return by job with a pod among `pending` ("ns/pod"): where each action that looked at it ended, in order."""
    left = set(pending)
    jobs = waiting_jobs(obj for obj in objects if obj["kind"] == "Pod" and object_key(obj) in left)
    return {job: list(dict.fromkeys(map(_said, trail.of_job(job)))) for job in sorted(jobs)}


def _said(ended: Ended) -> str:
    return f"{ended.action}: {ended.ending}" + (f" ({ended.detail})" if ended.detail else "")
