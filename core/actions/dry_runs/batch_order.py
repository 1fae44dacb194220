"""The order in which victims go, for a batch: the same as `core.session.victim_order`, node by node, as one sort.

Only where every order is a key that numbers can express; otherwise None, and the live heap decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from core.session.points.all_points import Points
    from core.session.points.batches import RowArray, TaskBatch
    from core.session.points.orders import Numbers


def removal_order(points: Points, batch: TaskBatch) -> RowArray | None:
    """Indices into the batch: node after node, on each the least important first.

    All tasks are of one queue: jobs in reversed JobOrder, then tasks in reversed TaskOrder.
    """
    columns, task_keys = points.job_order.columns, points.task_order.keys
    facts, rows = batch.facts, batch.rows
    index = facts.index[rows]
    has_index = index >= 0
    if columns is None or task_keys is None or has_index.any() != has_index.all():
        return None
    keys: list[Numbers] = [column[batch.job] for column in columns]
    keys += [facts.number(name, rows, key) for name, key in task_keys]
    if has_index.any():
        keys.append(index)
    keys += [facts.created[rows], facts.uid[rows]]
    telling = [key for key in keys if len(key) and (key != key[0]).any()]
    order = np.lexsort((*(-key for key in reversed(telling)), batch.node))
    return None if _ties(order, batch, telling) else order


def _ties(order: RowArray, batch: TaskBatch, keys: list[Numbers]) -> bool:
    """Whether two tasks of a node are the same by all keys: the beginnings of their uids do not tell them apart."""
    node = batch.node[order]
    same = node[1:] == node[:-1]
    for key in keys:
        if not same.any():
            return False
        ordered = key[order]
        same &= ordered[1:] == ordered[:-1]
    return bool(same.any())
