"""The order in which victims go, for a batch: the same as `core.session.victim_order`, node by node, as one sort.

Only where every order is a key that numbers can express; otherwise None, and the live heap decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from core.session.batches import FloatArray, RowArray, TaskBatch
    from core.session.points import Points


def removal_order(points: Points, batch: TaskBatch) -> RowArray | None:
    """Indices into the batch: node after node, on each the least important first.

    All tasks are of one queue: jobs in reversed JobOrder, then tasks in reversed TaskOrder.
    """
    jobs = [points.batches.job_keys.get(name) for name in points.enabled_names("JobOrder")]
    tasks = [points.task_keys.get(name) for name in points.enabled_names("TaskOrder")]
    facts, rows = batch.facts, batch.rows
    index = facts.index[rows]
    has_index = index >= 0
    if None in jobs or None in tasks or has_index.any() != has_index.all():
        return None
    keys: list[FloatArray | RowArray] = [column(batch.job) for column in jobs if column is not None]
    for name, key in zip(points.enabled_names("TaskOrder"), tasks, strict=True):
        if key is not None:
            keys.append(facts.number(name, rows, key))
    if has_index.any():
        keys.append(index)
    keys += [facts.created[rows], facts.uid[rows]]
    telling = [key for key in keys if len(key) and (key != key[0]).any()]
    order = np.lexsort((*(-key for key in reversed(telling)), batch.node))
    return None if _ties(order, batch, telling) else order


def _ties(order: RowArray, batch: TaskBatch, keys: list[FloatArray | RowArray]) -> bool:
    """Whether two tasks of a node are the same by all keys: the beginnings of their uids do not tell them apart."""
    node = batch.node[order]
    same = node[1:] == node[:-1]
    for key in keys:
        if not same.any():
            return False
        ordered = key[order]
        same &= ordered[1:] == ordered[:-1]
    return bool(same.any())
