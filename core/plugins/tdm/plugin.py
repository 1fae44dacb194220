"""The plugin: arguments, orders, and whom to evict when a zone closes or a task that may not be revoked needs room."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pumice.config.durations import parse_duration
from pumice.config.time_zones import time_zone
from pumice.core.life.task import TaskStatus
from pumice.core.plugins.tdm.budget import evictable_count
from pumice.core.plugins.tdm.nodes import RevocableFilter, RevocableScorer
from pumice.core.plugins.tdm.zones import Zones
from pumice.core.session.points.orders import JobColumn
from pumice.core.session.points.votes import Vote

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job

ZONE_PREFIX: Final = "tdm.revocable-zone."
PERIOD: Final = "tdm.evict.period"
DEFAULT_PERIOD_S: Final = 60.0
DAY_S: Final = 86_400.0
LAST_EVICTION: Final = "last_eviction"  # in the carry: seconds since the epoch


class Tdm:
    """`tdm.revocable-zone.<zone>` ("HH:MM-HH:MM") and `tdm.evict.period` (a Go duration, 1m).

    A zone without an argument is closed. The clock is that of pumice's `timeZone`.
    """

    name = "tdm"

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._spans = {k.replace(ZONE_PREFIX, "", 1): str(v) for k, v in sorted(arguments.items()) if ZONE_PREFIX in k}
        self._period_s = _period(arguments.get(PERIOD))

    def on_session_open(self, session: Session) -> None:
        """Register filter, scorer, orders and victims; wake when a zone opens or closes."""
        self._session = session
        settings = session.config.pumice
        where, past_midnight = time_zone(settings.time_zone), "tdm-past-midnight" in settings.fix
        self._zones = Zones(self._spans, session.clock.now, time_zone=where, past_midnight=past_midnight)
        self._state: dict[str, float] = session.carry.plugins.setdefault(self.name, {})
        session.points.predicate.add(self.name, [RevocableFilter(session, self._zones)])
        session.points.node_order.add(self.name, [RevocableScorer(session, self._zones)])
        points = session.points
        points.preemptable.add(self.name, self.preemptable)
        points.victim_tasks.add(self.name, [self.victims])
        points.job_order.add(self.name, JobColumn(self._preemptable_jobs))
        points.job_pipelined.add(self.name, self.job_pipelined)
        points.job_starving.add(self.name, self.job_starving)
        change = self._zones.next_change()
        if change is not None and self._concerns_anybody():
            session.wake(change, every_s=DAY_S)

    def on_session_close(self, session: Session) -> None:
        """Nothing to write."""

    def _concerns_anybody(self) -> bool:
        """Return whether hours make a difference to anybody: there are nodes of zones, and pods that have not ended."""
        counts = self._session.jobs.counts
        over = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)
        live = any(any(line) for status, line in enumerate(counts) if status not in over)
        return live and any(spec.revocable_zone for spec in self._session.nodes.specs)

    def _preemptable_jobs(self) -> npt.NDArray[np.int8]:
        """Job order: jobs that may not be preempted first."""
        jobs = self._session.jobs
        column = np.zeros(len(jobs.readiness), dtype=np.int8)
        column[jobs.columns.order] = [job.pod_group.preemptable for job in jobs.in_order]
        return column

    def job_pipelined(self, job: Job) -> Vote:
        """Permits a job that its own count calls pipelined, rejects any other."""
        return Vote.PERMIT if self._session.jobs.is_pipelined(job) else Vote.REJECT

    def job_starving(self, job: Job) -> bool:
        """A job that may not be preempted starves as long as a task of it is pending."""
        return not job.pod_group.preemptable and self._session.jobs.has_pending(job)

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
        """Running preemptable tasks outside of the zones, within each job's budget; who may be preempted preempts
        nobody.
        """
        if preemptor.preemptable or preemptor.revocable_zone:
            return [], Vote.REJECT
        nodes, node_of = self._session.nodes, self._session.jobs.node
        fixed = [
            task
            for task in candidates
            if self._may_go(task) and node_of[task.row] >= 0 and not nodes.specs[node_of[task.row]].revocable_zone
        ]
        return self._within_budgets(fixed), Vote.PERMIT

    def victims(self, _: Sequence[Task]) -> list[Task]:
        """Once a period: preemptable tasks on the nodes of closed zones, zone by zone, within each job's budget."""
        now = self._session.clock.now
        if self._state.get(LAST_EVICTION, -self._period_s) + self._period_s > now:
            self._session.wake(self._state[LAST_EVICTION] + self._period_s)
            return []
        victims: list[Task] = []
        for zone in sorted(self._spans):
            if self._zones.problem(zone):
                victims += self._within_budgets(self._on_nodes_of(zone))
        self._state[LAST_EVICTION] = now
        if victims:
            self._session.wake(now + self._period_s)
        return victims

    def _on_nodes_of(self, zone: str) -> list[Task]:
        nodes = self._session.nodes
        rows = (row for row, spec in enumerate(nodes.specs) if spec.revocable_zone == zone)
        return [task for row in rows for task in nodes.tasks_on(row) if self._may_go(task)]

    def _may_go(self, task: Task) -> bool:
        return task.preemptable and self._session.jobs.status[task.row] == TaskStatus.RUNNING

    def _within_budgets(self, tasks: Sequence[Task]) -> list[Task]:
        """The first tasks of each job, as many as its budget allows, jobs by "namespace/name"."""
        by_job: dict[str, list[Task]] = {}
        for task in tasks:
            by_job.setdefault(task.job, []).append(task)
        victims: list[Task] = []
        for key in sorted(by_job):
            job = self._session.job_of(by_job[key][0])
            if job is not None:
                victims += by_job[key][: evictable_count(self._session.jobs, job)]
        return victims


def _period(text: object) -> float:
    try:
        return parse_duration(text) if isinstance(text, str) else DEFAULT_PERIOD_S
    except ValueError:
        return DEFAULT_PERIOD_S
