"""What news leave everything as it was: a cycle after them, while nobody waits for a place, comes to nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.core.life.task import TaskStatus
from pumice.core.objects.queue import is_counted

if TYPE_CHECKING:
    from pumice.core.fold.shown import Shown
    from pumice.core.messages.events import Mutation
    from pumice.core.state.view import View

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
    before = view.queues.get(mutation.name) if kind == "Queue" else None
    shown.see(mutation.type, obj)
    now = view.queues.get(mutation.name)
    return before is None or now is None or now.allocated != before.allocated or not is_counted(before, now)


def _is_over(view: View, key: str) -> bool:
    """Whether the job has no pods, or none but pods that have ended."""
    job = view.jobs.by_key.get(key)
    return job is None or view.jobs.counts[:, job.row].sum() == view.jobs.counts[OVER, job.row].sum()
