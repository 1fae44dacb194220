# SPDX-License-Identifier: Apache-2.0
"""drf: order jobs by their dominant share; with a hierarchy also queues.

Source: Volcano `plugins/drf`.
"""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.config.arguments import PluginArguments
from pumice.core.go_numbers import AS_PYTHON, value_of
from pumice.core.messages.queue_tables import JobShares
from pumice.core.plugins.plugin import BuiltInPlugin, OrderNumber
from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.points.orders import JobColumn
from pumice.core.session.points.victims import Mask
from pumice.core.session.points.votes import Vote
from pumice.core.state.dimensions import floats, lines
from pumice.core.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.config.schema import PluginOption
    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.session.points.nodes import BoolArray, FloatArray, RowArray, TaskBatch
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job

# --- Dominant shares

FEW: Final = 8
"""Rows that cost less, one by one, than to read all."""


class Shares:
    """Shares of jobs. `of[row]`: the largest allocated / total of a job, over dimensions where the cluster has at least
    0.1.

    Bound, binding, running and allocated tasks count; pipelined ones too, from the moment the session promises them
    room.
    """

    def __init__(self, session: Session) -> None:
        scalars = session.total.scalars or {}
        named = {session.dims.index(name): amount for name, amount in scalars.items()}
        totals = {0: session.total.milli_cpu, 1: session.total.memory, **named}
        self.totals = [(dimension, total) for dimension, total in sorted(totals.items()) if total >= MIN_RESOURCE]
        self._of_task, self._known = session.jobs.of_task, session.jobs.known
        self._allocated = np.empty_like(session.snapshot.jobs.allocated)
        self._lines = lines(self._allocated)
        self.column = np.empty(self._allocated.shape[1])
        self.of = floats(self.column)
        self.read(session)

    def read_again(self, session: Session) -> None:
        """Read what those jobs have that have changed."""
        rows, lines = set(session.changed_jobs), session.jobs.allocated_at
        if len(rows) > FEW:
            self.read(session)
            return
        for row in rows:
            amounts = [line[row] for line in lines]
            for mine, amount in zip(self._lines, amounts, strict=True):
                mine[row] = amount
            self.of[row] = self.share(amounts)

    def read(self, session: Session) -> None:
        """Read what the jobs have as the session opens."""
        self._allocated[:] = session.snapshot.jobs.allocated
        shares = self.column
        shares.fill(0.0)
        for dimension, total in self.totals:
            np.maximum(shares, self._allocated[dimension] / total, out=shares)

    def share(self, amounts: Sequence[float]) -> float:
        """Return the dominant share of these amounts, float by dimension."""
        share = 0.0
        for dimension, total in self.totals:
            share = max(share, amounts[dimension] / total)
        return share

    def allocated(self, row: int) -> list[float]:
        """Return what a job has, by dimension."""
        return [line[row] for line in self._lines]

    def allocated_of(self, rows: RowArray) -> FloatArray:
        """Return what these jobs have, [dimension, job]."""
        return self._allocated[:, rows]

    def all_allocated(self) -> list[list[float]]:
        """Return what every job has, by row, then dimension."""
        found: list[list[float]] = self._allocated.T.tolist()
        return found

    def told(self, order: RowArray, handles: Sequence[Job | None]) -> JobShares:
        """Return the shares of the jobs of these rows, and of their namespaces."""
        rows: list[int] = order.tolist()
        keys = [job.key for row in rows if (job := handles[row]) is not None]
        names, of = np.unique([key.partition("/")[0] for key in keys], return_inverse=True)
        shares = np.zeros(len(names))
        for dimension, total in self.totals:
            np.maximum(shares, np.bincount(of, self._allocated[dimension, rows], len(names)) / total, out=shares)
        return JobShares(keys, self.column[rows].tobytes(), names.tolist(), shares.tobytes())

    def follow(self, sign: float, task: Task, node: int) -> None:
        """Follow a task that was placed (1) or taken off (-1)."""
        row, lines = self._of_task[task.row], self._lines
        # Pods without a job in the session have no share to move.
        if row < 0 or not self._known[row]:
            return
        for dimension, value in task.template.items:
            lines[dimension][row] += sign * value
        share = 0.0
        for dimension, total in self.totals:
            part = lines[dimension][row] / total
            if part > share:
                share = part
        self.of[row] = share


def changed(amounts: list[float], task: Task, sign: float) -> list[float]:
    """Return the amounts with the task's request added (1) or taken off (-1)."""
    result = list(amounts)
    for dimension, value in task.template.items:
        result[dimension] += sign * value
    return result


# --- Hierarchical drf
# Source: Volcano drf (`hierarchicalNode`, `updateHierarchicalShare`). A queue's place is its annotation
# volcano.sh/hierarchy ("root/a/b"), the weights along it volcano.sh/hierarchy-weights ("1/2/3"). Jobs are leaves
# below their queue's last segment. Everything inside is a function of the leaves and of what is free in the cluster,
# so only the branches that changed are worked out again, and only on demand.

HIERARCHY: Final = "volcano.sh/hierarchy"
WEIGHTS: Final = "volcano.sh/hierarchy-weights"


class HierarchicalNode:
    """A node of the tree: `children` by segment or job key, None for a job. `saturated`: it cannot use more.

    `allocated` by dimension; `request` (jobs only) is all the job asks for, placed or not.
    """

    __slots__ = ("allocated", "children", "order", "parent", "request", "saturated", "share", "stale", "weight")

    def __init__(
        self, parent: HierarchicalNode | None, weight: float, allocated: list[float], request: list[float] | None = None
    ) -> None:
        self.parent = parent
        self.weight = weight
        self.request = request
        self.children: dict[str, HierarchicalNode] = {}
        self.order: list[HierarchicalNode] | None = None
        self.allocated = allocated
        self.share = 0.0
        self.saturated = False
        self.stale = True

    def touch(self) -> None:
        """Note that the values of this node and of its ancestors must be worked out again."""
        node: HierarchicalNode | None = self
        # Above a stale node all are stale already: the walk ends early.
        while node is not None and not node.stale:
            node.stale = True
            node = node.parent

    def in_order(self) -> list[HierarchicalNode]:
        """Return the children by key."""
        if self.order is None:
            self.order = [self.children[key] for key in sorted(self.children)]
        return self.order


class HierarchicalShares:
    """The tree of one session. `total_allocated` by dimension; `as_python`: the rule for weights before version 6."""

    def __init__(self, shares: Shares, height: int, *, as_python: bool = False) -> None:
        self._shares = shares
        self._as_python = as_python
        self._height = height
        self._root = HierarchicalNode(None, 1.0, [0.0] * height)
        self._queues: dict[str, HierarchicalNode] = {}
        self._jobs: dict[int, HierarchicalNode] = {}
        self.total_allocated = [0.0] * height
        self._demanding: frozenset[int] = frozenset()

    def add(self, job: Job, queue: Queue, request: list[float], allocated: list[float]) -> None:
        """Attach a job under its queue; the first job of a path decides its weights."""
        parent = self._queues.get(queue.name)
        if parent is None:
            parent = self._queues[queue.name] = self._place(queue)
        leaf = parent.children[job.key] = self._jobs[job.row] = HierarchicalNode(parent, 1.0, allocated, request)
        parent.order = None
        leaf.share = self._shares.of[job.row]
        total = self.total_allocated
        for dimension, amount in enumerate(allocated):
            total[dimension] += amount

    def _place(self, queue: Queue) -> HierarchicalNode:
        """Return the node of the queue's last segment, made with all new ones above it."""
        node, weights = self._root, queue.annotations.get(WEIGHTS, "").split("/")
        for depth, segment in enumerate(_path(queue)[1:], start=1):
            child = node.children.get(segment)
            if child is None:
                child = node.children[segment] = HierarchicalNode(
                    node, _weight(weights, depth, as_python=self._as_python), [0.0] * self._height
                )
                node.order = None
            node = child
        return node

    def set(self, row: int, allocated: list[float]) -> None:
        """Set the amounts of a job; the cluster's sum follows."""
        leaf = self._jobs[row]
        before = leaf.allocated
        moved = zip(self.total_allocated, allocated, before, strict=True)
        self.total_allocated = [total + (new - old) for total, new, old in moved]
        leaf.allocated, leaf.share = allocated, self._shares.share(allocated)
        leaf.touch()

    def compare(self, left: Queue, right: Queue) -> float:
        """Compare two queues, below 0 when left goes first. From the root down: saturated ones last, then the smaller
        share by weight.
        """
        self._update()
        a: HierarchicalNode | None = self._root
        b: HierarchicalNode | None = self._root
        paths = _path(left), _path(right)
        depth = min(len(paths[0]), len(paths[1]))
        for level in range(1, depth + 1):
            if a is None or b is None:
                return 0.0  # a queue without jobs is not in the tree
            if a.saturated != b.saturated:
                return 1.0 if a.saturated else -1.0
            ours, theirs = a.share / a.weight, b.share / b.weight
            # Compared exactly: only equal floats let the next level decide.
            if ours != theirs:
                return ours - theirs
            if level < depth:
                a, b = a.children.get(paths[0][level]), b.children.get(paths[1][level])
        return 0.0

    # --- working out
    # ------------------------------------------------------------------------------------------------------------

    def _update(self) -> None:
        demanding = frozenset(d for d, total in self._shares.totals if self.total_allocated[d] < total)
        # A dimension that fills up, or gets room, may turn any job's saturation.
        if demanding != self._demanding:
            self._demanding = demanding
            for leaf in self._jobs.values():
                leaf.touch()
        # The list grows while it is read: parents stand before their children.
        stale = [self._root] if self._root.stale else []
        for node in stale:
            node.stale = False
            stale += [child for child in node.children.values() if child.stale]
        for node in reversed(stale):  # children before their parents
            self._settle(node)

    def _settle(self, node: HierarchicalNode) -> None:
        if node.request is not None:
            node.saturated = self._is_saturated(node.allocated, node.request)
            return
        children = node.in_order()
        least = 1.0
        for child in children:
            if child.share != 0 and not child.saturated and child.share < least:
                least = child.share
        node.allocated = self._sum(children, least)
        node.share = self._shares.share(node.allocated)
        node.saturated = all(child.saturated for child in children)

    def _sum(self, children: list[HierarchicalNode], least: float) -> list[float]:
        """Sum up children: saturated ones as they are, the others cut to the least dominant share among them."""
        total = [0.0] * self._height
        for child in children:
            if child.share == 0:
                continue
            if child.saturated:
                total = [a + b for a, b in zip(total, child.allocated, strict=True)]
            else:
                ratio = least / child.share
                total = [a + b * ratio for a, b in zip(total, child.allocated, strict=True)]
        return total

    def _is_saturated(self, allocated: list[float], request: list[float]) -> bool:
        """Return whether the job has all that it requests in some dimension, or the cluster has no more."""
        for dimension, amount in enumerate(allocated):
            wanted = request[dimension]
            if amount >= MIN_RESOURCE and wanted != 0 and (amount >= wanted or dimension not in self._demanding):
                return True
        return False


def _path(queue: Queue) -> list[str]:
    return queue.annotations.get(HIERARCHY, "").split("/")


def _weight(weights: list[str], depth: int, *, as_python: bool) -> float:
    """Return the weight at that depth; 1 for one that is below 1, absent, or not a number."""
    return max(value_of(weights[depth], as_python=as_python), 1.0) if depth < len(weights) else 1.0


# --- Victims

SHARE_DELTA: Final = 0.000001


def keeps_its_share(shares: Shares, batch: TaskBatch, ours: float, *, only_victims_count: bool) -> BoolArray:
    """Return whether each candidate's job, without the candidate and those of its job before it on its node, has a
    dominant share of at least `ours`, [M]. `only_victims_count`: of those before it only the victims are left out.

    Subtracted one after the other: the floats come out as if task after task had been asked.
    """
    order, rank = batch.ranks()
    jobs = batch.job[order]
    requests = batch.facts.requests[batch.facts.template[batch.rows[order]]].T
    left = shares.allocated_of(jobs)
    keeps = np.empty(len(order), dtype=np.bool_)
    for place in range(int(rank.max(initial=-1)) + 1):
        at = np.flatnonzero(rank == place)
        # Each task starts from what the one before it on its node has left of the job.
        if place:
            left[:, at] = left[:, at - 1]
        after = left[:, at]
        after[: len(requests)] -= requests[:, at]
        theirs = np.zeros(len(at))
        for dimension, total in shares.totals:
            np.maximum(theirs, after[dimension] / total, out=theirs)
        keeps[at] = (ours < theirs) | (np.abs(ours - theirs) <= SHARE_DELTA)
        left[:, at] = np.where(keeps[at], after, left[:, at]) if only_victims_count else after
    mask = np.empty(len(order), dtype=np.bool_)
    mask[order] = keeps & (jobs >= 0)
    return mask


Answer = tuple[list["Task"], Vote]


class Drf(BuiltInPlugin):
    """Compares dominant shares. The flag enableHierarchy orders queues too (see `HierarchicalShares`)."""

    name = "drf"
    says = "puts jobs with the smallest dominant share first"
    listens = ("JobOrder", "Preemptable", "Hierarchy", "QueueOrder", "Reclaimable")
    says_at = MappingProxyType({"Hierarchy": "goes by the tree of queues in their annotations volcano.sh/hierarchy"})
    orders_by = OrderNumber("dominant share")
    only_answers = True
    vocabulary = Vocabulary((WEIGHTS,))

    @classmethod
    def is_asked_at(cls, point: str, option: PluginOption) -> bool:
        """Return whether the point is asked: rules about queues exist only with enableHierarchy."""
        of_queues = point in ("QueueOrder", "Reclaimable")
        return point in cls.listens and (not of_queues or option.is_enabled("Hierarchy"))

    def __init__(self, arguments: PluginArguments) -> None:
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
            session.points.tells_reclaimers_apart = True  # the tree saturates a job by all that it requests
        self._tell(session)
        session.points.handle(partial(self._shares.follow, 1.0), partial(self._shares.follow, -1.0), takes_back=True)

    def _tell(self, session: Session) -> None:
        jobs = session.snapshot.jobs
        session.tellers.shares.append(partial(self._shares.told, jobs.order, jobs.handles))

    def can_go_on(self, session: Session) -> bool:
        """Return whether no tree was made: it belongs to one session."""
        return self._tree is None

    def on_session_renew(self, session: Session) -> None:
        """Compute every job's share again."""
        self._shares.read_again(session)
        self._tell(session)

    def on_session_close(self, session: Session) -> None:
        """Write nothing."""

    @property
    def tree(self) -> HierarchicalShares:
        """Return the hierarchy as it stands; built on first use."""
        if self._tree is None:
            session = self._session
            requests: list[list[float]] = session.snapshot.jobs.total.T.tolist()
            allocated = self._shares.all_allocated()
            as_python = AS_PYTHON in session.config.pumice.fix
            self._tree = HierarchicalShares(self._shares, len(session.snapshot.jobs.total), as_python=as_python)
            # Only queues with jobs are in the tree, as in drf.go.
            for job in session.jobs.in_order:
                self._tree.add(job, session.queue_of(job), requests[job.row], allocated[job.row])
            # Registered after the handlers of the shares, so those have followed when the tree asks for them.
            session.points.handle(self._keep_up, self._keep_up)
        return self._tree

    # --- orders
    # -----------------------------------------------------------------------------------------------------------------

    def queue_order(self, left: Queue, right: Queue) -> int:
        """Compare queues: the queue that is further from its weighted share first."""
        difference = self.tree.compare(left, right)
        return (difference > 0) - (difference < 0)

    # --- victims
    # ----------------------------------------------------------------------------------------------------------------

    def preemptable(self, preemptor: Task, batch: TaskBatch) -> BoolArray:
        """Return tasks whose job keeps a share that is not smaller than the preemptor's future share.

        As in Volcano every candidate of a job counts against it, taken or not; the fix counts those that are taken.
        """
        own = self._session.job_row(preemptor)
        if own < 0:
            return np.zeros(len(batch.rows), dtype=np.bool_)
        ours = self._shares.share(changed(self._shares.allocated(own), preemptor, 1.0))
        return keeps_its_share(self._shares, batch, ours, only_victims_count=self._only_victims_count)

    def reclaimable(self, reclaimer: Task, candidates: Sequence[Task]) -> Answer:
        """Return tasks without which their queue would still come after the reclaimer's with the reclaimer placed, each
        by itself.
        """
        tree, job = self.tree, self._session.job_of(reclaimer)
        if job is None:
            return [], Vote.PERMIT
        row = job.row
        before = self._shares.allocated(row)
        tree.set(row, changed(before, reclaimer, 1.0))
        own = self._session.queue_of(job)
        victims = [candidate for candidate in candidates if self._comes_after(tree, own, candidate)]
        # The tree is asked as if, and put back: nothing was placed.
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
