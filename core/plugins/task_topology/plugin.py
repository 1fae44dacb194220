"""The plugin. Source: Volcano `plugins/task-topology/topology.go`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.config.arguments import Arguments
from pumice.core.plugins.task_topology.buckets import JobBuckets
from pumice.core.plugins.task_topology.orders import BucketOrder
from pumice.core.plugins.task_topology.relations import relations_of
from pumice.core.plugins.task_topology.scores import BucketScorer

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job


class TaskTopology:
    """`task-topology.weight` (1), a whole number."""

    name = "task-topology"

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._weight = Arguments(self.name, arguments).get_int("task-topology.weight", 1)
        self.jobs: dict[str, JobBuckets] = {}

    def on_session_open(self, session: Session) -> None:
        """Deal out the tasks of jobs with something to place; register nothing when there is no such job."""
        for job in session.jobs.in_order:
            if session.jobs.has_pending(job):
                self._deal(session, job)
        if not self.jobs:
            return
        names = session.nodes.names

        def placed(task: Task, node: int) -> None:
            if task.job in self.jobs:
                self.jobs[task.job].place(task, names[node])

        session.points.task_order.add(self.name, BucketOrder(self.jobs))
        session.points.node_order.add(self.name, [BucketScorer(self.jobs, self._weight)])
        session.points.handle(allocate=placed)

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""

    def _deal(self, session: Session, job: Job) -> None:
        relations = relations_of(job)
        if relations is None:
            return
        node_of, names = session.jobs.node, session.nodes.names
        where = ((task, node_of[task.row]) for task in job.in_uid_order())
        buckets = self.jobs[job.key] = JobBuckets(relations)
        buckets.deal((task, names[node] if node >= 0 else task.node_name) for task, node in where)
