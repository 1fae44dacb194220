# SPDX-License-Identifier: Apache-2.0
"""A row for each job: when it came, was admitted, ran and ended, how long it waited, and its losses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pumice.belonging import queue_of
from pumice.core.objects.metadata import Object, section
from pumice.questions.measures.fairness import bounded_slowdown
from pumice.questions.measures.lives import Listener, PodLife

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.questions.measures.lives import GroupLife

OVER: Final = ("Completed", "Failed", "Terminated", "Aborted")
"""Phases in which a Volcano Job makes no pods any more."""
KILLING: Final = ("Restarting", "Aborting", "Aborted", "Terminating", "Terminated", "Failed")
"""Phases in which a Volcano Job ends pods that have not done their work."""

GPU: Final = "/gpu"
"""Suffix of the names of resources that are whole graphics cards."""
MILLI_GPU: Final = "/gpu-milli"
"""And those that are thousandths of one."""


@dataclass(slots=True)
class JobRow:
    """Outcome of one job. Times are seconds after the beginning of the run; None: not (yet).

    A job is a Volcano Job, else the owner of a PodGroup, else the PodGroup, else a pod without an owner. `pods`: names
    of pods it had, `attempts`: pods, counting one that was made again. `cpu` (cores), `memory` (bytes) and `gpu`
    (cards): what all its pods ask for. `started`: when for the first time as many pods ran at the same time as it needs
    (`min_available`). `ended`: when its last pod had, if it has none left and makes no more. `wait_s` from its
    submission to its start, which is `admission_s`, until its PodGroup was let in, and `scheduling_s`, from there on;
    `run_s` from its start to its end, `response_s` wait and run; `bounded_slowdown` is `fairness.bounded_slowdown`.
    `evictions`: pods that the scheduler took off their nodes. `killed`: pods beside those that a restart, an abort or
    the failure of the job ended, or that were made again. `restarts`: how often the job began again. `lost_*`: what
    pods had run for that were evicted, failed or were killed, × what they held.
    """

    job: str
    queue: str = ""
    user: str = ""
    priority_class: str = ""
    state: str = "Pending"
    pods: int = 0
    attempts: int = 0
    min_available: int = 1
    cpu: float = 0.0
    memory: float = 0.0
    gpu: float = 0.0
    submitted: float = 0.0
    admitted: float | None = None
    first_bound: float | None = None
    last_bound: float | None = None
    started: float | None = None
    ended: float | None = None
    wait_s: float | None = None
    admission_s: float | None = None
    scheduling_s: float | None = None
    run_s: float | None = None
    response_s: float | None = None
    bounded_slowdown: float | None = None
    evictions: int = 0
    killed: int = 0
    restarts: int = 0
    lost_pod_s: float = 0.0
    lost_cpu_s: float = 0.0
    lost_gpu_s: float = 0.0


@dataclass(slots=True)
class JobLife:
    """A job while any part of it exists. `row` has seconds since the epoch until it is finished. `owners`: its
    PodGroups; `size`: the number of pods that a Volcano Job requests at a time, None without a Volcano Job; `there`:
    the number of its pods that are not deleted.
    """

    row: JobRow
    owners: set[str] = field(default_factory=set[str])
    names: set[str] = field(default_factory=set[str])
    undone: dict[str, PodLife] = field(default_factory=dict[str, PodLife])
    retries: int | None = None
    there: int = 0
    live: int = 0
    running: int = 0
    failed: int = 0
    last_end: float | None = None
    phase: str = ""
    size: int | None = None

    @property
    def goes_on(self) -> bool:
        """Return whether it is a Volcano Job that is not over: it makes lost pods again."""
        return self.size is not None and self.phase not in OVER


class Jobs(Listener):
    """Joins the lives of pods to jobs, and yields the row of each job that has nothing left.

    `done` is called with each row, in the order in which they end, and at the end of the journal with the rest.
    """

    def __init__(self, done: Callable[[JobRow], None]) -> None:
        self.lives: dict[str, JobLife] = {}
        self._done = done
        self.began = 0.0

    def close(self) -> None:
        """Close at the end of the journal: yield the remaining jobs, in the order of submission."""
        for life in sorted(self.lives.values(), key=lambda one: (one.row.submitted, one.row.job)):
            self._finish(life)
        self.lives.clear()

    # --- owners

    def group(self, group: GroupLife) -> None:
        """Note a PodGroup of the job that came or changed."""
        life = self._job(group.job, group.created)
        life.owners.add(f"{group.namespace}/{group.name}")
        row = life.row
        row.queue, row.priority_class = group.queue, group.priority_class or row.priority_class
        if life.phase == "":
            row.min_available = group.min_member
        row.admitted = group.first_admitted(row.admitted)

    def group_gone(self, group: GroupLife) -> None:
        """Note a deleted PodGroup of the job."""
        if (life := self.lives.get(group.job)) is not None:
            life.owners.discard(f"{group.namespace}/{group.name}")
            self._maybe_finish(life)

    def job(self, name: str, job: Object | None, at: float) -> None:
        """Note a Volcano Job as it is now; None for a deleted one."""
        if job is None:
            if (gone := self.lives.get(name)) is not None:
                gone.size = None
                self._maybe_finish(gone)
            return
        life, spec = self._job(name, at), section(job, "spec")
        replicas = [task.get("replicas") for task in spec.get("tasks") or ()]
        life.size = sum(1 if each is None else int(each) for each in replicas)
        life.row.queue = life.row.queue or queue_of(job)
        life.row.min_available = int(spec.get("minAvailable") or 1)
        status = section(job, "status")
        life.phase = str(section(status, "state").get("phase") or "Pending")
        retries = int(status.get("retryCount") or 0)
        if life.retries is not None:  # a dump's Job has restarted before
            life.row.restarts += max(0, retries - life.retries)  # it is counted from 0 again when a Job is resumed
        life.retries = retries
        if life.phase in KILLING:
            self._note_killed_without_grace(life, at)

    def _note_killed_without_grace(self, life: JobLife, at: float) -> None:
        """Note pods that were killed before their Job said why: those without a grace period."""
        for name in [name for name, pod in life.undone.items() if pod.told_to_go and pod.ended == at]:
            _killed(life, life.undone.pop(name))

    # --- pods

    def pod_created(self, pod: PodLife) -> None:
        """Add a new pod, or one that was made again."""
        life = self._of(pod)
        life.there += 1
        life.live += 1
        life.row.attempts += 1
        life.row.user = life.row.user or pod.user
        life.row.priority_class = life.row.priority_class or pod.priority_class
        if (before := life.undone.pop(pod.name, None)) is not None:  # it is made again: what it did was in vain
            _killed(life, before)
        if pod.name not in life.names:
            life.names.add(pod.name)
            life.row.pods += 1
            life.row.cpu += pod.request.get("cpu", 0.0)
            life.row.memory += pod.request.get("memory", 0.0)
            life.row.gpu += gpus(pod)

    def pod_moved(self, pod: PodLife, job: str, queue: str) -> None:
        """Move a pod to another job than it first seemed to have; its single-pod job never existed."""
        if job == pod.job or (life := self.lives.get(job)) is None:
            return
        life.there -= 1
        life.live -= 1
        self.pod_created(pod)
        moved = self._of(pod).row
        moved.submitted = min(moved.submitted, life.row.submitted)
        if not life.there:
            self.lives.pop(job)

    def pod_bound(self, pod: PodLife) -> None:
        """Note that a pod has a node."""
        row = self._of(pod).row
        row.first_bound = pod.bound if row.first_bound is None else row.first_bound
        row.last_bound = pod.bound

    def pod_started(self, pod: PodLife) -> None:
        """Note that a pod runs."""
        life = self._of(pod)
        life.running += 1
        if life.row.started is None and life.running >= life.row.min_available:
            life.row.started = pod.started

    def pod_ended(self, pod: PodLife) -> None:
        """Note that a pod succeeded, failed, or was deleted before it could."""
        life = self._of(pod)
        life.live -= 1
        life.last_end = pod.ended
        life.failed += pod.phase == "Failed"
        if pod.started is not None:
            life.running -= 1
        if pod.evicted or (pod.phase == "Failed" and not pod.told_to_go):
            _lost(life.row, pod)
        elif pod.told_to_go and life.phase in KILLING and pod.started is not None:
            _killed(life, pod)
        elif pod.started is not None:
            life.undone[pod.name] = pod

    def pod_gone(self, pod: PodLife) -> None:
        """Note that a pod is deleted."""
        life = self._of(pod)
        life.there -= 1
        life.row.evictions += pod.evicted
        self._maybe_finish(life)

    # ---

    def _of(self, pod: PodLife) -> JobLife:
        return self._job(pod.job, pod.created)

    def _job(self, name: str, at: float) -> JobLife:
        life = self.lives.get(name)
        if life is None:
            life = self.lives[name] = JobLife(JobRow(name, submitted=at))
        return life

    def _maybe_finish(self, life: JobLife) -> None:
        if not life.owners and life.size is None and not life.there:
            self.lives.pop(life.row.job, None)
            self._finish(life)

    def _finish(self, life: JobLife) -> None:
        row = life.row
        row.state = _state(life)
        if not life.live and not life.goes_on:
            row.ended = life.last_end
        _spans(row)
        for name in ("submitted", "admitted", "first_bound", "last_bound", "started", "ended"):
            at: float | None = getattr(row, name)
            setattr(row, name, None if at is None else round(at - self.began, 3))
        self._done(row)


def gpus(pod: PodLife) -> float:
    """Return the number of cards that a pod asks for, parts of one included."""
    whole = sum(amount for name, amount in pod.request.items() if name.endswith(GPU))
    return whole + sum(amount / 1000.0 for name, amount in pod.request.items() if name.endswith(MILLI_GPU))


def _killed(life: JobLife, pod: PodLife) -> None:
    life.row.killed += 1
    _lost(life.row, pod)


def _lost(row: JobRow, pod: PodLife) -> None:
    if pod.ran_since is None or pod.ended is None:
        return
    seconds = pod.ended - pod.ran_since
    row.lost_pod_s = round(row.lost_pod_s + seconds, 3)
    row.lost_cpu_s = round(row.lost_cpu_s + seconds * pod.request.get("cpu", 0.0), 3)
    row.lost_gpu_s = round(row.lost_gpu_s + seconds * gpus(pod), 3)


def waited_s(row: JobRow) -> float | None:
    """Return the seconds from its submission to its start, None while it has not started."""
    return None if row.started is None else round(row.started - row.submitted, 3)


def _spans(row: JobRow) -> None:
    row.wait_s = waited_s(row)
    if row.started is not None or row.admitted is not None:
        let_in = min(at for at in (row.admitted, row.started) if at is not None)
        row.admission_s = round(let_in - row.submitted, 3)
        row.scheduling_s = None if row.started is None else round(row.started - let_in, 3)
    if row.started is not None and row.ended is not None:
        row.run_s = round(row.ended - row.started, 3)
        row.response_s = round(row.ended - row.submitted, 3)
        row.bounded_slowdown = round(bounded_slowdown(row.wait_s or 0.0, row.run_s), 4)


def _state(life: JobLife) -> str:
    """Return a Volcano Job's own state; of others the state of their pods."""
    if life.phase:
        return life.phase
    if life.live:
        return "Running" if life.running else "Pending"
    return "Failed" if life.failed else "Completed" if life.last_end is not None else "Pending"
