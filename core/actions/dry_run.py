"""One preemptor's dry run over its candidate nodes: chunk by chunk, here or by workers, with the same findings.

A dry run only reads the session. Chunks may be tried in any order and by anybody; what counts is the first `want`
findings in row order. Source: Volcano `actions/preempt` (DryRunPreemption), with one worker's order.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from core.actions.batch_victims import BatchTrial, masks_of
from core.actions.candidate_choice import Candidate, choose
from core.actions.node_trial import select_victims
from core.actions.victims import of_other_jobs, of_own_job

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from core.actions.candidates import RowArray
    from core.objects.pod import Task
    from core.session.residents import Residents
    from core.session.session import Session

MARGIN = 8  # rows beyond `want` in the first chunk: a few nodes may not do
SIMULATED = ("SimulateAllocatable", "SimulateAddTask", "SimulateRemoveTask", "SimulatePredicate")


class DryRun:
    """`nodes`: candidate nodes in the order in which they count; `want`: how many findings are enough; `own_job`: take
    from the preemptor's own job, not from others of its queue.

    Rows 0..len(nodes)-1 are the nodes' places in that order.
    """

    def __init__(
        self,
        session: Session,
        facts: Residents,
        preemptor: Task,
        nodes: RowArray,
        want: int,
        *,
        own_job: bool,
    ) -> None:
        self._session = session
        self._preemptor = preemptor
        self._accepts = (of_own_job if own_job else of_other_jobs)(session, preemptor)
        self._batch = _batch_trial(session, facts, preemptor, own_job=own_job)
        self.nodes = nodes
        self.want = want

    def candidates(self, first: int, last: int) -> list[Candidate]:
        """The nodes of rows first..last-1 that would do."""
        nodes = self.nodes[first:last]
        found = self._batch.find(nodes) if self._batch is not None else None
        if found is None:
            return [*self._one_by_one(nodes)]
        return [found.candidate(i) for i in range(len(found.nodes))]

    def _one_by_one(self, nodes: RowArray) -> Iterator[Candidate]:
        job = self._session.job_of(self._preemptor)
        assert job is not None
        queue = self._session.queue_of(job)
        for node in nodes.tolist():
            victims = select_victims(self._session, self._preemptor, queue, node, self._accepts)
            if victims:
                yield Candidate(node, tuple(victims))

    def run(self) -> list[Candidate]:
        """The one of least loss among the first `want` findings, tried here, in chunks that double while too few are
        found; none when nothing is found.
        """
        found, now = list[Candidate](), self._session.clock.now
        left, first, size = self.want, 0, self.want + MARGIN
        while first < len(self.nodes) and left > 0:
            nodes = self.nodes[first : first + size]
            in_chunk = self._batch.find(nodes) if self._batch is not None else None
            if in_chunk is None:
                taken = [*islice(self._one_by_one(nodes), left)]
                found, left = [*found, *taken], left - len(taken)
            elif len(in_chunk.nodes):
                found.append(in_chunk.first(left).least_loss(now))
                left -= len(in_chunk.nodes)
            first, size = first + size, size * 2
        best = choose(found, now)
        return [] if best is None else [best]

    # --- for workers

    def try_rows(self, first: int, last: int) -> Iterator[tuple[int, bytes]]:
        """The findings of a chunk as a worker sends them."""
        places = {node: row for row, node in enumerate(self.nodes[first:last].tolist(), start=first)}
        for candidate in self.candidates(first, last):
            yield places[candidate.node], msgspec.msgpack.encode([task.row for task in candidate.victims])

    def read(self, findings: Iterable[tuple[int, bytes]]) -> list[Candidate]:
        """Back from what workers sent; the first `want` in row order."""
        handles = self._session.snapshot.tasks.handles
        found: list[Candidate] = []
        for row, blob in sorted(findings)[: self.want]:
            victims = (handles[task] for task in msgspec.msgpack.decode(blob, type=list[int]))
            found.append(Candidate(int(self.nodes[row]), tuple(task for task in victims if task is not None)))
        return found


def drive(steps: Generator[DryRun, list[Candidate], None]) -> None:
    """Run an action that asks for dry runs, answering each here and now."""
    try:
        asked = next(steps)
        while True:
            asked = steps.send(asked.run())
    except StopIteration:
        return


def _batch_trial(session: Session, facts: Residents, preemptor: Task, *, own_job: bool) -> BatchTrial | None:
    """A trial by columns where that can say the same as one node after the other; else None."""
    points = session.points
    tiers = masks_of(points, "Preemptable")
    simulating = {name for point in SIMULATED for name in points.enabled_names(point)}
    quiet = points.batches.quiet
    if tiers is None or not all(name in quiet and quiet[name](preemptor) for name in simulating):
        return None
    return BatchTrial(session, facts, preemptor, tiers, own_job=own_job)
