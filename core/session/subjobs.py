"""Sub-jobs: the groups of tasks a job's subGroupPolicy makes. Source: Volcano `api/sub_job_info.go` (reference section
5.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.kube.selectors import label_selector
from core.life.task import IS_ALLOCATED, TaskStatus

if TYPE_CHECKING:
    from core.objects.pod import Task
    from core.session.jobs import SessionJobs
    from core.state.jobs import Job


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

    def count(self, jobs: SessionJobs, *statuses: int) -> int:
        """How many of its tasks have one of these statuses."""
        of = jobs.status
        return sum(of[task.row] in statuses for task in self.tasks)

    def ready_count(self, jobs: SessionJobs) -> int:
        """Ready tasks and pending best-effort ones."""
        total = 0
        for task in self.tasks:
            status = jobs.status[task.row]
            ready = IS_ALLOCATED[status] or status == TaskStatus.SUCCEEDED
            total += ready or (status == TaskStatus.PENDING and task.template.best_effort)
        return total

    def is_ready(self, jobs: SessionJobs) -> bool:
        """Enough tasks are ready."""
        return self.ready_count(jobs) >= self.min_available

    def is_pipelined(self, jobs: SessionJobs) -> bool:
        """Enough tasks are ready or pipelined."""
        return self.ready_count(jobs) + self.count(jobs, TaskStatus.PIPELINED) >= self.min_available


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
