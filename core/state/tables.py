"""The tables of the view, and tasks entered in them: each task is counted with its job and on its node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from pumice.core.life.task import COMPLETED_STATUSES, TASK_LIFE, TaskStatus, TaskTrigger
from pumice.core.objects.metadata import Object, object_key
from pumice.core.objects.pod import Task, TemplateTable
from pumice.core.state.assumed import AssumedPods
from pumice.core.state.dimensions import Dimensions
from pumice.core.state.echoes import Echoes, only_echoes
from pumice.core.state.groups import Groups
from pumice.core.state.jobs import JobTable
from pumice.core.state.node_tasks import NodeTasks
from pumice.core.state.nodes import NodeTable
from pumice.core.state.other_objects import OtherObjects
from pumice.core.state.tasks import NOWHERE, TaskTable
from pumice.core.state.touched import Touched
from pumice.core.state.volumes import VolumeCounts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.core.messages.commands import CycleSaid
    from pumice.core.objects.queue import Queue


class ViewTables:
    """What :class:`pumice.core.state.view.View` is made of; it says when a task comes, changes or goes."""

    def __init__(self, default_queue: str = "default") -> None:
        self.version: int = 0
        self.dimensions = Dimensions()
        self.templates = TemplateTable(self.dimensions)
        self.tasks = TaskTable()
        self.jobs = JobTable(self.dimensions)
        self.nodes = NodeTable(self.dimensions)
        self.groups = Groups(self.jobs, default_queue)
        self.residents = NodeTasks(self.tasks, self.nodes)
        self.others = OtherObjects()
        self._volumes = VolumeCounts(self.others.by_kind)
        self.touched = Touched()  # since the last snapshot
        self._fitted = 0  # so many dimensions have room
        self._assumed = AssumedPods()  # binds in flight
        self._evicting: set[str] = set()  # pod keys of evictions in flight
        self._echoes = Echoes(stirred=True)

    @property
    def node_tasks(self) -> dict[str, dict[str, Task]]:
        """Node name -> pod key -> task, nodes not yet seen included."""
        return self.residents.node_tasks

    @property
    def queues(self) -> dict[str, Queue]:
        """Queues by name."""
        return self.groups.queues

    @property
    def on_their_way(self) -> tuple[int, int]:
        """How many binds and evictions are."""
        return len(self._assumed), len(self._evicting)

    def hears_itself(self, said: CycleSaid) -> bool:
        """Whether since this was asked before nothing has come but what the cycle then said: another would come to
        nothing.
        """
        echoes, self._echoes = self._echoes, Echoes()
        return only_echoes(self, echoes, said)

    def _end_flight(self, key: str) -> None:
        self._assumed.drop(key)
        self._evicting.discard(key)

    def _put_in(self, task: Task) -> None:
        self._volumes.note(task)
        self._fit_dimensions()
        job = self.jobs.by_key.get(task.job)
        if job is not None and job.row == self.jobs.aside:
            if task.status in COMPLETED_STATUSES:
                self._put_aside(task)
                return
            self._take_back(job.key)
        task.row = self.tasks.take_row()
        self.tasks.by_key[task.key] = task
        self.tasks.handles[task.row] = task
        if task.job:
            self.jobs.writable(task.job).put(task)
        self._enter(task)

    def _take_out(self, task: Task) -> None:
        self._leave(task)
        if task.job:
            job = self.jobs.writable(task.job)
            job.drop(task)
            self.jobs.release_if_empty(job)
        self._volumes.drop(task)
        self.tasks.release(task)

    def _apply_pod_group(self, obj: Object, deleted: bool) -> str:
        key = object_key(obj)
        self._take_back(key)
        heard = self.groups.apply_pod_group(obj, deleted)
        self._fit_dimensions()
        self._lay_aside(key)
        return heard

    def _put_aside(self, task: Task) -> None:
        job = self.jobs.writable(task.job)
        self.tasks.lay_aside(task, task.status, job.row)
        job.put(task)
        self.jobs.count(job, task, task.status, 1)

    def _lay_aside(self, key: str) -> None:
        """A job whose PodGroup has gone and whose pods have ended is in no session: it takes no room in the columns
        that every session copies. There it stays until its PodGroup comes again or its last pod has gone.
        """
        job = self.jobs.by_key.get(key)
        if job is not None and self.jobs.is_over(job):
            tasks = list(job.tasks.values())
            self._take_all_out(tasks)
            self.jobs.lay_aside(key)
            for task in tasks:
                self._put_in(replace(task))  # its row is known to snapshots

    def _take_back(self, key: str) -> None:
        """A job that was laid aside may be in a session again."""
        job = self.jobs.by_key.get(key)
        if job is not None and job.row == self.jobs.aside:
            tasks = list(job.tasks.values())
            self._take_all_out(tasks)
            for task in tasks:
                self._put_in(replace(task))

    def _take_all_out(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            self._take_out(task)

    def _effective(self, task: Task) -> tuple[TaskStatus, str]:
        """What the API said, and the step that is on its way from there."""
        status, key = task.status, task.key
        if key in self._assumed and (assumed := TASK_LIFE.step(status, TaskTrigger.ASSUME)) is not None:
            return assumed, self._assumed[key]
        if key in self._evicting and (leaving := TASK_LIFE.step(status, TaskTrigger.EVICT)) is not None:
            return leaving, task.node_name
        return status, task.node_name

    def _enter(self, task: Task) -> None:
        """Count a task where it belongs: its job's columns and its node's."""
        self.touched.add(task)
        row = task.row
        status, node_name = self._effective(task)
        self.tasks.status_at[row] = status
        self.tasks.job_at[row] = NOWHERE
        if task.job:
            job = self.jobs.by_key[task.job]
            self.jobs.count(job, task, status, 1)
            self.tasks.job_at[row] = job.row
        self.residents.enter(task, status, node_name)

    def _leave(self, task: Task) -> None:
        """The reverse of :meth:`_enter`."""
        self.touched.add(task)
        status = self.tasks.status_at[task.row]
        if task.job:
            self.jobs.count(self.jobs.by_key[task.job], task, status, -1)
        self.residents.leave(task, status)

    def _move(self, task: Task) -> None:
        """Count a task that was counted in its row where it belongs by now."""
        self.touched.add(task)
        row = task.row
        before = self.tasks.status_at[row]
        status, node_name = self._effective(task)
        if task.job and status != before:
            self.jobs.move(self.jobs.by_key[task.job], task, before, status)
        self.tasks.status_at[row] = status
        self.residents.move(task, before, status, node_name)

    def _fit_dimensions(self) -> None:
        if len(self.dimensions.names) != self._fitted:
            self._fitted = len(self.dimensions.names)
            self.nodes.fit_dimensions()
            self.jobs.fit_dimensions()
