"""Sub-jobs: the groups of tasks a job's subGroupPolicy makes. Source: Volcano `api/sub_job_info.go` (reference section
5.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.core.kube.selectors import label_selector
from pumice.core.life.task import IS_READY, TaskStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pumice.core.objects.pod import Task
    from pumice.core.session.jobs import SessionJobs
    from pumice.core.state.jobs import Job


PENDING, PIPELINED = TaskStatus.PENDING, TaskStatus.PIPELINED


class SubJob:
    """A group of tasks. The default one stands for the whole job where it has no policy.

    `gid` is shared by the groups of one policy; `min_available` tasks make it ready; `match_index` orders groups.
    """

    __slots__ = (
        "allocated_hyper_node", "gid", "is_default", "job", "match_index", "min_available", "network_topology",
        "nominated_hyper_node", "priority", "tasks", "uid",
    )  # fmt: skip

    def __init__(self, job: Job, gid: str, uid: str, min_available: int, topology: dict[str, Any] | None) -> None:
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
        """The tasks that it lists as pending, by uid: those too that are elsewhere by now, while a copy stays listed
        (see core/session/copies.py).
        """
        status, listings = jobs.status, jobs.listings
        if not listings:
            return [task for task in self.tasks if status[task.row] == PENDING]
        return [task for task in self.tasks if PENDING in self._statuses(jobs, task)]

    @staticmethod
    def _statuses(jobs: SessionJobs, task: Task) -> Collection[int]:
        """The statuses under which the group lists a task: one, or several where copies stay listed."""
        listing = jobs.listings.get(task.row)
        return (jobs.status[task.row],) if listing is None else listing.by_status

    def _listed(self, jobs: SessionJobs) -> Iterable[tuple[Task, int]]:
        """Return the group's tasks with their statuses; a task may come twice."""
        status, listings = jobs.status, jobs.listings
        if not listings:
            return [(task, status[task.row]) for task in self.tasks]
        return [(task, each) for task in self.tasks for each in self._statuses(jobs, task)]

    def ready_count(self, jobs: SessionJobs) -> int:
        """Ready tasks and pending best-effort ones."""
        return sum(
            IS_READY[status] or (status == PENDING and task.template.best_effort) for task, status in self._listed(jobs)
        )

    def is_ready(self, jobs: SessionJobs) -> bool:
        """Enough tasks are ready."""
        return self.ready_count(jobs) >= self.min_available

    def is_pipelined(self, jobs: SessionJobs) -> bool:
        """Enough tasks are ready or pipelined."""
        promised = sum(status == PIPELINED for _, status in self._listed(jobs))
        return self.ready_count(jobs) + promised >= self.min_available


def _match_values(policy: dict[str, Any], labels: dict[str, str]) -> list[str]:
    selector = policy.get("labelSelector")
    if selector is not None and not label_selector(selector).matches(labels):
        return []
    values = [labels.get(key, "") for key in policy.get("matchLabelKeys") or ()]
    return values if all(values) else []


def _group(job: Job, task: Task) -> tuple[dict[str, Any] | None, list[str]]:
    for policy in job.pod_group.sub_group_policy:
        values = _match_values(policy, task.labels)
        if values:
            return policy, values
    return None, []


def build_sub_jobs(job: Job, least: int) -> dict[str, SubJob]:
    """The job's groups by id, in id order; every task is in exactly one. `least`: how many tasks the job needs."""
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
    """The whole job as its default group, where it has a task at all."""
    if not job.tasks:
        return {}
    spec = job.pod_group
    whole = SubJob(job, job.key, job.key, least, spec.network_topology)
    whole.tasks = list(job.in_uid_order())
    whole.priority = max(0, *[task.priority for task in whole.tasks])
    return {job.key: whole}


def _sub_job(found: dict[str, SubJob], job: Job, policy: dict[str, Any] | None, values: list[str]) -> SubJob:
    spec = job.pod_group
    if policy is None:
        return found.setdefault(job.key, SubJob(job, job.key, job.key, 1, spec.network_topology))
    name = policy.get("name") or ""
    uid = f"{job.key}/{name}-{'-'.join(values)}"
    if uid not in found:
        given = policy.get("subGroupSize")
        least = 1 if given is None else int(given)
        sub_job = found[uid] = SubJob(job, f"{job.key}/{name}", uid, least, policy.get("networkTopology"))
        first = values[0]
        sub_job.match_index = int(first) if first.lstrip("+-").isdigit() else 0
    return found[uid]
