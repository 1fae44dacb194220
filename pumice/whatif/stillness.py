"""What news leave everything as it was: a cycle after them, while nobody waits for a place, comes to nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from core.life.pod_group import PodGroupPhase
from core.life.task import TaskStatus

if TYPE_CHECKING:
    from core.fold.shown import Shown
    from core.messages.events import Mutation
    from core.objects.queue import Queue
    from core.state.view import View

OVER: Final = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)


def stirs(shown: Shown[View], mutation: Mutation, obj: dict[str, Any], own: set[int]) -> bool:
    """Show the view what is new. Whether that may matter to a cycle that has nobody to place.

    `own`: revisions of what the cycle before said of PodGroups, which is forgotten as it comes back.
    """
    view, kind = shown.view, mutation.kind
    if kind == "PodGroup" and mutation.revision in own:
        own.discard(mutation.revision)
        shown.see(mutation.type, obj)
        return False
    if kind == "PodGroup" and mutation.type == "DELETED":
        still = _is_over(view, f"{mutation.namespace}/{mutation.name}")
        shown.see(mutation.type, obj)
        return not still
    before = view.groups.queues.get(mutation.name) if kind == "Queue" else None
    shown.see(mutation.type, obj)
    return before is None or not _is_same(before, view.groups.queues.get(mutation.name))


def _is_over(view: View, key: str) -> bool:
    """Whether the job has no pods, or none but pods that have ended."""
    job = view.jobs.by_key.get(key)
    return job is None or view.jobs.counts[:, job.row].sum() == view.jobs.counts[OVER, job.row].sum()


def _is_same(before: Queue, now: Queue | None) -> bool:
    """Whether a queue has changed in nothing but what its status counts."""
    if now is None or now.state != before.state or now.annotations != before.annotations:
        return False
    return now.queue.get("spec") == before.queue.get("spec") and now.allocated == before.allocated


def waits(view: View) -> bool:
    """Whether a task has no place yet, or a PodGroup has not been admitted."""
    jobs = view.jobs
    used = slice(jobs.rows.used)
    outside = (jobs.phase[used] <= PodGroupPhase.PENDING.value) & jobs.has_spec[used]
    return bool(jobs.counts[TaskStatus.PENDING, used].any() or outside.any())
