"""One resource as kube-scheduler's resource scorers see it.

What is taken on a node, with this pod, of what it can allocate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pumice.core.kube.allocatable import capacity
from pumice.core.kube.scores import scored_nonzero
from pumice.core.state.dimensions import CellColumn, cells_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.kube.allocatable import AllocatableColumn
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.session.points.columns import At, Readable, RowReader, V
    from pumice.core.session.points.nodes import FloatArray
    from pumice.core.session.session import Session

CPU, MEMORY = 0, 1
NAMES = ("cpu", "memory")
FIX = "scores-count-pod-level"


class Taken(NamedTuple):
    """Taken amounts over node rows beside the nodes' capacity.

    What it is asked is a part of an `OwnScoreRule`: (how columns are read) -> (what the pod itself asks for, where) ->
    the outcome there, the caller's own.
    """

    capacity: AllocatableColumn
    taken: CellColumn

    def percent_left(self, read: RowReader[V]) -> Callable[[float, At], V]:
        """floor(100 * (allocatable - taken - own) / allocatable), at least 0; 0 where nothing is allocatable.

        Go's integer division, exactly: whole numbers below 2**46 (64 TiB) whose float quotient is at most 100 never
        round up to a whole one.
        """
        amounts, takens, divisors = self._read(read)
        most, floor = read.most, read.floor

        def percent(own: float, at: At) -> V:
            left = amounts[at] - takens[at]
            left -= own
            left = most(left, 0.0)
            left *= 100.0
            left /= divisors[at]
            return floor(left)

        return percent

    def percent_taken(self, read: RowReader[V]) -> Callable[[float, At], V]:
        """floor(100 * (taken + own) / allocatable), at most 100; 0 where nothing is allocatable."""
        amounts, takens, divisors = self._read(read)
        least, floor = read.least, read.floor

        def percent(own: float, at: At) -> V:
            part = least(takens[at] + own, amounts[at])
            part *= 100.0
            part /= divisors[at]
            return floor(part)

        return percent

    def fraction(self, read: RowReader[V]) -> Callable[[float, At], V]:
        """(taken + own) / allocatable, at most 1; 0 where nothing is allocatable."""
        _, takens, divisors = self._read(read)
        least = read.least

        def fraction(own: float, at: At) -> V:
            part = takens[at] + own
            part /= divisors[at]
            return least(part, 1.0)

        return fraction

    def _read(self, read: RowReader[V]) -> tuple[Readable[V], Readable[V], Readable[V]]:
        return read.of(self.capacity.amount), read.of(self.taken), read.of(self.capacity.divisor)


def nonzero_taken(session: Session) -> tuple[Taken, Taken]:
    """cpu and memory of the pods on each node, with kube-scheduler's defaults for containers that ask for nothing."""
    return taken_of(session, session.kube.nonzero)


def taken_of(session: Session, columns: FloatArray) -> tuple[Taken, Taken]:
    """Shares of other columns, the first being cpu and the second memory. [2 or more, N]."""
    cpu, memory = (Taken(capacity(session.nodes, name), cells_of(columns[i])) for i, name in enumerate(NAMES))
    return cpu, memory


def nonzero_own(session: Session) -> Callable[[PodTemplate], tuple[float, float]]:
    """What a pod itself asks for: (milli-cores, bytes) by its containers.

    Volcano builds the scorers with pod-level resources off (fix scores-count-pod-level: on).
    """
    return _with_pod_level if FIX in session.config.pumice.fix else scored_nonzero


def _with_pod_level(template: PodTemplate) -> tuple[float, float]:
    return template.nonzero_cpu, template.nonzero_memory
