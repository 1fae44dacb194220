"""What a dry run found, as columns: the nodes that would do and who must go there, from one trial or from many.

Between workers a finding is its row and the victims' task rows as little-endian int64, most important first.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.session.points.batches import RowArray
    from pumice.core.session.residents import Residents

TASK_ROWS = np.dtype("<i8")
Finding = tuple[int, bytes]
LIFT = 2**31  # makes every priority positive, so that fewer victims of negative priority are less loss


class Candidate(NamedTuple):
    """A node's row and who must go there, most important first."""

    node: int
    victims: tuple[Task, ...]


class Findings(NamedTuple):
    """`places` [n]: where each node stands in the order of candidates, ascending; `counts` [n]: how many victims;
    `victims` [sum of counts]: task rows, node after node, most important first.
    """

    places: RowArray
    counts: RowArray
    victims: RowArray

    def first(self, count: int) -> Findings:
        """The first so many of them."""
        counts = self.counts[:count]
        return Findings(self.places[:count], counts, self.victims[: int(counts.sum())])

    def candidates(self, facts: Residents, nodes: RowArray) -> list[Candidate]:
        """One by one, with the tasks themselves."""
        ends: list[int] = np.cumsum(self.counts).tolist()
        rows: list[int] = nodes[self.places].tolist()
        spans = zip(rows, pairwise([0, *ends]), strict=True)
        return [Candidate(row, tuple(facts.tasks(self.victims[start:end]))) for row, (start, end) in spans]

    def packed(self) -> list[Finding]:
        """Each node's place with the rows of its victims as bytes, to be sent between processes."""
        blob = self.victims.astype(TASK_ROWS, copy=False).tobytes()
        ends: list[int] = (TASK_ROWS.itemsize * np.cumsum(self.counts)).tolist()
        places: list[int] = self.places.tolist()
        return [(place, blob[start:end]) for place, (start, end) in zip(places, pairwise([0, *ends]), strict=True)]

    def least_loss(self, facts: Residents, nodes: RowArray, now: float) -> Candidate | None:
        """Where evicting is the least loss (pickOneNodeForPreemption): the lowest first victim, the smallest sum of
        priorities, the fewest victims, those who have run for the shortest time, the node of lowest name.
        """
        if not len(self.places):
            return None
        facts.learn(self.victims)
        begin = np.cumsum(self.counts) - self.counts
        priority, started = facts.pod_priority[self.victims], facts.started[self.victims]
        highest = np.maximum.reduceat(priority, begin)
        total = np.add.reduceat(priority + LIFT, begin)
        counts_for_start = priority == np.repeat(highest, self.counts)
        starts = np.where(counts_for_start, np.where(started == 0.0, now, started), np.inf)
        rows = nodes[self.places]
        order = np.lexsort((rows, -np.minimum.reduceat(starts, begin), self.counts, total, priority[begin]))
        best = int(order[0])
        victims = self.victims[begin[best] : begin[best] + self.counts[best]]
        return Candidate(int(rows[best]), tuple(facts.tasks(victims)))


def joined(parts: Sequence[Findings]) -> Findings:
    """Several, one behind the other; the places must ascend."""
    if not parts:
        nothing = np.zeros(0, dtype=np.intp)
        return Findings(nothing, nothing, nothing)
    places, counts, victims = zip(*parts, strict=True)
    return Findings(np.concatenate(places), np.concatenate(counts), np.concatenate(victims))


def one_by_one(found: Sequence[tuple[int, Sequence[int]]]) -> Findings:
    """From (place, victims' task rows), by place."""
    counts = np.array([len(victims) for _, victims in found], dtype=np.intp)
    rows = [row for _, victims in found for row in victims]
    return Findings(np.array([place for place, _ in found], dtype=np.intp), counts, np.array(rows, dtype=np.intp))


def unpacked(found: Sequence[Finding]) -> Findings:
    """Back from what workers sent, in whatever order."""
    ordered = sorted(found)
    counts = np.array([len(blob) // TASK_ROWS.itemsize for _, blob in ordered], dtype=np.intp)
    victims = np.frombuffer(b"".join(blob for _, blob in ordered), dtype=TASK_ROWS).astype(np.intp, copy=False)
    return Findings(np.array([place for place, _ in ordered], dtype=np.intp), counts, victims)
