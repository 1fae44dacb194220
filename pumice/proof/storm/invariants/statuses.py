# SPDX-License-Identifier: Apache-2.0
"""Statuses of PodGroups and of Volcano Jobs, against the states of their pods.

Source: Volcano `framework/session.go` (jobStatus, getPodGroupPhase).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final

from pumice.core.objects.metadata import Object, section
from pumice.proof.storm.invariants.pod_book import PodBook

if TYPE_CHECKING:
    from pumice.core.messages.events import Mutation
    from pumice.proof.storm.invariants.truth import StormTruth

# --- Counts of Volcano Jobs
# The controller sees pods a little after they change: what it says must have been so at some moment of the last
# LAG_S seconds, counter by counter; at rest it must be so.

COUNTERS: Final = ("pending", "running", "succeeded", "failed", "terminating", "unknown")
LAG_S: Final = 20.0
"""Greatest age of the controller's count: two appends in a row may be slow for 8 s each."""
JOB_API: Final = "batch.volcano.sh/"

Counts = tuple[int, ...]


@dataclass(slots=True)
class _JobBook:
    """The pods of a job. `pods`: by name, where each counts; `was`: (time, counts) of the last LAG_S seconds and the
    one before them.
    """

    pods: dict[str, str] = field(default_factory=dict[str, str])
    was: list[tuple[float, Counts]] = field(default_factory=list[tuple[float, Counts]])

    def counts(self) -> Counts:
        """Return the counts by COUNTERS."""
        counted = Counter(self.pods.values())
        return tuple(counted[name] for name in COUNTERS)

    def note(self, at: float) -> None:
        """Note a change at this moment."""
        self.was.append((at, self.counts()))
        past = len(list(takewhile(lambda entry: entry[0] <= at - LAG_S, self.was)))
        del self.was[: max(past - 1, 0)]


class JobCounts:
    """Counts pods by the uid of the Job that controls them."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._books: dict[str, _JobBook] = {}
        self._owners: dict[str, str] = {}
        self._said: dict[str, Counts] = {}

    def begin(self, truth: StormTruth) -> None:
        """Start from the pods that are there."""
        for pod in truth.all_of("Pod"):
            self._pod(pod, deleted=False)

    def see(self, mutation: Mutation, obj: Object) -> Iterator[str]:
        """Take over a pod, or words for every counter of a Job that is not what its pods were."""
        if mutation.kind == "Pod":
            self._pod(obj, deleted=mutation.type == "DELETED")
        elif mutation.type == "MODIFIED" and obj["apiVersion"].startswith(JOB_API):
            if not self._is_said_anew(obj):
                return
            book = self._books.get(obj["metadata"]["uid"], _JobBook())
            since = self._clock() - LAG_S
            past = [counts for at, counts in book.was if at <= since][-1:] or [(0,) * len(COUNTERS)]
            seen = [*past, *(counts for at, counts in book.was if at > since)]
            yield from _wrong_count(obj, [(min(each), max(each)) for each in zip(*seen, strict=True)])

    def _is_said_anew(self, job: Object) -> bool:
        """Return whether the counters are new: a write of another field keeps them, and they may be old by then."""
        uid, status = job["metadata"]["uid"], section(job, "status")
        said = tuple(int(status.get(name) or 0) for name in COUNTERS)
        before, self._said[uid] = self._said.get(uid), said
        return said != before

    def wrong_at_rest(self, truth: StormTruth) -> Iterator[str]:
        """Yield jobs whose status disagrees with their pods when nothing changes any more.

        Volcano's controller counts no pods while the PodGroup is not admitted, or not again (`syncJob`, `syncTask`):
        until then a Job says what was so before.
        """
        admitted = {_job_of(group["metadata"]) for group in truth.all_of("PodGroup") if _is_admitted(group)}
        for job in truth.all_of("Job"):
            if job["apiVersion"].startswith(JOB_API) and job["metadata"]["uid"] in admitted:
                counts = self._books.get(job["metadata"]["uid"], _JobBook()).counts()
                yield from _wrong_count(job, [(each, each) for each in counts])

    def _pod(self, pod: Object, *, deleted: bool) -> None:
        """Count a pod: one that is made anew under its name, for the same Job, takes the place of the one before."""
        meta = pod["metadata"]
        name = f"{meta['namespace']}/{meta['name']}"
        job = "" if deleted else _job_of(meta)
        before = self._owners.pop(name, "")
        if before and before != job:
            self._books[before].pods.pop(name, None)
            self._books[before].note(self._clock())
        if job:
            self._owners[name] = job
            book, state = self._books.setdefault(job, _JobBook()), _state(pod)
            if book.pods.get(name) != state:
                book.pods[name] = state
                book.note(self._clock())


def _job_of(meta: Object) -> str:
    owners = meta.get("ownerReferences") or ()
    return next((each["uid"] for each in owners if each.get("controller") and each["kind"] == "Job"), "")


def _is_admitted(group: Object) -> bool:
    return section(group, "status").get("phase") not in (None, "", "Pending")


def _state(pod: Object) -> str:
    if "deletionTimestamp" in pod["metadata"]:
        return "terminating"
    phase: str = (section(pod, "status").get("phase") or "Pending").lower()
    return phase if phase in COUNTERS else "unknown"


def _wrong_count(job: Object, bounds: list[tuple[int, int]]) -> Iterator[str]:
    status, meta = section(job, "status"), job["metadata"]
    for name, (low, high) in zip(COUNTERS, bounds, strict=True):
        said = status.get(name) or 0
        if not low <= said <= high:
            right = f"{low}" if low == high else f"{low} to {high}"
            yield f"job {meta['namespace']}/{meta['name']} says {said} {name}, of its pods there are {right}"


MOST: Final = 3
WAITING: Final = ("Pending", "Inqueue")
"""Phases of a waiting group: the right one depends on when there was room to admit it."""


def wrong_statuses(truth: StormTruth, *, gang: bool) -> list[str]:
    """Yield groups whose phase, or count of running pods, disagrees with the api's pods. `gang`: the gang plugin is
    configured, which finds a group unschedulable that is not ready.
    """
    found = (_wrong(truth, job, gang=gang) for job in _groups(truth))
    return list(islice(filter(None, found), MOST))


def phases(truth: StormTruth) -> dict[str, str]:
    """Return the phase of each group, by "namespace/name"."""
    return {job: _status(truth, job).get("phase") or "" for job in _groups(truth)}


def _groups(truth: StormTruth) -> list[str]:
    return sorted(f"{namespace}/{name}" for kind, namespace, name in truth.blobs if kind == "PodGroup")


def _status(truth: StormTruth, job: str) -> Object:
    namespace, _, name = job.partition("/")
    return section(truth.read(truth.blobs["PodGroup", namespace, name]), "status")


def _wrong(truth: StormTruth, job: str, *, gang: bool) -> str:
    needed, queue = truth.groups[job].last
    if queue not in truth.queues or truth.queues[queue].last is None:
        return ""  # no session has such a job, so no actor reports on it
    status = _status(truth, job)
    doing = Counter(map(_group_state, truth.members(job)))
    right = _phases(doing, needed, gang=gang)
    phase, running = status.get("phase") or "", status.get("running") or 0
    if phase in right and running == doing["Running"]:
        return ""
    return f"group {job} says {phase}, {running} running; it is {' or '.join(right)}, {doing['Running']} running"


def _group_state(pod: PodBook) -> str:
    """Return the group's phase, except for pods being deleted and those that have not started; whether some wait, and
    request nothing.
    """
    if pod.ended or (pod.phase == "Running" and not pod.deleting):
        return pod.phase
    if pod.deleting:
        return "Releasing"
    if pod.node:
        return "Bound"
    return "Pending" if any(amount for name, amount in pod.requests.items() if name != "pods") else "BestEffort"


def _phases(doing: Counter[str], needed: int, *, gang: bool) -> tuple[str, ...]:
    """Return those that it may be in, by how many pods do what."""
    ended = doing["Succeeded"] + doing["Failed"]
    ready = doing["Running"] + doing["Bound"] + doing["Succeeded"] + doing["BestEffort"]
    scheduled = doing["Running"] + doing["Bound"] + ended
    if gang and doing["Running"] and ready < needed:
        return ("Unknown",)
    if scheduled < needed:
        return WAITING
    return ("Completed",) if scheduled == ended else ("Running",)
