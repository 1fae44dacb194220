# SPDX-License-Identifier: Apache-2.0
"""Dry runs of topology-aware preemption: one preemptor is tried on many nodes, and the node with the least loss is
taken.

A dry run only reads the session. Chunks may be tried in any order, here or by workers, with the same findings; what
counts is the first `want` findings in row order. Source: Volcano `actions/preempt` (DryRunPreemption), with one
worker's order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pumice.core.actions.victims.on_node import add_request, asked, available, fits, make_room, movable
from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.victim_order import removal_order, victim_queue

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.session.points.all_points import State
    from pumice.core.session.points.nodes import BoolArray, FloatArray, RowArray, TaskBatch
    from pumice.core.session.residents import Residents
    from pumice.core.session.session import Session

    Steps = Generator["DryRun", "Candidate | None", None]

# --- Victims on many nodes together
# For trials in which no plugin has anything to simulate and every plugin can say of a batch who may be evicted; the
# answers are those of node after node, float by float. One after the other, `bench preempt` takes 9 times as long;
# where that is needed, asking about the candidates of all nodes in one batch still saves a fifth (`bench
# preemptAffinity`).

# --- Findings
# Between workers a finding is its row and the victims' task rows as little-endian int64, most important first.

TASK_ROWS = np.dtype("<i8")
Finding = tuple[int, bytes]
LIFT = 2**31  # makes every priority positive, so that fewer victims of negative priority are less loss


class Candidate(NamedTuple):
    """A node's row and the victims that must leave it, most important first."""

    node: int
    victims: tuple[Task, ...]


class Findings(NamedTuple):
    """Candidate nodes with their victims. `places` [n]: the place of each node in the order of candidates, ascending;
    `counts` [n]: its number of victims; `victims` [sum of counts]: task rows, node after node, most important first.
    """

    places: RowArray
    counts: RowArray
    victims: RowArray

    def first(self, count: int) -> Findings:
        """Return the first `number` findings."""
        counts = self.counts[:count]
        return Findings(self.places[:count], counts, self.victims[: int(counts.sum())])

    def candidates(self, facts: Residents, nodes: RowArray) -> list[Candidate]:
        """Return the candidates with the tasks themselves."""
        ends: list[int] = np.cumsum(self.counts).tolist()
        rows: list[int] = nodes[self.places].tolist()
        spans = zip(rows, pairwise([0, *ends]), strict=True)
        return [Candidate(row, tuple(facts.tasks(self.victims[start:end]))) for row, (start, end) in spans]

    def packed(self) -> list[Finding]:
        """Return each node's place with the rows of its victims as bytes, to be sent between processes."""
        blob = self.victims.astype(TASK_ROWS, copy=False).tobytes()
        ends: list[int] = (TASK_ROWS.itemsize * np.cumsum(self.counts)).tolist()
        places: list[int] = self.places.tolist()
        return [(place, blob[start:end]) for place, (start, end) in zip(places, pairwise([0, *ends]), strict=True)]

    def least_loss(self, facts: Residents, nodes: RowArray, now: float) -> Candidate | None:
        """Return the node where eviction loses least (pickOneNodeForPreemption): the lowest first victim, the smallest
        sum of priorities, the fewest victims, the shortest run time, the lowest node name.
        """
        if not len(self.places):
            return None
        # Findings of workers name rows whose columns may not be filled in here yet.
        facts.learn(self.victims)
        begin = np.cumsum(self.counts) - self.counts
        priority, started = facts.pod_priority[self.victims], facts.started[self.victims]
        highest = np.maximum.reduceat(priority, begin)
        total = np.add.reduceat(priority + LIFT, begin)
        # Among the victims of highest priority the earliest start counts; a pod that has not started counts as started
        # now.
        counts_for_start = priority == np.repeat(highest, self.counts)
        starts = np.where(counts_for_start, np.where(started == 0.0, now, started), np.inf)
        rows = nodes[self.places]
        # The last key counts first. Volcano reads the highest priority off the first victim alone.
        order = np.lexsort((rows, -np.minimum.reduceat(starts, begin), self.counts, total, priority[begin]))
        best = int(order[0])
        victims = self.victims[begin[best] : begin[best] + self.counts[best]]
        return Candidate(int(rows[best]), tuple(facts.tasks(victims)))


def joined(parts: Sequence[Findings]) -> Findings:
    """Return several findings as one; their places must ascend."""
    if not parts:
        nothing = np.zeros(0, dtype=np.intp)
        return Findings(nothing, nothing, nothing)
    places, counts, victims = zip(*parts, strict=True)
    return Findings(np.concatenate(places), np.concatenate(counts), np.concatenate(victims))


def one_by_one(found: Sequence[tuple[int, Sequence[int]]]) -> Findings:
    """Return the findings of (place, task rows of the victims), ordered by place."""
    counts = np.array([len(victims) for _, victims in found], dtype=np.intp)
    rows = [row for _, victims in found for row in victims]
    return Findings(np.array([place for place, _ in found], dtype=np.intp), counts, np.array(rows, dtype=np.intp))


def unpacked(found: Sequence[Finding]) -> Findings:
    """Return the findings that workers sent, in whatever order they come."""
    ordered = sorted(found)
    counts = np.array([len(blob) // TASK_ROWS.itemsize for _, blob in ordered], dtype=np.intp)
    victims = np.frombuffer(b"".join(blob for _, blob in ordered), dtype=TASK_ROWS).astype(np.intp, copy=False)
    return Findings(np.array([place for place, _ in ordered], dtype=np.intp), counts, victims)


def may_go(session: Session, preemptor: Task, nodes: RowArray, *, own_job: bool) -> TaskBatch:
    """Return the candidates for eviction on these nodes. Only where plugins can say so by columns."""
    batch = asked(session, nodes.tolist(), movable(session, preemptor, own_job=own_job))
    return batch.only(session.points.preemptable.over(preemptor, batch))


class BatchTrial:
    """One preemptor's trial on many nodes. `own_job`: take victims from its own job, not from others of its queue."""

    def __init__(self, session: Session, preemptor: Task, *, own_job: bool) -> None:
        self._session = session
        self._facts = session.residents
        self._preemptor = preemptor
        self._own_job = own_job

    def find(self, nodes: RowArray) -> Findings | None:
        """Return the nodes where evicting victims suffices, by their place in `nodes`; None when columns cannot tell
        the order of victims.
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
        # Victim by victim: a sum in another order could differ in the last bits from the trial node after node.
        room = np.add.accumulate(freed, axis=2)
        fits = self._fits(room)
        # Nodes where the task fits once all candidates have gone (ValidateVictims).
        able = np.flatnonzero(fits[np.arange(batch.count), counts])
        # The first place that fits: so many victims are removed.
        removed = fits[able].argmax(axis=1)
        stays_away = self._reprieve(freed[:, able], room[:, able, removed], removed)
        tasks = np.zeros((batch.count, int(counts.max())), dtype=np.intp)
        tasks[batch.node, place] = batch.rows
        counts = np.count_nonzero(stays_away, axis=1)
        away, found = stays_away[counts > 0], able[counts > 0]
        victims = tasks[found, : away.shape[1]][:, ::-1][away[:, ::-1]]  # the last to be removed are the most important
        return Findings(found, counts[counts > 0], victims)

    def _freed(self, nodes: RowArray, batch: TaskBatch, place: RowArray, most: int) -> FloatArray:
        """Return [dimension, node, 1 + most]: FutureIdle, then what each victim frees, in order."""
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
        """Return [node, victim]: the victims that remain after all unnecessary ones were put back, the most important
        first.
        """
        most = int(removed.max(initial=0))
        stays_away = np.zeros((len(removed), most), dtype=np.bool_)
        for place in range(most - 1, -1, -1):
            gone = place < removed
            back = room - freed[:, :, place + 1]
            fits = self._fits(back) & gone
            stays_away[:, place] = gone & ~fits
            room = np.where(fits, back, room)
        return stays_away


# --- The trial of one node
# Victims are taken away until the task fits; then those who need not go are given back. Nothing in the session
# changes: the node's room is a copy, plugins keep their part of the trial in its state. Source: Volcano
# `actions/preempt` (SelectVictimsOnNode).

FIX = "dry-run-asks-queue"


@dataclass(slots=True)
class NodeTrial:
    """A copy of one node: its free capacity for the preemptor, and what the plugins simulate."""

    session: Session
    preemptor: Task
    queue: Queue
    node: int
    room: dict[int, float]
    state: State = field(default_factory=dict[str, Any])

    def remove(self, task: Task) -> bool:
        """Take the task off. False: a plugin failed."""
        error = self.session.points.simulate_remove_task(self.state, self.preemptor, task, self.node)
        if error is None:
            add_request(self.room, task)
        return error is None

    def add(self, task: Task) -> bool:
        """Put it back."""
        error = self.session.points.simulate_add_task(self.state, self.preemptor, task, self.node)
        if error is None:
            for dimension, value in task.template.items:
                if dimension in self.room:
                    self.room[dimension] -= value
        return error is None

    def admits(self) -> bool:
        """Return whether the filters let the preemptor in, as the trial stands."""
        return self.session.points.simulate_predicate(self.state, self.preemptor, self.node) is None

    def fits(self) -> bool:
        """Return whether the queue may have the preemptor, the node has room, and the filters agree."""
        if not self.session.points.simulate_allocatable(self.state, self.queue, self.preemptor):
            return False
        return fits(self.preemptor, self.room) and self.admits()


def select_victims(
    session: Session, preemptor: Task, queue: Queue, node: int, candidates: Sequence[Task]
) -> list[Task]:
    """Return the candidates on the node that must go so that the preemptor fits, most important first; empty where it
    cannot fit, or fits without an eviction.
    """
    if not make_room(session, preemptor, node, candidates):
        return []
    trial = NodeTrial(session, preemptor, queue, node, available(session, preemptor, node, ()))
    removed: list[Task] = []
    waiting = victim_queue(session, candidates, preemptor)
    while len(waiting):
        task = waiting.pop()
        removed.append(task)
        if not trial.remove(task):
            return []
        if trial.fits():
            break
    # Volcano does not ask Allocatable again: where the queue never had room, all that was taken away stays away.
    may_have = trial.fits() if FIX in session.config.pumice.fix else trial.admits()
    if not removed or not may_have:
        return []
    return _reprieve(trial, removed)


def _reprieve(trial: NodeTrial, removed: list[Task]) -> list[Task]:
    """Put back victims that the preemptor fits beside, the most important first."""
    victims: list[Task] = []
    for task in reversed(removed):
        if not trial.add(task):
            return []
        if not trial.fits():
            if not trial.remove(task):
                return []
            victims.append(task)
    return victims


MARGIN = 8  # rows beyond `want` in the first chunk: a few nodes may not do


class DryRun:
    """A dry run over nodes. `nodes`: candidate nodes in the order in which they count; `want`: how many findings are
    enough; `own_job`: take victims from the preemptor's own job, not from others of its queue.

    Rows 0..len(nodes)-1 are the nodes' places in that order.
    """

    def __init__(
        self,
        session: Session,
        preemptor: Task,
        nodes: RowArray,
        want: int,
        *,
        own_job: bool,
    ) -> None:
        self.session = session
        self._facts = session.residents
        self.preemptor = preemptor
        self._own_job = own_job
        self._batch = _batch_trial(session, preemptor, own_job=own_job)
        self.nodes = nodes
        self.want = want

    def candidates(self, first: int, last: int) -> list[Candidate]:
        """Return the nodes of rows first..last-1 on which victims suffice."""
        return self._found(first, last, last - first).candidates(self._facts, self.nodes)

    def run(self) -> Candidate | None:
        """Return the finding with the least loss among the first `want` findings; None when nothing is found. The rows
        are tried in chunks that double while too few are found.
        """
        parts, left, first, size = list[Findings](), self.want, 0, self.want + MARGIN
        while first < len(self.nodes) and left > 0:
            part = self._found(first, min(first + size, len(self.nodes)), left)
            parts.append(part.first(left))
            left -= len(part.places)
            first, size = first + size, size * 2
        return self._best(joined(parts))

    def _found(self, first: int, last: int, enough: int) -> Findings:
        """Return the findings of a chunk; where nodes are tried one by one, no more than are enough."""
        nodes = self.nodes[first:last]
        found = self._batch.find(nodes) if self._batch is not None else None
        if found is None:
            found = one_by_one([*islice(self._each(nodes), enough)])
        return found._replace(places=found.places + first)

    def _each(self, nodes: RowArray) -> Iterator[tuple[int, list[int]]]:
        job = self.session.job_of(self.preemptor)
        assert job is not None
        queue = self.session.queue_of(job)
        for place, (node, candidates) in enumerate(zip(nodes.tolist(), self._candidates(nodes), strict=True)):
            victims = select_victims(self.session, self.preemptor, queue, node, candidates)
            if victims:
                yield place, [task.row for task in victims]

    def _candidates(self, nodes: RowArray) -> Iterable[Sequence[Task]]:
        """Yield the candidates for eviction, node by node; all nodes are asked in one call where plugins can answer by
        columns.
        """
        preemptable = self.session.points.preemptable
        if preemptable.by_columns:
            return may_go(self.session, self.preemptor, nodes, own_job=self._own_job).by_node()
        accepts = movable(self.session, self.preemptor, own_job=self._own_job)
        by_node = asked(self.session, nodes.tolist(), accepts).by_node()
        return (preemptable(self.preemptor, candidates) for candidates in by_node)

    def _best(self, found: Findings) -> Candidate | None:
        return found.least_loss(self._facts, self.nodes, self.session.clock.now)

    # --- for workers

    def try_rows(self, first: int, last: int) -> list[Finding]:
        """Return the findings of a chunk as a worker sends them, in row order, `want` at most."""
        return self._found(first, last, self.want).first(self.want).packed()

    def read(self, findings: Sequence[Finding]) -> Candidate | None:
        """Return the finding with the least loss among the first `want` in row order, whatever order they come in."""
        return self._best(unpacked(findings).first(self.want))


def drive(steps: Steps) -> None:
    """Run an action that asks for dry runs, answering each here and now."""
    try:
        asked = next(steps)
        while True:
            asked = steps.send(asked.run())
    except StopIteration:
        return


def _batch_trial(session: Session, preemptor: Task, *, own_job: bool) -> BatchTrial | None:
    """Return a trial by columns where it gives the same answers as trying node by node; else None."""
    if session.points.preemptable.by_columns and session.points.needs_no_trial(preemptor):
        return BatchTrial(session, preemptor, own_job=own_job)
    return None
