# SPDX-License-Identifier: Apache-2.0
"""usage: avoid nodes with a high measured load, and prefer idle ones. Source: Volcano `plugins/usage/usage.go`.

Only what was measured counts: what was placed since does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.config.arguments import INTEGER, MAPPING, Argument, PluginArguments
from pumice.core.objects.node_usage import ANNOTATION, KIND, usage_of
from pumice.core.plugins.plugin import BuiltInPlugin
from pumice.core.session.points.nodes import TEMPLATE_ONLY
from pumice.core.session.points.rules import Check, ColumnRule, Score
from pumice.core.session.reasons import Code, Reason
from pumice.core.state.derived import derived, memory
from pumice.core.state.sources import NODES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.core.objects.metadata import Object
    from pumice.core.objects.node_usage import NodeUsage
    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import FloatArray
    from pumice.core.session.session import Session
    from pumice.core.state.sources import NodeSpecs

NAME: Final = "usage"
PERIOD: Final = "10m"
VALID_S: Final = 300.0  # older measurements say nothing
MOMENT_S: Final = 0.001
DEFAULT_THRESHOLD: Final = 80
WEIGHT: Final = Argument("usage.weight", INTEGER, 5, "What its scores count.")
CPU_WEIGHT: Final = Argument("cpu.weight", INTEGER, 1, "What the load of the CPU counts in a score.")
MEMORY_WEIGHT: Final = Argument("memory.weight", INTEGER, 1, "What the load of the memory counts in a score.")
THRESHOLDS: Final = Argument(
    "thresholds",
    MAPPING,
    {},
    "`cpu` and `mem` in per cent, whole numbers: from that load on a node takes no pods. Any other value is 0.",
    "80 both",
)
CPU_EXCEEDED = Reason(NAME, Code.UNRESOLVABLE, "the CPU load of the node exceeds the upper limit.")
MEMORY_EXCEEDED = Reason(NAME, Code.UNRESOLVABLE, "the memory load of the node exceeds the upper limit.")


class Loads:
    """The nodes' loads as columns: `cpu` and `memory` in per cent, NaN where unknown or too old. [N]."""

    def __init__(self, session: Session) -> None:
        self.cpu: FloatArray = np.full(session.nodes.count, np.nan)
        self.memory: FloatArray = np.full(session.nodes.count, np.nan)
        self.fresh = np.zeros(session.nodes.count, dtype=np.bool_)
        self.expires_at: FloatArray = np.full(session.nodes.count, np.inf)
        self._measured_at: FloatArray = np.full(session.nodes.count, -np.inf)
        now = session.clock.now
        for row, usage in measured(session):
            self._measured_at[row] = usage.measured_at
            if now - usage.measured_at <= VALID_S:
                self._enter(row, usage)

    def still_hold(self, now: float) -> bool:
        """Return whether the same measurements are young enough at another moment."""
        return np.array_equal(now - self._measured_at <= VALID_S, self.fresh)

    def _enter(self, row: int, usage: NodeUsage) -> None:
        self.fresh[row] = True
        # A moment later, since a measurement that is just so old still counts.
        self.expires_at[row] = usage.measured_at + VALID_S + MOMENT_S
        self.cpu[row] = usage.cpu.get(PERIOD, np.nan)
        self.memory[row] = usage.memory.get(PERIOD, np.nan)


@derived(NODES)
def _annotated(nodes: NodeSpecs) -> frozenset[str]:
    """Return the nodes whose annotations give their load."""
    return frozenset(spec.name for spec in nodes.specs if ANNOTATION in spec.annotations)


@memory(NODES)
def _read(_nodes: NodeSpecs) -> dict[str, tuple[Object, NodeUsage]]:
    """Read by node the last NodeMetrics object and its load."""
    return {}


def measured(session: Session) -> Iterator[tuple[int, NodeUsage]]:
    """Return (row, load) of the measured nodes."""
    nodes, now = session.nodes, session.clock.now
    handed_in, metrics = session.options.node_usage or {}, session.objects.get(KIND, {})
    kept = _read(nodes)
    for name in sorted({*handed_in, *metrics, *_annotated(nodes)} & nodes.row.keys()):
        row, sampled = nodes.row[name], metrics.get(name)
        known = kept.get(name)
        if known is not None and known[0] is sampled and name not in handed_in:
            yield row, known[1]
            continue
        usage = usage_of(nodes.specs[row], handed_in, metrics, now)
        if usage is not None:
            if sampled is not None and name not in handed_in:
                kept[name] = sampled, usage
            yield row, usage


class BusyNodes:
    """The filter: one answer for all tasks. `limits`: per cent of cpu and memory; a load that was not measured is 0."""

    name = NAME
    reads = TEMPLATE_ONLY

    def __init__(self, session: Session, loads: Loads, limits: tuple[int, int]) -> None:
        cpu, memory = _known(loads.cpu), _known(loads.memory)
        codes = np.zeros(session.nodes.count, dtype=np.int32)
        codes[loads.fresh & (memory > limits[1])] = session.reasons.intern(MEMORY_EXCEEDED)
        # Written last: where both loads are too high, cpu is the reason.
        codes[loads.fresh & (cpu > limits[0])] = session.reasons.intern(CPU_EXCEEDED)
        # Each session must ask for its own wake-up.
        self._check: Check | None = ColumnRule(codes, lasts=False) if codes.any() else None
        self._ends_at = float(loads.expires_at[codes != 0].min()) if self._check else 0.0

    def prepare(self, session: Session, task: Task) -> Check | None:
        """Return the answer; None when no node is too busy. It holds until the first refusing measurement is
        too old.
        """
        if self._check:
            session.wake(self._ends_at)
        return self._check


class IdleNodes:
    """The scorer: one answer for all tasks. 0 where cpu or memory was not measured."""

    name = NAME
    reads = TEMPLATE_ONLY

    def __init__(self, loads: Loads, cpu_weight: int, memory_weight: int, weight: int) -> None:
        cpu = (100 - loads.cpu) / 100 * float(cpu_weight)
        memory = (100 - loads.memory) / 100 * float(memory_weight)
        raw = (cpu + memory) / float(cpu_weight + memory_weight) * float(100 * weight)
        self._score: Score = ColumnRule(_known(raw))

    def prepare(self, session: Session, task: Task) -> Score:
        """Return the score."""
        return self._score


class Usage(BuiltInPlugin):
    """Filters and scores by measured loads. Weights of cpu and memory that cancel out leave the scorer out."""

    name = NAME
    says = "keeps off nodes that are really busy"
    listens = ("Predicate", "NodeOrder")
    arguments = (WEIGHT, CPU_WEIGHT, MEMORY_WEIGHT, THRESHOLDS)

    def __init__(self, arguments: PluginArguments) -> None:
        self._weight = WEIGHT.of(arguments)
        self._cpu_weight, self._memory_weight = CPU_WEIGHT.of(arguments), MEMORY_WEIGHT.of(arguments)
        thresholds = THRESHOLDS.of(arguments)
        self._limits = _limit(thresholds, "cpu"), _limit(thresholds, "mem")

    def on_session_open(self, session: Session) -> None:
        """Register filter and scorer."""
        self._loads = loads = Loads(session)
        session.points.predicate.add(self.name, [BusyNodes(session, loads, self._limits)])
        if self._cpu_weight + self._memory_weight:
            scorer = IdleNodes(loads, self._cpu_weight, self._memory_weight, self._weight)
            session.points.node_order.add(self.name, [scorer])

    def can_go_on(self, session: Session) -> bool:
        """Return whether the same measurements count. A new one ends the session that has read the last one; those that
        are handed in may be as old as the cycle.
        """
        return not session.options.node_usage and self._loads.still_hold(session.clock.now)


def _known(column: FloatArray) -> FloatArray:
    return np.where(np.isnan(column), 0.0, column)


def _limit(thresholds: Object, resource: str) -> int:
    limit = thresholds.get(resource, DEFAULT_THRESHOLD)
    return limit if isinstance(limit, int) and not isinstance(limit, bool) else 0
