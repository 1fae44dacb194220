"""What PodGroups say of the view's jobs, and what queues and priority classes make of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.objects.metadata import Object, object_key
from pumice.core.objects.pod_group import PodGroupSpec, read_pod_group, renewed_pod_group
from pumice.core.objects.queue import Queue, is_counted, read_queue
from pumice.core.state.jobs import NO_QUEUE
from pumice.core.state.priorities import PriorityClasses
from pumice.core.state.sources import limits_of

if TYPE_CHECKING:
    from pumice.core.state.jobs import Job, JobTable


class Groups:
    """Each event is taken over as a whole or, with QuantityError, not at all.

    `limits_version` rises when queues come or go, or what limits one of them changes: their status does so in nearly
    every cycle, and a thousand queues are not to be gone through again for that.
    """

    def __init__(self, jobs: JobTable, default_queue: str) -> None:
        self.queues: dict[str, Queue] = {}
        self.limits_version = 0
        self._jobs = jobs
        self._default_queue = default_queue
        self._priorities = PriorityClasses()
        self._queue_rows: dict[str, int] = {}
        self._uncounted: frozenset[str] = frozenset()

    def in_name_order(self) -> list[Queue]:
        """The queues; jobs know theirs by its place."""
        return [self.queues[name] for name in self._queue_rows]

    def apply_pod_group(self, obj: Object, deleted: bool) -> str:
        """A PodGroup makes a job, or makes one of what were only pods. Its key when only its status has changed, ""
        else.
        """
        key = object_key(obj)
        known = self._jobs.by_key.get(key)
        if deleted:
            if known is not None:
                job = self._jobs.writable(key)
                self._jobs.set_spec(job, None)
                self._jobs.release_if_empty(job)
            return ""
        renewed = None if known is None or known.spec is None else renewed_pod_group(known.spec, obj)
        if renewed is not None:
            self._jobs.set_status(self._jobs.writable(key), renewed)
            return key
        spec = read_pod_group(obj, self._default_queue, self._uncounted)
        job = self._jobs.writable(key)
        self._jobs.set_spec(job, spec)
        self._resolve(job, spec)
        return ""

    def uncount(self, names: frozenset[str]) -> None:
        """Resources of these names count nothing from now on."""
        self._uncounted |= names
        for key, known in list(self._jobs.by_key.items()):
            spec = known.spec
            asked = None if spec is None or spec.min_resources is None else spec.min_resources.scalars
            if spec is not None and not names.isdisjoint(asked or ()):
                renewed = read_pod_group(spec.pod_group, self._default_queue, self._uncounted)
                job = self._jobs.writable(key)
                self._jobs.set_spec(job, renewed)
                self._resolve(job, renewed)

    def apply_queue(self, obj: Object, deleted: bool) -> str | None:
        """Jobs find their queue when it comes, and lose it when it goes. Its name when only what is allocated has
        changed; None when only what its status counts; "" else.
        """
        queue = read_queue(obj)
        known = self.queues.get(queue.name)
        changed = deleted or known is None
        if known is None or deleted or limits_of(known) != limits_of(queue):
            self.limits_version += 1
            for limit in (queue.capability, queue.deserved, queue.guarantee):
                if limit is not None:
                    self._jobs.dimensions.items(limit)  # a queue may be the first to name a scalar
        if deleted:
            self.queues.pop(queue.name, None)
        else:
            self.queues[queue.name] = queue
        if changed:
            self._queue_rows = {name: row for row, name in enumerate(sorted(self.queues))}
            self._resolve_all()
        if known is None or deleted or not is_counted(known, queue):
            return ""
        return None if queue.allocated == known.allocated else queue.name

    def apply_priority_class(self, obj: Object, deleted: bool) -> None:
        """What it is worth counts for every job that names it."""
        if self._priorities.apply(obj, deleted=deleted):
            self._resolve_all()

    def _resolve(self, job: Job, spec: PodGroupSpec) -> None:
        self._jobs.priority[job.row] = self._priorities.value(spec.priority_class)
        self._jobs.queue[job.row] = self._queue_rows.get(spec.queue, NO_QUEUE)

    def _resolve_all(self) -> None:
        for job in self._jobs.by_key.values():
            if job.spec is not None:
                self._resolve(job, job.spec)
