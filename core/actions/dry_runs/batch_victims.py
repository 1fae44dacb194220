"""Victims on many nodes at once: the question of `pumice.core.actions.dry_runs.dry_run` asked of columns.

For trials in which no plugin has anything to simulate and every plugin can say of a batch who may be evicted; the
answers are those of node after node, float by float. One after the other, `bench preempt` takes 9 times as long; where
that is needed, asking about the candidates of all nodes at once still saves a fifth (`bench preemptAffinity`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.core.actions.dry_runs.findings import Findings, joined
from pumice.core.actions.victims.asked import asked, movable
from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.victim_order import removal_order

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.batches import BoolArray, FloatArray, RowArray, TaskBatch
    from pumice.core.session.session import Session


def may_go(session: Session, preemptor: Task, nodes: RowArray, *, own_job: bool) -> TaskBatch:
    """Who may be asked to go on these nodes. Only where plugins can say so by columns."""
    batch = asked(session, nodes.tolist(), movable(session, preemptor, own_job=own_job))
    return batch.only(session.points.preemptable.over(preemptor, batch))


class BatchTrial:
    """One preemptor's trial on many nodes. `own_job`: take from its own job, not from others of its queue."""

    def __init__(self, session: Session, preemptor: Task, *, own_job: bool) -> None:
        self._session = session
        self._facts = session.residents
        self._preemptor = preemptor
        self._own_job = own_job

    def find(self, nodes: RowArray) -> Findings | None:
        """The nodes where victims would do, by their place in `nodes`; None when the order of victims cannot be told by
        columns.
        """
        batch = may_go(self._session, self._preemptor, nodes, own_job=self._own_job)
        if not len(batch.rows):
            return joined(())
        order = removal_order(self._session.points, batch)
        if order is None:
            return None
        ordered = batch.only(order)  # an index array: the same tasks in that order
        return self._select(nodes, ordered)

    def _select(self, nodes: RowArray, batch: TaskBatch) -> Findings:
        counts = np.bincount(batch.node, minlength=batch.count)
        place = np.arange(len(batch.rows)) - (np.cumsum(counts) - counts)[batch.node]
        freed = self._freed(nodes, batch, place, int(counts.max()))
        room = np.add.accumulate(freed, axis=2)
        fits = self._fits(room)
        able = np.flatnonzero(fits[np.arange(batch.count), counts])
        removed = fits[able].argmax(axis=1)
        stays_away = self._reprieve(freed[:, able], room[:, able, removed], removed)
        tasks = np.zeros((batch.count, int(counts.max())), dtype=np.intp)
        tasks[batch.node, place] = batch.rows
        counts = np.count_nonzero(stays_away, axis=1)
        away, found = stays_away[counts > 0], able[counts > 0]
        victims = tasks[found, : away.shape[1]][:, ::-1][away[:, ::-1]]  # the last to be removed are the most important
        return Findings(found, counts[counts > 0], victims)

    def _freed(self, nodes: RowArray, batch: TaskBatch, place: RowArray, most: int) -> FloatArray:
        """[dimension, node, 1 + most]: FutureIdle, then what each victim gives back, in order."""
        items = self._preemptor.template.items
        freed = np.zeros((len(items), batch.count, 1 + most))
        requests = self._facts.requests[self._facts.template[batch.rows]]
        for i, (dimension, _) in enumerate(items):
            freed[i, :, 0] = self._session.nodes.future[dimension][nodes]
            freed[i, batch.node, place + 1] = requests[:, dimension]
        return freed

    def _fits(self, room: FloatArray) -> BoolArray:
        fits = np.ones(room.shape[1:], dtype=np.bool_)
        for i, (_, value) in enumerate(self._preemptor.template.items):
            fits &= value - room[i] < MIN_RESOURCE
        return fits

    def _reprieve(self, freed: FloatArray, room: FloatArray, removed: RowArray) -> BoolArray:
        """[node, victim]: who stays away once all that need not go are back, the most important first."""
        most = int(removed.max(initial=0))
        stays_away = np.zeros((len(removed), most), dtype=np.bool_)
        for place in range(most - 1, -1, -1):
            gone = place < removed
            back = room - freed[:, :, place + 1]
            fits = self._fits(back) & gone
            stays_away[:, place] = gone & ~fits
            room = np.where(fits, back, room)
        return stays_away
