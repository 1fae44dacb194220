# SPDX-License-Identifier: Apache-2.0
"""The progress of a Job: its counted pods, and the counted pods that have gone since.

Kubernetes holds an ended pod by a finalizer until it is counted; here the controller remembers what went, and after a
restart takes the Job's status for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct
from msgspec import field as made_of

from pumice.cluster.controllers.batch.failures import is_counted, verdict_on
from pumice.cluster.controllers.pods_of import is_active, is_leaving, phase
from pumice.cluster.kube.budgets import is_ready
from pumice.core.life.task import ENDED_PHASES
from pumice.core.objects.metadata import Object, section, text_map
from pumice.core.texts import whole_number

# --- Sets of indexes: `0,3-5,9`

INDEX: Final = "batch.kubernetes.io/job-completion-index"


def written_indexes(indexes: Iterable[int]) -> str:
    """Return the indexes as text, in order; two neighbours as two numbers, three or more as a range."""
    parts: list[str] = []
    run: list[int] = []
    for index in [*sorted(set(indexes)), None]:
        if run and (index is None or index != run[-1] + 1):
            # "1,2" and "1-3", as Kubernetes writes completedIndexes: clients compare the text.
            parts += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(each) for each in run]
            run = []
        if index is not None:
            run.append(index)
    return ",".join(parts)


def read_indexes(text: object, below: int) -> set[int]:
    """Return the indexes of a text, those below a number; malformed parts are skipped."""
    found: set[int] = set()
    for part in text.split(",") if isinstance(text, str) else ():
        first, _, last = part.partition("-")
        low, high = whole_number(first), whole_number(last or first)
        if low is not None and high is not None:
            # Cut at the number of completions: a status with "0-999999999" would fill memory.
            found.update(range(low, min(high + 1, below)))
    return found


def index_of(pod: Object) -> int | None:
    """Return the index that a pod has."""
    return whole_number(text_map(pod["metadata"].get("annotations")).get(INDEX, ""))


class GonePods(Struct):
    """Pods of a Job that have gone, by how they were counted; `spared`: uids of those that the controller itself
    removed, which do not count.
    """

    succeeded: int = 0
    failed: int = 0
    spared: set[str] = made_of(default_factory=set[str])


@dataclass(slots=True)
class JobProgress:
    """The progress of a Job. `done`, `failed_indexes`: indexes that have succeeded, or failed for good (of an Indexed
    Job).
    """

    active: list[Object] = field(default_factory=list[Object])
    terminating: list[Object] = field(default_factory=list[Object])
    failed_pods: list[Object] = field(default_factory=list[Object])
    succeeded_pods: list[Object] = field(default_factory=list[Object])
    succeeded: int = 0
    failed: int = 0
    ready: int = 0
    done: set[int] = field(default_factory=set[int])
    failed_indexes: set[int] = field(default_factory=set[int])


def is_indexed(job: Object) -> bool:
    """Return whether the Job's pods have indexes."""
    return bool(job["spec"].get("completionMode") == "Indexed")


def replaces_failed_only(job: Object) -> bool:
    """Return whether a deleted pod counts, and is replaced, only once it has failed."""
    spec = job["spec"]
    return bool((spec.get("podReplacementPolicy") or ("Failed" if spec.get("podFailurePolicy") else "")) == "Failed")


def has_failed(job: Object, pod: Object) -> bool:
    """Return whether a pod has failed. A pod that is being deleted has failed too, unless only failed ones are
    replaced.
    """
    if phase(pod) == "Failed":
        return True
    # With podReplacementPolicy Failed a terminating pod counts at its end, so that no replacement runs beside it.
    return is_leaving(pod) and phase(pod) != "Succeeded" and not replaces_failed_only(job)


def first_gone(job: Object, pods: Sequence[Object]) -> GonePods:
    """Return the counts of pods that went before the Job was first seen: the status counts more than exist."""
    status = section(job, "status")
    succeeded = sum(phase(pod) == "Succeeded" for pod in pods)
    failed = sum(has_failed(job, pod) and is_counted(job, pod) for pod in pods)
    # A restarted controller sees fewer pods than it has counted; the difference went while it was away.
    return GonePods(max((status.get("succeeded") or 0) - succeeded, 0), max((status.get("failed") or 0) - failed, 0))


def note_gone(gone: GonePods, job: Object, pod: Object) -> None:
    """Note that a pod was removed. One that had not ended counts as failed, unless it was spared.

    A kubelet says so before the pod goes, and then rules about its conditions are asked.
    """
    uid = pod["metadata"]["uid"]
    if uid in gone.spared:
        gone.spared.discard(uid)
    elif phase(pod) == "Succeeded":
        gone.succeeded += 1
    elif is_counted(job, {**pod, "status": {**section(pod, "status"), "phase": "Failed"}}):
        gone.failed += 1


def counted(job: Object, pods: Sequence[Object], gone: GonePods) -> JobProgress:
    """Return the Job's progress."""
    count = JobProgress(succeeded=gone.succeeded, failed=gone.failed)
    for pod in pods:
        if is_leaving(pod) and phase(pod) not in ENDED_PHASES:
            count.terminating.append(pod)
        # Taken away by the controller itself: neither a failure nor active.
        if pod["metadata"]["uid"] in gone.spared:
            continue
        if is_active(pod):
            count.active.append(pod)
            count.ready += is_ready(pod)
        elif phase(pod) == "Succeeded":
            count.succeeded_pods.append(pod)
        elif has_failed(job, pod):
            count.failed_pods.append(pod)
    count.succeeded += len(count.succeeded_pods)
    count.failed += sum(is_counted(job, pod) for pod in count.failed_pods)
    if is_indexed(job):
        _count_indexes(job, count)
    return count


def _count_indexes(job: Object, count: JobProgress) -> None:
    """Count every index once; one that has succeeded before, or failed for good, is in the status."""
    spec, status = job["spec"], section(job, "status")
    below = spec.get("completions") or 0
    count.done = read_indexes(status.get("completedIndexes"), below)
    count.done |= {index for pod in count.succeeded_pods if (index := index_of(pod)) is not None and index < below}
    # Not pods: an index that succeeded twice, after a controller's restart, is one success.
    count.succeeded = len(count.done)
    count.failed_indexes = read_indexes(status.get("failedIndexes"), below) - count.done
    for pod in count.failed_pods:
        index = index_of(pod)
        if index is not None and index < below and index not in count.done and verdict_on(job, pod).fails_index:
            count.failed_indexes.add(index)
