# SPDX-License-Identifier: Apache-2.0
"""The tasks of a job that may be evicted together: its surplus, or all of the job's tasks in a domain.

Source: Volcano `actions/utils/bundle.go` (reference section 1.8).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

from pumice.core.objects.pod import PREEMPTABLE
from pumice.core.resources import MIN_RESOURCE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_group import PodGroupSpec
    from pumice.core.session.jobs import SubJob
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job

FREE = float("inf")  # the return of a bundle that costs its job nothing
Amounts = dict[int, float]


class Cost(IntEnum):
    """The effect of an eviction on the job: the job stays ready, or it breaks."""

    SAFE = 0
    WHOLE = 1


@dataclass(frozen=True, slots=True)
class Bundle:
    """Tasks of one job that are evicted together.

    `lost`: what the job loses in the whole cluster; for a safe bundle nothing.
    """

    cost: Cost
    job: Job
    tasks: tuple[Task, ...]
    lost: Amounts

    @property
    def freed(self) -> Amounts:
        """Return what the domain gains, by dimension."""
        return requests(self.tasks)

    def approved(self, allowed: Collection[str]) -> Bundle | None:
        """Return what is left of the bundle when only those uids may go; a whole bundle goes whole or not at all."""
        tasks = tuple(task for task in self.tasks if task.uid in allowed)
        if not tasks or (self.cost is Cost.WHOLE and len(tasks) < len(self.tasks)):
            return None
        return replace(self, tasks=tasks)

    def gain(self, need: Amounts) -> float:
        """Return how much of the need the bundle meets for what its job loses (bundleROI)."""
        lost = share_of(self.lost, need, cap=False)
        return share_of(self.freed, need, cap=True) / lost if lost else FREE

    def score(self, need: Amounts) -> float:
        """Return the gain as the journal records it: for a bundle that costs its job nothing, how much of the need it
        meets.
        """
        gain = self.gain(need)
        return share_of(self.freed, need, cap=True) if gain == FREE else gain

    def identity(self) -> tuple[str, str, int]:
        """Return the key that breaks ties."""
        return self.job.key, self.tasks[0].uid, len(self.tasks)


def requests(tasks: Iterable[Task]) -> Amounts:
    """Return the sum of the tasks' requests, by dimension."""
    total: Amounts = {}
    for task in tasks:
        for dimension, value in task.template.items:
            total[dimension] = total.get(dimension, 0.0) + value
    return total


def share_of(amounts: Amounts, need: Amounts, *, cap: bool) -> float:
    """Return the sum of the shares of a need that the amounts meet; with `cap` no share is above 1
    (scoreAgainstNeed).
    """
    score = 0.0
    # Sorted, so that the sum of floats has one order.
    for dimension, wanted in sorted(need.items()):
        if wanted >= MIN_RESOURCE:
            amount = amounts.get(dimension, 0.0)
            score += (min(amount, wanted) if cap else amount) / wanted
    return score


def bundles_of(session: Session, job: Job, tasks: Iterable[Task]) -> list[Bundle]:
    """Split a job's tasks in a domain: those it can spare, and the rest (CreateJobBundles)."""
    ordered = sorted(tasks, key=lambda task: (task.priority, task.uid))
    if session.jobs.ready_count(job) < session.jobs.min_member[job.row]:
        return [Bundle(Cost.SAFE, job, tuple(ordered), {})]  # it is broken already: nothing more can break
    surplus = Surplus(session, job)
    spared = {task.uid for task in ordered if surplus.spare(task)}
    bundles: list[Bundle] = []
    if spared:
        bundles.append(Bundle(Cost.SAFE, job, tuple(t for t in ordered if t.uid in spared), {}))
    if len(spared) < len(ordered):
        # Taking any of these breaks the job: it then loses its tasks in the whole cluster, not only those here.
        rest = tuple(task for task in ordered if task.uid not in spared)
        bundles.append(Bundle(Cost.WHOLE, job, rest, requests(job.in_uid_order())))
    return bundles


class Surplus:
    """The tasks that a ready job can spare: those above its minimum, above each role's minimum, and groups above each
    policy's minimum.
    """

    def __init__(self, session: Session, job: Job) -> None:
        jobs, spec = session.jobs, job.pod_group
        self._tasks = jobs.ready_count(job) - jobs.min_member[job.row]
        self._roles = self._role_surplus(session, job)
        groups = session.sub_jobs(job).values() if spec.sub_group_policy else ()
        self._group_of = {task.uid: group for group in groups for task in group.tasks}
        self._broken = {group.uid for group in groups if not group.is_ready(jobs)}
        self._groups = Counter(group.gid for group in groups if group.uid not in self._broken)
        self._groups.subtract(_min_sub_groups(spec))

    @staticmethod
    def _role_surplus(session: Session, job: Job) -> dict[str, int]:
        spec = job.pod_group
        # CheckTaskReady does not look at roles while minAvailable is below the sum of their minimums.
        if session.jobs.min_member[job.row] < spec.min_task_total:
            return {}
        ready = session.jobs.allocated_roles(job)
        return {role: ready[role] - least for role, least in spec.min_task_member.items()}

    def spare(self, task: Task) -> bool:
        """Return whether the job stays ready without the task; if so the task is counted as gone."""
        group = self._group_of.get(task.uid)
        if self._tasks <= 0 or self._roles.get(task.role, 1) <= 0 or not self._spares(group):
            return False
        self._tasks -= 1
        if task.role in self._roles:
            self._roles[task.role] -= 1
        if group is not None and group.uid not in self._broken:
            self._broken.add(group.uid)
            self._groups[group.gid] -= 1
        return True

    def _spares(self, group: SubJob | None) -> bool:
        """Return whether the task can be spared in its group. A group that lacks a task already costs nothing more; a
        whole group only goes while the policy has one too many.
        """
        return group is None or group.uid in self._broken or self._groups[group.gid] > 0


def _min_sub_groups(spec: PodGroupSpec) -> dict[str, int]:
    return {f"{spec.key}/{p.get('name') or ''}": int(p.get("minSubGroups") or 0) for p in spec.sub_group_policy}


def may_lose_tasks(spec: PodGroupSpec) -> bool:
    """Return whether the PodGroup allows preemption; a PodGroup that does not say allows it
    (IsJobPreemptableForGangEviction).
    """
    return spec.preemptable or (PREEMPTABLE not in spec.annotations and PREEMPTABLE not in spec.labels)
