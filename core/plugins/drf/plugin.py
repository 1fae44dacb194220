"""The plugin: job order and victims by share; queue order and reclaim in a hierarchy."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from core.plugins.drf.batches import shares_without
from core.plugins.drf.shares import Shares, changed
from core.plugins.drf.tree import HierarchicalShares
from core.session.points import Vote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.objects.pod import Task
    from core.objects.queue import Queue
    from core.session.batches import BoolArray, FloatArray, RowArray, TaskBatch
    from core.session.session import Session
    from core.state.jobs import Job

SHARE_DELTA: Final = 0.000001

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
        session.points.add("JobOrder", self.name, self.job_order)
        session.points.job_keys[self.name] = self.job_key
        session.points.add("Preemptable", self.name, self.preemptable)
        session.points.batches.job_keys[self.name] = self.job_keys
        if not self._only_victims_count:
            session.points.batches.evictable.setdefault("Preemptable", {})[self.name] = self.preemptable_mask
        if option is not None and option.is_enabled("Hierarchy"):
            session.points.add("QueueOrder", self.name, self.queue_order)
            session.points.add("Reclaimable", self.name, self.reclaimable)
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

    def job_order(self, left: Job, right: Job) -> int:
        """Smaller share first."""
        a, b = self._shares.of[left.row], self._shares.of[right.row]
        return (a > b) - (a < b)

    def job_key(self, job: Job) -> float:
        """The same as a sort key."""
        return self._shares.of[job.row]

    def job_keys(self, rows: RowArray) -> FloatArray:
        """Job order as sort keys, for many jobs."""
        return self._shares.column[rows]

    def queue_order(self, left: Queue, right: Queue) -> int:
        """The queue that is further from its weighted share first."""
        difference = self.tree.compare(left, right)
        return (difference > 0) - (difference < 0)

    # --- victims
    # ----------------------------------------------------------------------------------------------------------------

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> Answer:
        """Tasks whose job keeps a share that is not smaller than the preemptor's will be.

        As in Volcano every candidate of a job counts against it, taken or not; the fix counts those that are taken.
        """
        own = self._session.job_row(preemptor)
        if own < 0:
            return [], Vote.PERMIT
        ours = self._shares.share(changed(self._shares.allocated(own), preemptor, 1.0))
        left: dict[int, list[float]] = {}
        victims: list[Task] = []
        for candidate in candidates:
            row = self._session.job_row(candidate)
            if row < 0:
                continue
            before = left[row] if row in left else self._shares.allocated(row)
            after = changed(before, candidate, -1.0)
            theirs = self._shares.share(after)
            taken = ours < theirs or abs(ours - theirs) <= SHARE_DELTA
            left[row] = after if taken or not self._only_victims_count else before
            if taken:
                victims.append(candidate)
        return victims, Vote.PERMIT

    def preemptable_mask(self, preemptor: Task, batch: TaskBatch) -> BoolArray:
        """`preemptable` for a batch: each node is asked by itself."""
        own = self._session.job_row(preemptor)
        if own < 0:
            return np.zeros(len(batch.rows), dtype=np.bool_)
        ours = self._shares.share(changed(self._shares.allocated(own), preemptor, 1.0))
        theirs = shares_without(self._shares, batch)
        mask: BoolArray = (ours < theirs) | (np.abs(ours - theirs) <= SHARE_DELTA)
        return mask

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
