# SPDX-License-Identifier: Apache-2.0
"""The order of victims: by queue, then in the reverse of JobOrder, then in that of TaskOrder.

Two are compared in a live heap; those of many nodes, all of one queue, are sorted by the orders' own numbers where they
have some and nothing changes meanwhile. Source: Volcano `framework/session_plugins.go` (BuildVictimsPriorityQueue,
VictimQueueOrderFn).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.core.session.heap import PriorityQueue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.session.points.all_points import Points
    from pumice.core.session.points.nodes import RowArray, TaskBatch
    from pumice.core.session.points.orders import Numbers
    from pumice.core.session.session import Session


def victim_queue(session: Session, victims: Iterable[Task], preemptor: Task) -> PriorityQueue[Task]:
    """Return the victims, least important first: by queue (VictimQueueOrder), by reversed job order, then by reversed
    task order.

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
    """Return VictimQueueOrder: the first plugin that tells the two apart decides, else the reverse of QueueOrder."""
    order = session.points.victim_queue_order(left, right, preemptor)
    return order < 0 if order else not session.points.queue_order.before(left, right)


def removal_order(points: Points, batch: TaskBatch) -> RowArray | None:
    """Return the order of a batch of one queue's tasks as indices: node after node, on each in the order of
    `victim_queue`; None where numbers cannot express it. Then each node is tried by itself, and `bench preempt` takes
    ten times as long.
    """
    jobs, tasks = points.job_order.columns, points.task_order.numbers(batch)
    if jobs is None or tasks is None:
        return None
    keys = [*(column[batch.job] for column in jobs), *tasks]
    # A key that is the same for all tells none apart: the sort is spared it.
    telling = [key for key in keys if len(key) and (key != key[0]).any()]
    # The last key counts first, so the node stands last; the minus turns each order round.
    order = np.lexsort((*(-key for key in reversed(telling)), batch.node))
    return None if _ties(order, batch, telling) else order


def _ties(order: RowArray, batch: TaskBatch, keys: list[Numbers]) -> bool:
    """Return whether two tasks of a node are equal by all keys, the beginnings of their uids among them."""
    node = batch.node[order]
    same = node[1:] == node[:-1]
    for key in keys:
        if not same.any():
            return False
        ordered = key[order]
        same &= ordered[1:] == ordered[:-1]
    return bool(same.any())
