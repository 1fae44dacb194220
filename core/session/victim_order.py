"""Which of several victims goes first. Source: Volcano `framework/session_plugins.go` (BuildVictimsPriorityQueue,
VictimQueueOrderFn).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.session.heap import PriorityQueue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.objects.pod import Task
    from core.objects.queue import Queue
    from core.session.session import Session


def victim_queue(session: Session, victims: Iterable[Task], preemptor: Task) -> PriorityQueue[Task]:
    """The victims, least important first: by queue (VictimQueueOrder), by reversed job order, then by reversed task
    order.

    Tasks whose job has left the session come first. When the preemptor's has, queues do not count.
    """
    own = session.job_of(preemptor)

    def before(left: Task, right: Task) -> bool:
        later = not session.points.task_order.before(left, right)
        if left.job == right.job:
            return later
        a, b = session.job_of(left), session.job_of(right)
        if a is None or b is None:
            return later if a is b else a is None
        if own is not None and a.pod_group.queue != b.pod_group.queue:
            return victim_queue_before(session, session.queue_of(a), session.queue_of(b), session.queue_of(own))
        order = session.points.job_order(a, b)
        return order > 0 if order else later

    return PriorityQueue(before, victims)


def victim_queue_before(session: Session, left: Queue, right: Queue, preemptor: Queue) -> bool:
    """VictimQueueOrder: the first plugin that tells the two apart decides, else the reverse of QueueOrder."""
    order = session.points.victim_queue_order(left, right, preemptor)
    return order < 0 if order else not session.points.queue_order.before(left, right)
