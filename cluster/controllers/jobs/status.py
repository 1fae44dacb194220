# SPDX-License-Identifier: Apache-2.0
"""A Job's status: counts of its pods, conditions, times."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from pumice.cluster.controllers.jobs.state import PodView
from pumice.cluster.kube.statuses import timestamp
from pumice.config.durations import SECOND_NS, format_duration
from pumice.core.objects.metadata import Object, section

_COUNTS: Final = ("pending", "running", "succeeded", "failed", "terminating", "unknown")


def initial(job: Object, now: float) -> Object:
    """Return the first status of a Job: Pending."""
    return conditioned({"state": {"phase": "Pending"}, "minAvailable": job["spec"].get("minAvailable", 0)}, now)


def counted(status: Object, spec: Object, pods: Iterable[PodView]) -> Object:
    """Return the status after a sync: counts by phase and by task, the Job's own minimum."""
    written = tallied(status, pods)
    written["minAvailable"] = spec.get("minAvailable", 0)
    # Volcano's `syncJob` builds the status anew and leaves this out; only a kill writes it
    written.pop("runningDuration", None)
    return written


def tallied(status: Object, pods: Iterable[PodView]) -> Object:
    """Return counts by phase, terminating pods apart; zeros are left out, as in Go."""
    counts: dict[str, int] = dict.fromkeys(_COUNTS, 0)
    tasks: dict[str, dict[str, int]] = {}
    for pod in pods:
        if pod.deleting:
            counts["terminating"] += 1
            continue
        known = pod.phase.lower() in counts
        counts[pod.phase.lower() if known else "unknown"] += 1
        by_phase = tasks.setdefault(pod.task, {})
        phase = pod.phase if known else "Unknown"
        by_phase[phase] = by_phase.get(phase, 0) + 1
    written = {name: value for name, value in status.items() if name not in counts and name != "taskStatusCount"}
    written.update({name: count for name, count in counts.items() if count})
    if tasks:
        written["taskStatusCount"] = {name: {"phase": dict(sorted(tasks[name].items()))} for name in sorted(tasks)}
    return written


def conditioned(status: Object, now: float) -> Object:
    """Return the status with the time of the change, and the phase as the newest condition (one condition a phase)."""
    at = timestamp(now)
    state = {**status["state"], "lastTransitionTime": at}
    newest = {"status": state["phase"], "lastTransitionTime": at}
    # appendJobCondition in job_controller_actions.go: a phase that comes again moves to the end, so the list stays
    # short.
    older = [each for each in status.get("conditions") or () if each.get("status") != state["phase"]]
    return {**status, "state": state, "conditions": [*older, newest]}


CREATION_REFUSED: Final = "CreationRefused"


def troubled(trouble: str) -> Object:
    """Return the state of a Job whose pods or PodGroup the api refuses to create."""
    return {"reason": CREATION_REFUSED, "message": trouble}


def run_for(status: Object, job: Object, now: float) -> Object:
    """Return the status with the time from the Job's creation to its last change, as Go prints durations."""
    created = datetime.fromisoformat(job["metadata"]["creationTimestamp"]).timestamp()
    changed = section(status, "state").get("lastTransitionTime")
    end = datetime.fromisoformat(changed).timestamp() if changed else now
    # In whole seconds; Volcano has the fraction of its clock, too, when the phase has just changed (metav1.Now in
    # killPods).
    return {**status, "runningDuration": format_duration(max(int(end - created), 0) * SECOND_NS)}
