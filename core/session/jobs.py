# SPDX-License-Identifier: Apache-2.0
"""Questions about jobs, answered from columns. Source: Volcano `api/job_info.go` (reference section 5.3)."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NoReturn

import numpy as np
import numpy.typing as npt

from pumice.core.cached import cached
from pumice.core.go_numbers import parse_int
from pumice.core.kube.selectors import label_selector
from pumice.core.life import pod_group
from pumice.core.life.task import (
    CHANGES,
    IS_ALLOCATED,
    IS_READY,
    TASK_LIFE,
    TaskChange,
    TaskStatus,
    TaskTrigger,
    change_between,
)
from pumice.core.objects.metadata import Object
from pumice.core.state import calm_jobs
from pumice.core.state.dimensions import integer_lines, integers, lines

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pumice.core.objects.pod import Task
    from pumice.core.resources import Resource
    from pumice.core.session.statement import TaskEntries
    from pumice.core.state.dimensions import FloatArray
    from pumice.core.state.jobs import Job
    from pumice.core.state.snapshot import Snapshot

# --- Sub-jobs (Volcano's `api/sub_job_info.go`)
# Source: Volcano `api/sub_job_info.go` (reference section 5.3).


class SubJob:
    """A group of tasks. The default one stands for the whole job where it has no policy.

    `gid` is shared by the groups of one policy; `min_available` tasks make it ready; `match_index` orders groups.
    """

    __slots__ = (
        "allocated_hyper_node", "gid", "is_default", "job", "match_index", "min_available", "network_topology",
        "nominated_hyper_node", "priority", "tasks", "uid",
    )  # fmt: skip

    def __init__(self, job: Job, gid: str, uid: str, min_available: int, topology: Object | None) -> None:
        self.job = job
        self.gid = gid
        self.uid = uid
        self.min_available = min_available
        self.network_topology = topology
        self.is_default = uid == job.key
        self.match_index = 0
        self.priority = 0
        self.tasks: list[Task] = []  # by uid
        self.allocated_hyper_node = ""
        self.nominated_hyper_node = ""

    def pending(self, jobs: SessionJobs) -> list[Task]:
        """Return the tasks that it lists as pending, by uid, with those that are elsewhere by now while a copy stays
        listed (see core/session/statement.py).
        """
        status, listings = jobs.status, jobs.listings
        if not listings:
            return [task for task in self.tasks if status[task.row] == PENDING]
        return [task for task in self.tasks if PENDING in self._statuses(jobs, task)]

    @staticmethod
    def _statuses(jobs: SessionJobs, task: Task) -> Collection[int]:
        """Return the statuses under which the group lists a task: one, or several where copies stay listed."""
        listing = jobs.listings.get(task.row)
        return (jobs.status[task.row],) if listing is None else listing.by_status

    def _listed(self, jobs: SessionJobs) -> Iterable[tuple[Task, int]]:
        """Return the group's tasks with their statuses; a task may come twice."""
        status, listings = jobs.status, jobs.listings
        if not listings:
            return [(task, status[task.row]) for task in self.tasks]
        return [(task, each) for task in self.tasks for each in self._statuses(jobs, task)]

    def ready_count(self, jobs: SessionJobs) -> int:
        """Return the number of ready tasks and pending best-effort ones."""
        return sum(
            IS_READY[status] or (status == PENDING and task.template.best_effort) for task, status in self._listed(jobs)
        )

    def is_ready(self, jobs: SessionJobs) -> bool:
        """Return whether enough tasks are ready."""
        return self.ready_count(jobs) >= self.min_available

    def is_pipelined(self, jobs: SessionJobs) -> bool:
        """Return whether enough tasks are ready or pipelined."""
        promised = sum(status == PIPELINED for _, status in self._listed(jobs))
        return self.ready_count(jobs) + promised >= self.min_available


def _match_values(policy: Object, labels: dict[str, str]) -> list[str]:
    selector = policy.get("labelSelector")
    if selector is not None and not label_selector(selector).matches(labels):
        return []
    values = [labels.get(key, "") for key in policy.get("matchLabelKeys") or ()]
    # Volcano: a policy without matchLabelKeys, or with one that the task lacks, never matches.
    return values if all(values) else []


def _group(job: Job, task: Task) -> tuple[Object | None, list[str]]:
    for policy in job.pod_group.sub_group_policy:
        values = _match_values(policy, task.labels)
        if values:
            return policy, values
    return None, []


def build_sub_jobs(job: Job, least: int) -> dict[str, SubJob]:
    """Return the job's groups by id, in id order; every task is in exactly one. `least`: the job's minimum."""
    if not job.pod_group.sub_group_policy:
        return _one_group(job, least)
    found: dict[str, SubJob] = {}
    for task in job.in_uid_order():
        policy, values = _group(job, task)
        sub_job = _sub_job(found, job, policy, values)
        sub_job.tasks.append(task)
        sub_job.priority = max(sub_job.priority, task.priority)
    return {uid: found[uid] for uid in sorted(found)}


def _one_group(job: Job, least: int) -> dict[str, SubJob]:
    """Return the whole job as its default group, if it has a task at all."""
    if not job.tasks:
        return {}
    spec = job.pod_group
    whole = SubJob(job, job.key, job.key, least, spec.network_topology)
    whole.tasks = list(job.in_uid_order())
    whole.priority = max(0, *[task.priority for task in whole.tasks])
    return {job.key: whole}


def _sub_job(found: dict[str, SubJob], job: Job, policy: Object | None, values: list[str]) -> SubJob:
    spec = job.pod_group
    if policy is None:
        # Tasks that no policy matches make a group that needs one of them, as in Volcano.
        return found.setdefault(job.key, SubJob(job, job.key, job.key, 1, spec.network_topology))
    name = policy.get("name") or ""
    uid = f"{job.key}/{name}-{'-'.join(values)}"
    if uid not in found:
        given = policy.get("subGroupSize")
        least = 1 if given is None else int(given)
        sub_job = found[uid] = SubJob(job, f"{job.key}/{name}", uid, least, policy.get("networkTopology"))
        # Volcano's MatchIndex: the first label value where it is a whole number.
        sub_job.match_index = parse_int(values[0]) or 0
    return found[uid]


# --- Jobs by queue


class ByQueue:
    """Jobs by queue. `count`: the number of queues."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._order, self._of_job = snapshot.jobs.order, snapshot.jobs.queue
        self.count = len(snapshot.queues)
        self._bins: npt.NDArray[np.int64] = np.empty((0, len(self._order)), dtype=np.int64)

    @cached
    def rows(self) -> npt.NDArray[np.int32]:
        """Return the queue row of each job in job order; mostly the kept sums do without."""
        found: npt.NDArray[np.int32] = self._of_job.take(self._order)
        return found

    def sums(self, *tables: FloatArray) -> FloatArray:
        """Return the sums of each line of tables [line, job row] over the jobs of each queue, added in job order:
        float64 [lines of all tables, queue row].
        """
        every = np.concatenate(tables)
        height = len(every)
        if len(self._bins) < height:
            self._bins = self._places(height, self.rows)
        return self._added(every.take(self._order, axis=1), self._bins[:height])

    def among(self, some: npt.NDArray[np.intp], amounts: FloatArray) -> FloatArray:
        """Return sums by queue of a table [line, job], of the jobs in rows `some` alone."""
        return self._added(amounts, self._places(len(amounts), self._of_job.take(some)))

    def _places(self, height: int, rows: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """Return the places of sums: every queue has a bin in every line, so that one pass adds up all tables."""
        return np.arange(height)[:, None] * self.count + rows

    def _added(self, amounts: FloatArray, bins: npt.NDArray[np.int64]) -> FloatArray:
        height = len(amounts)
        sums = np.bincount(bins.ravel(), weights=amounts.ravel(), minlength=height * self.count)
        return sums.astype(np.float64, copy=False).reshape(height, self.count)  # of nothing, whole numbers


FEW: Final = 8
BY_KEY: Final = attrgetter("key")
PENDING, PIPELINED = TaskStatus.PENDING, TaskStatus.PIPELINED
SUCCEEDED = TaskStatus.SUCCEEDED


def gated_request(job: Job) -> Resource | None:
    """Return the sum of the requests of gated tasks, without those with only Volcano's own gate; None when no task is
    gated.
    """
    gated = [task for task in job.tasks.values() if task.gated and not task.only_volcano_gate]
    if not gated:
        return None
    total = gated[0].template.request.clone()
    for task in gated[1:]:
        total.add(task.template.request)
    return None if total.is_empty() else total


def _no_step(status: int, trigger: TaskTrigger, task: Task) -> NoReturn:
    TASK_LIFE.move(TaskStatus(status), trigger, task.key)
    raise AssertionError("the table of changes knows every step of the table of lives")


class SessionJobs:
    """The session's own copy of the job and task columns, and JobInfo's methods over them. Jobs are named by their
    handle.

    `ready_tasks` [J]: how many tasks of a job are bound, binding, running, allocated or succeeded; `readiness` [J]:
    whether that, with its pending best-effort tasks, reaches minAvailable. Both follow `move`.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.known = integers(snapshot.jobs.known)
        self.counts = integer_lines(snapshot.jobs.counts)
        columns = snapshot.jobs
        self.ready_tasks, self.readiness = columns.ready_tasks, columns.readiness
        self._ready_tasks, self._readiness = integers(self.ready_tasks), integers(self.readiness)
        self.best_effort = integers(snapshot.jobs.best_effort)
        self.min_member = integers(snapshot.jobs.min_member)
        self.phase = integers(snapshot.jobs.phase)
        self.priority = integers(snapshot.jobs.priority)
        self.allocated_at = lines(snapshot.jobs.allocated)
        self.status = integers(snapshot.tasks.status)
        self.node = integers(snapshot.tasks.node)
        self.of_task = integers(snapshot.tasks.job)
        self.calm_counts = True  # whether a job that is calm has nothing to write
        self.begin(snapshot)

    def begin(self, snapshot: Snapshot) -> None:
        """Begin a session, the first one or another on the same columns."""
        self.columns, self.dimensions = snapshot.jobs, snapshot.dimensions
        self.by_queue = ByQueue(snapshot)
        self.moved: list[int] = []  # rows of the tasks whose status or node was written
        self.altered: list[int] = []  # rows of the jobs whose phase was
        self.listings: dict[
            int, TaskEntries
        ] = {}  # task row -> how its group lists it, where that is not by its status
        self.generation = 0  # rises with every change of a task's status
        self.unsettled: npt.NDArray[np.intp] = self.columns.order
        self._unsettled_at: tuple[int, npt.NDArray[np.int32]] | None = None  # as of that generation
        self._in_order: list[Job] | None = None

    @property
    def in_order(self) -> list[Job]:
        """Return all jobs, in job order; a session that has nothing to place names few."""
        if self._in_order is None:
            self._in_order = self.columns.named(self.columns.order)
        return self._in_order

    def where(self, mask: npt.NDArray[np.bool_]) -> list[Job]:
        """Return the jobs for whose rows a mask holds, in job order."""
        return self.columns.named(self.rows_where(mask))

    def rows_where(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
        """Return the rows of jobs for which a mask holds, in job order."""
        columns = self.columns
        rows = (mask & columns.known).nonzero()[0]
        if len(rows) > FEW:
            return columns.order[mask.take(columns.order)]
        # Of so few it costs less to compare their names than to look through the order of all jobs.
        if len(rows) > 1:
            rows = np.array([job.row for job in sorted(columns.named(rows), key=BY_KEY)], dtype=np.intp)
        return rows

    def handle(self, row: int) -> Job:
        """Return the job in a row that has one."""
        job = self.columns.handles[row]
        if job is None:
            raise KeyError(row)
        return job

    def find_unsettled(self) -> npt.NDArray[np.intp]:
        """Find the rows of the jobs that are not calm, or that the session has changed, in job order. Of few jobs it is
        not found out. Asked when the session closes; `unsettled` are these from then on.
        """
        order = self.columns.order
        if self.calm_counts and calm_jobs.are_many(len(self.columns.phase)):
            stirred = ~self.columns.calm
            stirred[list(self.written())] = True
            order = self.rows_where(stirred)
        self.unsettled, self._unsettled_at = order, None
        return order

    def counts_of_unsettled(self) -> npt.NDArray[np.int32]:
        """Return how many tasks of each status each unsettled job has now, [status, unsettled job]; the caller must not
        change it.
        """
        known = self._unsettled_at
        if known is None or known[0] != self.generation:
            known = self._unsettled_at = self.generation, self.columns.counts.take(self.unsettled, axis=1)
        return known[1]

    def holds_for_any(self, mask: npt.NDArray[np.bool_]) -> bool:
        """Return whether a mask holds for the row of any job."""
        return bool(np.count_nonzero(mask & self.columns.known))

    def move(self, job: Job | None, task: Task, trigger: TaskTrigger) -> TaskStatus:
        """Move a task a step on in its life, and return its new status; counts and allocated amounts follow
        (UpdateTaskStatus).

        Nothing but this and `restate` sets a status in a session. Raises InvalidTransition.
        """
        before = self.status[task.row]
        change = CHANGES.get((before, trigger)) or _no_step(before, trigger, task)
        self._apply(job, task, before, change)
        if task.row in self.listings:
            self.listings[task.row].move(before, change.after)
        return change.after

    def restate(self, job: Job | None, task: Task, after: TaskStatus) -> None:
        """Make another copy of the task, which is in that status, the job's task (core/session/statement.py)."""
        before = self.status[task.row]
        self.moved.append(task.row)
        if before != after:
            self._apply(job, task, before, change_between(before, after))

    def _apply(self, job: Job | None, task: Task, before: int, change: TaskChange) -> None:
        after, waits, became_ready, gained = change
        self.status[task.row] = after
        self.moved.append(task.row)
        if job is None:
            return
        row, template = job.row, task.template
        self.generation += 1
        self.counts[before][row] -= 1
        self.counts[after][row] += 1
        if template.best_effort:
            self.best_effort[row] += waits
        if became_ready or template.best_effort:
            ready = self._ready_tasks[row] = self._ready_tasks[row] + became_ready
            self._readiness[row] = ready + self.best_effort[row] >= self.min_member[row]
        if gained:
            for dimension, value in template.items:
                self.allocated_at[dimension][row] += gained * value

    def admit(self, job: Job) -> None:
        """Admit the job. Raises InvalidTransition."""
        self.altered.append(job.row)
        phase = pod_group.PodGroupPhase(self.phase[job.row])
        self.phase[job.row] = pod_group.POD_GROUP_LIFE.move(phase, pod_group.PodGroupTrigger.ENQUEUE, job.key)

    def written(self) -> set[int]:
        """Return the rows of all jobs in which the session has written."""
        jobs = {self.of_task[row] for row in self.moved}
        return jobs.union(self.altered) - {-1}

    # --- counts ------------------------------------------------------------------------------------------------------

    def all_wait(self, job: Job) -> bool:
        """Return whether every task of the job is pending: then all its counts follow from the job itself."""
        return self.counts[PENDING][job.row] == len(job.tasks)

    def ready_count(self, job: Job) -> int:
        """Return ReadyTaskNum: bound, binding, running, allocated, succeeded."""
        return self._ready_tasks[job.row]

    def waiting_count(self, job: Job) -> int:
        """Return WaitingTaskNum: pipelined."""
        return int(self.counts[PIPELINED][job.row])

    def allocated_count(self, job: Job) -> int:
        """Return the number of tasks of allocated class."""
        return self._ready_tasks[job.row] - self.counts[SUCCEEDED][job.row]

    def valid_count(self, job: Job) -> int:
        """Return ValidTaskNum: allocated class, succeeded, pipelined, pending."""
        return self.ready_count(job) + int(self.counts[PIPELINED][job.row] + self.counts[PENDING][job.row])

    def is_ready(self, job: Job) -> bool:
        """Return whether ready tasks and pending best-effort ones reach minAvailable (IsReady)."""
        return bool(self._readiness[job.row])

    def is_pipelined(self, job: Job) -> bool:
        """Return whether ready, pipelined and pending best-effort tasks reach minAvailable (IsPipelined)."""
        row = job.row
        return bool(self.waiting_count(job) + self.ready_count(job) + self.best_effort[row] >= self.min_member[row])

    def is_starving(self, job: Job) -> bool:
        """Return whether ready and pipelined tasks stay below minAvailable; best-effort ones do not count here
        (IsStarving).
        """
        return bool(self.waiting_count(job) + self.ready_count(job) < self.min_member[job.row])

    def starving(self) -> npt.NDArray[np.bool_]:
        """Return `is_starving` of every row, bool [J]."""
        found: npt.NDArray[np.bool_] = self._placed() < self.columns.min_member
        return found

    def short(self) -> npt.NDArray[np.bool_]:
        """Return the rows of jobs with a task that is neither ready nor pipelined, bool [J]."""
        found: npt.NDArray[np.bool_] = self._placed() < np.add.reduce(self.columns.counts)
        return found

    def _placed(self) -> npt.NDArray[np.int32]:
        placed: npt.NDArray[np.int32] = self.ready_tasks + self.columns.counts[PIPELINED]
        return placed

    def have_pending(self) -> bool:
        """Return whether a task of any job is pending, or listed as such (see core/session/statement.py)."""
        return bool(self.listings) or self.holds_for_any(self.columns.counts[PENDING] > 0)

    def is_pending(self, job: Job) -> bool:
        """Return whether the job still waits for admission."""
        return bool(self.phase[job.row] <= 1)

    def has_pending(self, job: Job) -> bool:
        """Return whether a task of the job is pending."""
        return bool(self.counts[PENDING][job.row])

    # --- tasks -------------------------------------------------------------------------------------------------------

    def tasks_in(self, job: Job, status: int) -> list[Task]:
        """Return the job's tasks of a status, by uid (TaskStatusIndex in the documented order)."""
        if not self.counts[status][job.row]:
            return []
        of = self.status
        return [task for task in job.in_uid_order() if of[task.row] == status]

    def _roles(self, job: Job, *, pipelined: bool, valid: bool) -> Counter[str]:
        roles: Counter[str] = Counter()
        for task in job.tasks.values():
            status = self.status[task.row]
            counts = (
                IS_ALLOCATED[status]
                or status == SUCCEEDED
                or (pipelined and status == PIPELINED)
                or (status == PENDING and (valid or task.template.best_effort))
            )
            if counts:
                roles[task.role] += 1
        return roles

    def allocated_roles(self, job: Job) -> Counter[str]:
        """Return role -> tasks that are ready or pending without a request (getJobAllocatedRoles)."""
        return self._roles(job, pipelined=False, valid=False)

    def _roles_suffice(self, job: Job, *, pipelined: bool, valid: bool) -> bool:
        minimum = job.pod_group.min_task_member
        if not minimum or self.min_member[job.row] < job.pod_group.min_task_total:
            return True
        # Of a job that only waits or runs all tasks are valid: they need not be gone through in every cycle.
        every = valid and pipelined and self.valid_count(job) == len(job.tasks)
        roles = job.roles() if every else self._roles(job, pipelined=pipelined, valid=valid)
        return all(roles[role] >= number for role, number in minimum.items())

    def check_task_valid(self, job: Job) -> bool:
        """Return whether every role has its minimum of valid tasks; True when minAvailable is below the roles' sum
        (CheckTaskValid).
        """
        return self._roles_suffice(job, pipelined=True, valid=True)

    def check_task_ready(self, job: Job) -> bool:
        """Return whether every role has its minimum of ready tasks (CheckTaskReady)."""
        return self._roles_suffice(job, pipelined=False, valid=False)

    def check_task_pipelined(self, job: Job) -> bool:
        """Return whether every role has its minimum of ready or pipelined tasks (CheckTaskPipelined)."""
        return self._roles_suffice(job, pipelined=True, valid=False)

    # --- resources ---------------------------------------------------------------------------------------------------

    def allocated(self, job: Job) -> Resource:
        """Return the sum of the requests of allocated-class tasks."""
        return self.dimensions.resource([float(line[job.row]) for line in self.allocated_at])

    def gated_resources(self, job: Job) -> Resource | None:
        """Return what the job's gated tasks ask for (see gated_request)."""
        return gated_request(job) if self.columns.gated[job.row] else None

    def without_gated(self, job: Job, resource: Resource) -> Resource:
        """Return `resource` minus the requests of gated tasks, never below 0 (DeductSchGatedResources)."""
        gated = self.gated_resources(job)
        if gated is None:
            return resource
        result = resource.clone()
        result.milli_cpu = max(result.milli_cpu - gated.milli_cpu, 0.0)
        result.memory = max(result.memory - gated.memory, 0.0)
        for name in resource.scalars or ():
            if name in (gated.scalars or {}) and result.scalars is not None and gated.scalars is not None:
                result.scalars[name] = max(result.scalars[name] - gated.scalars[name], 0.0)
        return result
