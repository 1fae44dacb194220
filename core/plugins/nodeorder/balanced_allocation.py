# SPDX-License-Identifier: Apache-2.0
"""NodeResourcesBalancedAllocation over cpu, memory and nvidia.com/gpu, and shares of one resource.

Source: kube-scheduler `noderesources/balanced_allocation.go`.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pumice.core.kube.allocatable import capacity
from pumice.core.kube.scores import scored_nonzero, scored_request
from pumice.core.session.points.columns import ForTasks
from pumice.core.session.points.nodes import TEMPLATE_ONLY
from pumice.core.session.points.rules import ColumnRule
from pumice.core.state.derived import derived
from pumice.core.state.dimensions import CellColumn, cells_of
from pumice.core.state.sources import NODES

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.core.kube.allocatable import AllocatableColumn
    from pumice.core.kube.rows import NodeRows
    from pumice.core.objects.pod import Task
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.session.points.columns import At, Readable, RowReader, V
    from pumice.core.session.points.nodes import FloatArray
    from pumice.core.session.points.rules import Score
    from pumice.core.session.session import Session
    from pumice.core.state.sources import NodeSpecs

    Fraction = Callable[[float, At], V]

# --- Shares of one resource
# What is taken on a node, with this pod, of what it can allocate.

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
        """Return floor(100 * (allocatable - taken - own) / allocatable), at least 0; 0 where nothing is allocatable.

        Go's integer division, exactly: whole numbers below 2**46 (64 TiB) whose float quotient is at most 100 never
        round up to a whole one.
        """
        amounts, takens, divisors = self._read(read)
        most, floor = read.most, read.floor

        def percent(own: float, at: At) -> V:
            left = amounts[at] - takens[at]
            # In place from here on: `left` is the rule's own array, and a new one would cost page faults.
            left -= own
            left = most(left, 0.0)
            left *= 100.0
            left /= divisors[at]
            return floor(left)

        return percent

    def percent_taken(self, read: RowReader[V]) -> Callable[[float, At], V]:
        """Return floor(100 * (taken + own) / allocatable), at most 100; 0 where nothing is allocatable."""
        amounts, takens, divisors = self._read(read)
        least, floor = read.least, read.floor

        def percent(own: float, at: At) -> V:
            part = least(takens[at] + own, amounts[at])
            part *= 100.0
            part /= divisors[at]
            return floor(part)

        return percent

    def fraction(self, read: RowReader[V]) -> Callable[[float, At], V]:
        """Return (taken + own) / allocatable, at most 1; 0 where nothing is allocatable."""
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
    """Return cpu and memory of the pods on each node, with kube-scheduler's defaults for containers without
    requests.
    """
    return taken_of(session, session.kube.nonzero)


def taken_of(session: Session, columns: FloatArray) -> tuple[Taken, Taken]:
    """Return shares of other columns, the first being cpu and the second memory. [2 or more, N]."""
    cpu, memory = (Taken(capacity(session.nodes, name), cells_of(columns[i])) for i, name in enumerate(NAMES))
    return cpu, memory


def nonzero_own(session: Session) -> Callable[[PodTemplate], tuple[float, float]]:
    """Return the pod's own request: (milli-cores, bytes) by its containers.

    Volcano builds the scorers with pod-level resources off (fix scores-count-pod-level: on).
    """
    return _with_pod_level if FIX in session.config.pumice.fix else scored_nonzero


def _with_pod_level(template: PodTemplate) -> tuple[float, float]:
    return template.nonzero_cpu, template.nonzero_memory


Own = list[float]
"""What a pod itself asks for of each resource that counts."""
GPU = "nvidia.com/gpu"


class ResourcePairs(NamedTuple):
    """The nodes by the resources that count: `pairs`, the nodes with just the resources i and j, where any exist, and
    `three`, those with all three, else None; masks [N].
    """

    pairs: list[tuple[int, int, CellColumn]]
    three: CellColumn | None


def presence_of(nodes: NodeRows, taken: list[Taken]) -> ResourcePairs | None:
    """Return the presence of cpu and memory, or of these and the gpu; None where every node has just cpu and memory to
    count.
    """
    if len(taken) == 2 and taken[0].capacity.everywhere and taken[1].capacity.everywhere:
        return None
    return _presence(nodes, len(taken))


@derived(NODES)
def _presence(nodes: NodeSpecs, length: int) -> ResourcePairs:
    """Return the presence of so many of cpu, memory and the gpu."""
    present = [capacity(nodes, name).present for name in (*NAMES, GPU)[:length]]
    count = np.sum(present, axis=0)
    both = [(i, j, present[i] & present[j] & (count == 2)) for i, j in combinations(range(len(present)), 2)]
    three = count == 3
    return ResourcePairs(
        [(i, j, cells_of(mask)) for i, j, mask in both if mask.any()], cells_of(three) if three.any() else None
    )


class Balance(NamedTuple):
    """The score weight * int(100 * (1 - imbalance)), the standard deviation of the fractions taken, over the resources
    that a node has; 0 for fewer than two. The gpu only counts when the pod requests it.
    """

    taken: list[Taken]
    weight: float
    presence: ResourcePairs | None

    def __call__(self, read: RowReader[V], /) -> Callable[[Own, At], V]:
        """Return a function: (reader of columns) -> (own request, rows) -> the score."""
        fractions = [taken.fraction(read) for taken in self.taken]
        if self.presence is None:
            return _of_two(read, fractions, self.weight)
        balance, floor, weight = _of_present(read, fractions, self.presence), read.floor, self.weight
        return lambda own, at: floor(balance(own, at)) * weight


def _of_two(read: RowReader[V], fractions: list[Fraction[V]], weight: float) -> Callable[[Own, At], V]:
    """Return 100 * (1 - distance / 2), as -50 * (distance - 2): twice, half and signs are exact, so both round
    alike.
    """
    (cpu, memory), floor, magnitude = fractions, read.floor, read.magnitude

    def score(own: Own, at: At) -> V:
        own_cpu, own_memory = own
        distance = cpu(own_cpu, at)
        distance -= memory(own_memory, at)
        distance = magnitude(distance)
        distance -= 2.0
        distance *= -50.0
        floored = floor(distance)
        # The usual weight is 1: one pass over all nodes less.
        return floored if weight == 1.0 else floored * weight

    return score


def _of_present(read: RowReader[V], fractions: list[Fraction[V]], presence: ResourcePairs) -> Callable[[Own, At], V]:
    """Score over the resources that are present, node by node."""
    pairs = [(i, j, read.of(nodes)) for i, j, nodes in presence.pairs]
    three = None if presence.three is None else read.of(presence.three)
    choose, sqrt, magnitude = read.choose, read.sqrt, read.magnitude

    def balance(own: Own, at: At) -> V:
        taken = [fraction(asked, at) for fraction, asked in zip(fractions, own, strict=True)]
        deviation: V = taken[0] * 0.0
        for i, j, nodes in pairs:
            deviation = choose(nodes[at], magnitude((taken[i] - taken[j]) / 2), deviation)
        if three is not None:
            # added one by one, as Go does
            mean = (taken[0] + taken[1] + taken[2]) / 3
            squares = [(fraction - mean) * (fraction - mean) for fraction in taken]
            deviation = choose(three[at], sqrt((squares[0] + squares[1] + squares[2]) / 3), deviation)
        return (1.0 - deviation) * 100.0

    return balance


class BalancedAllocation:
    """Prefers nodes whose resources are taken evenly. A pod that requests none of them is not scored (Skip)."""

    name = "NodeResourcesBalancedAllocation"
    reads = TEMPLATE_ONLY

    def __init__(self, session: Session, weight: int) -> None:
        self._weight = float(weight)
        self._taken = list(taken_of(session, session.kube.requested))
        self._rule = ForTasks(Balance(self._taken, self._weight, presence_of(session.nodes, self._taken)))

    def prepare(self, session: Session, task: Task) -> Score | None:
        """Return the score for the task's template; None when it requests nothing."""
        template = task.template
        request = scored_request(template)
        gpu = (request.scalars or {}).get(GPU, 0.0)
        own = [request.milli_cpu, request.memory]
        # One rule serves all pods without a gpu; a pod with one needs a rule of its own.
        if not gpu:
            return ColumnRule(self._rule.of(own)) if any(own) else None
        requested, none = session.kube.requested, np.zeros(session.nodes.count)
        gpus = next((requested[d] for d, _ in template.items if session.dims.names[d] == GPU), none)
        taken = [*self._taken, Taken(capacity(session.nodes, GPU), cells_of(gpus))]
        rule = ForTasks(Balance(taken, self._weight, presence_of(session.nodes, taken)))
        return ColumnRule(rule.of([*own, gpu]))
