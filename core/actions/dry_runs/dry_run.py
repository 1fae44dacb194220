"""One preemptor's dry run over its candidate nodes: chunk by chunk, here or by workers, with the same findings.

A dry run only reads the session. Chunks may be tried in any order and by anybody; what counts is the first `want`
findings in row order. Source: Volcano `actions/preempt` (DryRunPreemption), with one worker's order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from pumice.core.actions.dry_runs.batch_victims import BatchTrial, may_go
from pumice.core.actions.dry_runs.findings import Findings, joined, one_by_one, unpacked
from pumice.core.actions.victims.asked import asked, movable
from pumice.core.actions.victims.on_node import add_request, available, fits, make_room
from pumice.core.session.victim_order import victim_queue

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from pumice.core.actions.dry_runs.findings import Candidate, Finding
    from pumice.core.actions.victims.candidates import RowArray
    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.session.session import Session

    Steps = Generator["DryRun", Candidate | None, None]

# --- Topology-aware preemption on one node: take victims away until the task fits, then give back who need not go.
# Nothing in the session changes: the node's room is a copy, plugins keep their part of the trial in its state.
# Source: Volcano `actions/preempt` (SelectVictimsOnNode).

FIX = "dry-run-asks-queue"


@dataclass(slots=True)
class NodeTrial:
    """One node's copy: what is free there for the preemptor, and what the plugins simulate."""

    session: Session
    preemptor: Task
    queue: Queue
    node: int
    room: dict[int, float]
    state: dict[str, Any] = field(default_factory=dict[str, Any])

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
        """Whether the filters let the preemptor in, as the trial stands."""
        return self.session.points.simulate_predicate(self.state, self.preemptor, self.node) is None

    def fits(self) -> bool:
        """Whether the queue may have it, the node has room, and the filters agree."""
        if not self.session.points.simulate_allocatable(self.state, self.queue, self.preemptor):
            return False
        return fits(self.preemptor, self.room) and self.admits()


def select_victims(
    session: Session, preemptor: Task, queue: Queue, node: int, candidates: Sequence[Task]
) -> list[Task]:
    """Who of the candidates on the node must go so that the preemptor fits there, most important first; empty: it
    cannot, or needs nobody.
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
    """Put back, the most important first, whom the preemptor fits beside."""
    victims: list[Task] = []
    for task in reversed(removed):
        if not trial.add(task):
            return []
        if not trial.fits():
            if not trial.remove(task):
                return []
            victims.append(task)
    return victims


# ---

MARGIN = 8  # rows beyond `want` in the first chunk: a few nodes may not do


class DryRun:
    """`nodes`: candidate nodes in the order in which they count; `want`: how many findings are enough; `own_job`: take
    from the preemptor's own job, not from others of its queue.

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
        """The nodes of rows first..last-1 that would do."""
        return self._found(first, last, last - first).candidates(self._facts, self.nodes)

    def run(self) -> Candidate | None:
        """The one of least loss among the first `want` findings, tried here, in chunks that double while too few are
        found; None when nothing is found.
        """
        parts, left, first, size = list[Findings](), self.want, 0, self.want + MARGIN
        while first < len(self.nodes) and left > 0:
            part = self._found(first, min(first + size, len(self.nodes)), left)
            parts.append(part.first(left))
            left -= len(part.places)
            first, size = first + size, size * 2
        return self._best(joined(parts))

    def _found(self, first: int, last: int, enough: int) -> Findings:
        """The findings of a chunk; where nodes are tried one after the other no more than are enough."""
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
        """Who may be asked to go, node by node; asked of all at once where plugins can say so by columns."""
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
        """The findings of a chunk as a worker sends them, in row order, `want` at most."""
        return self._found(first, last, self.want).first(self.want).packed()

    def read(self, findings: Sequence[Finding]) -> Candidate | None:
        """The one of least loss among the first `want` in row order, whatever order they come in."""
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
    """A trial by columns where that can say the same as one node after the other; else None."""
    if session.points.preemptable.by_columns and session.points.needs_no_trial(preemptor):
        return BatchTrial(session, preemptor, own_job=own_job)
    return None
