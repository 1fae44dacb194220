"""The plugin: job order and victims by share; queue order and reclaim in a hierarchy."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pumice.core.plugins.drf.batches import keeps_its_share
from pumice.core.plugins.drf.shares import Shares, changed
from pumice.core.plugins.drf.tree import HierarchicalShares
from pumice.core.session.points.orders import JobColumn
from pumice.core.session.points.victims import Mask
from pumice.core.session.points.votes import Vote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.session.points.batches import BoolArray, TaskBatch
    from pumice.core.session.session import Session

Answer = tuple[list["Task"], Vote]


class Drf:
    """No arguments. The flag enableHierarchy orders queues too, by their annotations (see tree.py)."""

    name = "drf"

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._tree: HierarchicalShares | None = None

    def on_session_open(self, session: Session) -> None:
        """Compute every job's share; register orders, victims and handlers."""
        option = session.config.plugin(self.name)
        self._session = session
        self._shares = Shares(session)
        self._only_victims_count = "drf-counts-victims-only" in session.config.pumice.fix
        session.points.job_order.add(self.name, JobColumn(lambda: self._shares.column))  # the smaller share first
        session.points.preemptable.add(self.name, Mask(self.preemptable))
        if option is not None and option.is_enabled("Hierarchy"):
            session.points.queue_order.add(self.name, self.queue_order)
            session.points.reclaimable.add(self.name, self.reclaimable)
        jobs = session.snapshot.jobs
        session.tellers.shares.append(partial(self._shares.told, jobs.order, jobs.handles))
        session.points.handle(partial(self._shares.follow, 1.0), partial(self._shares.follow, -1.0))

    def on_session_close(self, session: Session) -> None:
        """Nothing to write."""

    @property
    def tree(self) -> HierarchicalShares:
        """The hierarchy as it stands; built when somebody asks for the first time."""
        if self._tree is None:
            session = self._session
            requests: list[list[float]] = session.snapshot.jobs.total.T.tolist()
            allocated = self._shares.all_allocated()
            self._tree = HierarchicalShares(self._shares, len(session.snapshot.jobs.total))
            for job in session.jobs.in_order:
                self._tree.add(job, session.queue_of(job), requests[job.row], allocated[job.row])
            session.points.handle(self._keep_up, self._keep_up)
        return self._tree

    # --- orders
    # -----------------------------------------------------------------------------------------------------------------

    def queue_order(self, left: Queue, right: Queue) -> int:
        """The queue that is further from its weighted share first."""
        difference = self.tree.compare(left, right)
        return (difference > 0) - (difference < 0)

    # --- victims
    # ----------------------------------------------------------------------------------------------------------------

    def preemptable(self, preemptor: Task, batch: TaskBatch) -> BoolArray:
        """Tasks whose job keeps a share that is not smaller than the preemptor's will be.

        As in Volcano every candidate of a job counts against it, taken or not; the fix counts those that are taken.
        """
        own = self._session.job_row(preemptor)
        if own < 0:
            return np.zeros(len(batch.rows), dtype=np.bool_)
        ours = self._shares.share(changed(self._shares.allocated(own), preemptor, 1.0))
        return keeps_its_share(self._shares, batch, ours, only_victims_count=self._only_victims_count)

    def reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> Answer:
        """Tasks without which their queue would still come after the reclaimer's, with the reclaimer placed; each by
        itself.
        """
        tree, job = self.tree, self._session.job_of(reclaimer)
        if job is None:
            return [], Vote.PERMIT
        row = job.row
        before = self._shares.allocated(row)
        tree.set(row, changed(before, reclaimer, 1.0))
        own = self._session.queue_of(job)
        victims = [candidate for candidate in candidates if self._comes_after(tree, own, candidate)]
        tree.set(row, before)
        return victims, Vote.PERMIT

    def _comes_after(self, tree: HierarchicalShares, own: Queue, candidate: Task) -> bool:
        job = self._session.job_of(candidate)
        if job is None:
            return False
        before = self._shares.allocated(job.row)
        tree.set(job.row, changed(before, candidate, -1.0))
        ahead = tree.compare(own, self._session.queue_of(job)) < 0
        tree.set(job.row, before)
        return ahead

    # --- keeping up
    # -------------------------------------------------------------------------------------------------------------

    def _keep_up(self, task: Task, node: int) -> None:
        row = self._session.job_row(task)
        if row >= 0:
            self.tree.set(row, self._shares.allocated(row))
