"""Which pods a Job is to have more or fewer of, and what a new one is like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from pumice.cluster.controllers.batch.counting import JobProgress, is_indexed, replaces_failed_only
from pumice.cluster.controllers.batch.failures import FAILURES, IGNORED, again_at, failures_before, verdict_on
from pumice.cluster.controllers.batch.indexes import INDEX, index_of
from pumice.cluster.controllers.pods_of import least_missed, pod_from
from pumice.core.objects.metadata import Object

VARIABLE: Final = "JOB_COMPLETION_INDEX"


@dataclass(slots=True)
class PodChange:
    """`again_at`: pods are wanting, and may come no sooner (0: nothing waits)."""

    new: list[Object] = field(default_factory=list[Object])
    surplus: list[Object] = field(default_factory=list[Object])
    again_at: float = 0.0


def wanted_active(job: Object, count: JobProgress) -> int:
    """How many pods are to run at a time now."""
    spec = job["spec"]
    most: int = spec["parallelism"]
    if spec.get("completions") is None:  # a queue of work: once one has succeeded, no more are made
        return min(len(count.active), most) if count.succeeded else most
    left: int = spec["completions"] - count.succeeded - len(count.failed_indexes)
    return max(min(left, most), 0)


def changed(job: Object, count: JobProgress, now: float) -> PodChange:
    """What is to be made and taken away."""
    wanted, change = wanted_active(job, count), PodChange()
    change.surplus = _surplus(job, count, wanted)
    taken = {pod["metadata"]["uid"] for pod in change.surplus}
    active = [pod for pod in count.active if pod["metadata"]["uid"] not in taken]
    coming = len(count.terminating) if replaces_failed_only(job) else 0
    missing = wanted - len(active) - coming
    if missing <= 0:
        return change
    if is_indexed(job):
        return _with_indexes(job, count, change, active, missing, now)
    at = again_at(count.failed_pods, count.succeeded_pods)
    if at > now:
        change.again_at = at
    else:
        change.new = [pod_from(job["spec"]["template"], job) for _ in range(missing)]
    return change


def _surplus(job: Object, count: JobProgress, wanted: int) -> list[Object]:
    """Pods whose index is none, is done or has another pod; then those that are least missed."""
    found: list[Object] = []
    kept = count.active
    if is_indexed(job):
        below: int = job["spec"].get("completions") or 0
        seen = count.done | count.failed_indexes
        kept = list[Object]()
        for pod in sorted(count.active, key=least_missed, reverse=True):
            index = index_of(pod)
            if index is None or index >= below or index in seen:
                found.append(pod)
            else:
                seen = seen | {index}
                kept.append(pod)
    return found + sorted(kept, key=least_missed)[: max(len(kept) - wanted, 0)]


def _with_indexes(
    job: Object, count: JobProgress, change: PodChange, active: Sequence[Object], missing: int, now: float
) -> PodChange:
    """The lowest indexes that are free; each waits for its own failures where each has its own limit."""
    busy = active if not replaces_failed_only(job) else [*active, *count.terminating]
    taken = count.done | count.failed_indexes | {index for pod in busy if (index := index_of(pod)) is not None}
    alone = job["spec"].get("backoffLimitPerIndex") is not None
    waits: list[float] = []
    free = (index for index in range(job["spec"].get("completions") or 0) if index not in taken)
    for index in islice(free, missing):
        failed = [pod for pod in count.failed_pods if not alone or index_of(pod) == index]
        at = again_at(failed, () if alone else count.succeeded_pods)
        if at > now:
            waits.append(at)
        else:
            change.new.append(_indexed_pod(job, index, failed if alone else None))
    change.again_at = min(waits, default=0.0)
    return change


def _indexed_pod(job: Object, index: int, failed: Sequence[Object] | None) -> Object:
    """`failed`: pods of its index, where it has a limit of its own."""
    pod = pod_from(job["spec"]["template"], job)
    meta, spec = pod["metadata"], pod["spec"]
    meta["generateName"] = f"{job['metadata']['name']}-{index}-"
    meta["annotations"][INDEX] = meta["labels"][INDEX] = str(index)
    if failed is not None:
        last = max(failed, key=lambda each: failures_before(each) + failures_before(each, IGNORED), default=None)
        counts = last is not None and verdict_on(job, last).counts
        meta["annotations"][FAILURES] = str((failures_before(last) + counts) if last else 0)
        ignored = (failures_before(last, IGNORED) + (not counts)) if last else 0
        if ignored:
            meta["annotations"][IGNORED] = str(ignored)
    spec["hostname"] = f"{job['metadata']['name']}-{index}"
    told = {"name": VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}}
    for group in ("initContainers", "containers"):
        if spec.get(group):
            spec[group] = [_told(container, told) for container in spec[group]]
    return pod


def _told(container: Object, variable: Object) -> Object:
    named: list[Object] = container.get("env") or []
    if any(each.get("name") == VARIABLE for each in named):
        return container
    return {**container, "env": [*named, variable]}
