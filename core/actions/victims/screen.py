"""Which of many nodes are worth a try: those where all who may go would make room enough, looked at as columns.

A node that fails here fails when it is tried; one that passes may still fail. So the answer never changes what comes
out, only how long it takes when whole clusters are full of pods that may not be touched: with every node tried,
`bench preemptFew` takes 20 times as long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.core.actions.victims.asked import asked
from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.trail.records import Ending

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.core.actions.victims.asked import BatchFilter
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.batches import BoolArray, RowArray, TaskBatch
    from pumice.core.session.points.victims import TieredIntersection
    from pumice.core.session.session import Session

TRIED_FIRST = 2  # nodes that are tried before anything is computed for all of them
LOOKED_AT_FIRST, LOOKED_AT_MORE = 64, 4  # then so many at once, then so many times as many


def worth_trying(
    session: Session,
    task: Task,
    nodes: RowArray,
    accepts: BatchFilter,
    point: TieredIntersection[Task],
    *,
    somebody: bool,
) -> Iterator[int]:
    """Places in `nodes` that are worth a try, in order. `point`: where plugins are asked about those that are accepted;
    `somebody`: only nodes where somebody is.
    """
    yield from range(min(TRIED_FIRST, len(nodes)))
    first, size = TRIED_FIRST, LOOKED_AT_FIRST
    while first < len(nodes):
        some = nodes[first : first + size]
        batch = asked(session, some.tolist(), accepts)
        passes = _makes_room(session, task, some, batch, point)
        empty = np.bincount(batch.node, minlength=len(some)) == 0 if somebody else np.zeros(len(some), dtype=np.bool_)
        passes &= ~empty
        for place in np.flatnonzero(~passes).tolist() if session.trail.listens else ():
            ending = Ending.NOBODY_TO_ASK if empty[place] else Ending.TOO_LITTLE
            session.trail.task_ended(task, ending, node=int(some[place]))
        yield from (np.flatnonzero(passes) + first).tolist()
        first, size = first + size, size * LOOKED_AT_MORE


def _makes_room(
    session: Session, task: Task, nodes: RowArray, batch: TaskBatch, point: TieredIntersection[Task]
) -> BoolArray:
    """All of the batch first; where these would do and plugins can be asked by columns, those whom they let go."""
    passes = _fits(session, task, nodes, batch)
    if point.by_columns and np.count_nonzero(passes):
        batch = batch.only(passes[batch.node])
        passes &= _fits(session, task, nodes, batch.only(point.over(task, batch)))
    return passes


def _fits(session: Session, task: Task, nodes: RowArray, batch: TaskBatch) -> BoolArray:
    """Whether the task has room where all tasks of the batch have gone. [len(nodes)]"""
    passes = np.ones(len(nodes), dtype=np.bool_)
    requests = batch.facts.requests[batch.facts.template[batch.rows]]
    for dimension, value in task.template.items:
        given = np.bincount(batch.node, weights=requests[:, dimension], minlength=len(nodes))
        # twice the tolerance: sums in another order may differ in the last bits
        passes &= value - (session.nodes.future[dimension][nodes] + given) < 2 * MIN_RESOURCE
    return passes
