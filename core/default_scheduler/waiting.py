"""Which pods wait for Kubernetes' own scheduler, and in what order they are taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from pumice.core.default_scheduler.profile import is_served
from pumice.core.life.task import TaskStatus
from pumice.core.state.tasks import NOWHERE

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.state.snapshot import Snapshot

PENDING: Final = TaskStatus.PENDING.value


def waiting(snapshot: Snapshot) -> list[Task]:
    """By priority, then by age and name (PrioritySort)."""
    columns = snapshot.tasks
    alone = (columns.status == PENDING) & (columns.job == NOWHERE)
    handles, rows = columns.handles, cast("list[int]", alone.nonzero()[0].tolist())
    found = [task for row in rows if (task := handles[row]) is not None]
    return sorted([task for task in found if is_served(task) and not task.gated and not task.deleting], key=_turn)


def _turn(task: Task) -> tuple[int, float, str]:
    return -importance(task), task.created, task.key


def importance(task: Task) -> int:
    """spec.priority alone: annotations of Volcano's say nothing here."""
    return task.pod_priority or 0
