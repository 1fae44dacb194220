# SPDX-License-Identifier: Apache-2.0
"""resource-strategy-fit: fill or spread by resource, avoid nodes with scarce ones, reserve cpu and memory for them.

Source: Volcano `plugins/resource-strategy-fit`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import numpy as np

from pumice.config.arguments import MAPPING, Argument, ArgumentKind, PluginArguments
from pumice.core.objects.metadata import Object, is_mapping, mapping
from pumice.core.plugins.plugin import BuiltInPlugin
from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.fill import FULL, FillTerm, fill_score
from pumice.core.session.points.columns import Clause, Clauses
from pumice.core.session.points.nodes import TEMPLATE_ONLY, Reads
from pumice.core.session.points.rules import ColumnRule
from pumice.core.session.reasons import Code, Reason
from pumice.core.state.dimensions import CellColumn, cells_of
from pumice.core.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from pumice.core.objects.pod import Task
    from pumice.core.resources import Resource
    from pumice.core.session.points.columns import At, RowReader, V
    from pumice.core.session.points.nodes import BoolArray, FloatArray
    from pumice.core.session.points.rules import Check, Score
    from pumice.core.session.session import Session

# --- Arguments
# Source: Volcano `plugins/resource-strategy-fit` (`calculateWeight`, `calculateSraWeight`,
# `calculateProportionalResources`).
#
# Keys of nested records may be written in any letter case, as there. A value of the wrong type ends Volcano's
# process; here the default stays.

MOST, LEAST = "MostAllocated", "LeastAllocated"


class Strategy(NamedTuple):
    """The way in which one resource counts."""

    kind: str
    weight: int


class IdleShare(NamedTuple):
    """cpu (milli-cores per thousandth) and memory (millions of bytes per thousandth) kept per idle scarce resource."""

    cpu: float
    memory: float


@dataclass(frozen=True, slots=True)
class Sra:
    """Scarce resources avoidance; `total` is the sum of the weights as listed. `weight` 0: off."""

    weight: int
    weights: dict[str, int]
    total: int


DEFAULT_STRATEGIES: Final = {"cpu": Strategy(LEAST, 1), "memory": Strategy(LEAST, 1)}
NO_SRA: Final = Sra(0, {}, 0)


def record(value: object) -> Object:
    """Return a nested record with its keys in lower case; an empty one for another value."""
    return {str(key).lower(): item for key, item in mapping(value).items()}


def whole(value: object, default: int) -> int:
    """Return a number as Go's mapstructure makes an int of it: a fraction is cut off."""
    # In Python a bool is an int, too.
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else default


def names_in(text: object) -> list[str]:
    """Return names with commas between."""
    listed = text.split(",") if isinstance(text, str) else []
    return [name.strip() for name in listed if name.strip()]


def _weight(value: object) -> int:
    if not isinstance(value, int | float | None) or isinstance(value, bool) or not isfinite(value or 0):
        raise ValueError(value)
    weight = int(value or 0)  # a fraction is cut off, and nothing is 0
    if weight < 0:
        raise ValueError(value)
    return weight


WEIGHT: Final = Argument(
    "resourceStrategyFitWeight",
    ArgumentKind("a number of at least 0", _weight),
    10,
    "What its scores count; 0 leaves the scorer out.",
)
RESOURCES: Final = Argument(
    "resources",
    MAPPING,
    {},
    f"`{{name: {{type: {MOST} or {LEAST}, weight: 1}}}}`: the direction and weight of each resource; a name may end in "
    "`*`.",
    f"cpu and memory {LEAST}",
)
SCARCE: Final = Argument(
    "sra",
    MAPPING,
    {},
    "`{enable: true, resources: names with commas between, weight, resourceWeight: {name: 1}}`: pods that ask for none "
    "of these scarce resources keep off nodes that have them.",
    "off",
)
PROPORTIONAL: Final = Argument(
    "proportional",
    MAPPING,
    {},
    "`{enable: true, resources: names with commas between, resourceProportion: {name.cpu: 1, name.memory: 1}}`: the "
    "cpu and memory (GB) that are kept for each idle scarce resource.",
    "off",
)


def read_strategies(arguments: Mapping[str, Any]) -> dict[str, Strategy]:
    """Read `resources`: name or prefix with a trailing asterisk -> strategy. A pattern of any other shape is left
    out.
    """
    value = RESOURCES.of(arguments)
    if not value:
        return dict(DEFAULT_STRATEGIES)
    found = {str(name): record(item) for name, item in value.items()}
    return {name: _strategy(item) for name, item in found.items() if _is_pattern(name)}


def _is_pattern(name: str) -> bool:
    return "*" not in name or (name.endswith("*") and name.count("*") == 1 and name != "*")


def _strategy(item: Object) -> Strategy:
    kind, weight = item.get("type"), whole(item.get("weight"), 0)
    return Strategy(MOST if kind == MOST else LEAST, weight if weight > 0 else 1)


def strategy_for(name: str, configured: dict[str, Strategy]) -> Strategy | None:
    """Return the resource's own entry, else the one of the longest prefix, else None."""
    if name in configured:
        return configured[name]
    prefixes = [key for key in configured if key.endswith("*") and name.startswith(key[:-1])]
    return configured[max(prefixes, key=len)] if prefixes else None


def read_sra(arguments: Mapping[str, Any]) -> Sra:
    """Read `sra`: enable, resources, weight (0 when absent), resourceWeight by name (1 when absent or negative)."""
    given = record(SCARCE.of(arguments))
    if given.get("enable") is not True:
        return NO_SRA
    own: Object = given.get("resourceweight") or {}
    listed = [(name, whole(own.get(name), 1)) for name in names_in(given.get("resources"))]
    weights = [(name, weight if weight >= 0 else 1) for name, weight in listed]
    return Sra(whole(given.get("weight"), 0), dict(weights), sum(weight for _, weight in weights))


def read_shares(arguments: Mapping[str, Any]) -> dict[str, IdleShare] | None:
    """Read `proportional`: enable, resources, resourceProportion "<name>.cpu" and "<name>.memory" (1 when absent or
    negative). By name in name order; None when it is off.
    """
    given = record(PROPORTIONAL.of(arguments))
    if given.get("enable") is not True:
        return None
    rates: Object = given.get("resourceproportion") or {}
    names = sorted(set(names_in(given.get("resources"))))
    return {name: IdleShare(_rate(rates.get(f"{name}.cpu")), _rate(rates.get(f"{name}.memory"))) for name in names}


def _rate(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 1.0
    return float(value) if value >= 0 else 1.0


# --- The scorer
# Source: Volcano `plugins/resource-strategy-fit` (`Score`, `sraScore`).

TYPE_ANNOTATION: Final = "volcano.sh/resource-strategy-scoring-type"
WEIGHT_ANNOTATION: Final = "volcano.sh/resource-strategy-weight"


def own_weights(text: str) -> dict[str, int] | None:
    """Return weights by resource name from a pod's annotation (a JSON object of whole numbers); None for another
    text.
    """
    try:
        given = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
    if given is None:
        return {}
    if not is_mapping(given):
        return None
    weights: dict[str, int] = {}
    for name, weight in given.items():
        if isinstance(weight, bool) or not isinstance(weight, int | None):
            return None
        weights[name] = weight or 0
    return weights


def annotated(task: Task) -> Hashable:
    """Return what of a task the score depends on, beside its template."""
    return task.annotations.get(TYPE_ANNOTATION), task.annotations.get(WEIGHT_ANNOTATION)


class StrategyScorer:
    """The scorer; a pod's annotations override the configured strategies."""

    name = "resource-strategy-fit"
    reads = Reads(kind=annotated)

    def __init__(self, configured: dict[str, Strategy], weight: int, sra: Sra) -> None:
        self._configured, self._weight, self._sra = configured, weight, sra

    def prepare(self, session: Session, task: Task) -> Score | None:
        """Return the score for the task's template and annotations."""
        extra = self._sra_scores(session, task) if self._sra.weight > 0 else None
        if self._weight > 0:
            return self._fit(session, task, extra)
        return None if extra is None else ColumnRule(extra)

    def _fit(self, session: Session, task: Task, extra: FloatArray | None) -> Score:
        strategies = self._strategies(session, task)
        terms = [
            FillTerm(dimension, request, float(strategy.weight), strategy.kind == LEAST)
            for dimension, request, strategy in strategies
            if strategy.weight and strategy.kind in (MOST, LEAST)
        ]
        weights = float(sum(strategy.weight for _, _, strategy in strategies))
        return fill_score(session, terms, weights, FULL * self._weight, extra)

    def _strategies(self, session: Session, task: Task) -> list[tuple[int, float, Strategy]]:
        """Return (dimension, request, strategy) of each requested resource that counts."""
        names, own_type = session.dims.names, task.annotations.get(TYPE_ANNOTATION)
        own = own_weights(task.annotations.get(WEIGHT_ANNOTATION, "")) or {} if own_type else {}
        found: list[tuple[int, float, Strategy]] = []
        for dimension, request in task.template.items:
            name = names[dimension]
            if own_type:
                strategy = Strategy(own_type, own[name]) if name in own else None
            else:
                strategy = strategy_for(name, self._configured)
            if strategy and request >= MIN_RESOURCE:
                found.append((dimension, request, strategy))
        return found

    def _sra_scores(self, session: Session, task: Task) -> FloatArray:
        """Return weight * 100 * (1 - the node's scarce resources by weight); 0 where it lacks a requested one. [N]."""
        allocatable, sra = session.nodes.allocatable, self._sra
        held = np.zeros(session.nodes.count)
        for dimension, name in enumerate(session.dims.names[: len(allocatable)]):
            if name in sra.weights:
                held += np.where(allocatable[dimension] > 0.0, float(sra.weights[name]), 0.0)
        if sra.total > 0:
            held = 1.0 - held / sra.total
        held *= FULL * sra.weight
        for dimension, request in task.template.items:
            if request >= MIN_RESOURCE:
                held[allocatable[dimension] == 0.0] = 0.0
        return held


# --- The filter
# Source: Volcano `plugins/resource-strategy-fit` (`checkNodeResourceIsProportional`).

CPU, MEMORY = 0, 1
MEGA = 1000


class ScarceResource(NamedTuple):
    """The columns of one resource: its idle amounts, where nodes have it, the shares and the reason's number."""

    idle: CellColumn
    named: CellColumn
    share: IdleShare
    code: int


class LeavesTooLittle(NamedTuple):
    """Refuses a node that would be left with less cpu or memory than its idle scarce resource needs."""

    kept: ScarceResource
    cpu: CellColumn
    memory: CellColumn
    request: Resource

    def __call__(self, read: RowReader[V], /) -> Callable[[At], bool | BoolArray]:
        """Return a function: (reader of columns) -> (rows) -> True where the filter passes."""
        idle, named, cpu, memory = (read.of(each) for each in (self.kept.idle, self.kept.named, self.cpu, self.memory))
        share, own_cpu, own_memory = self.kept.share, self.request.milli_cpu, self.request.memory

        def refuses(at: At) -> bool | BoolArray:
            scarce = idle[at]
            short = (cpu[at] - own_cpu < scarce * share.cpu) | (
                memory[at] - own_memory < scarce * share.memory * MEGA * MEGA
            )
            where: bool | BoolArray = short & (named[at] != 0)
            return where

        return refuses


class Proportional:
    """The filter. Tasks that request one of the scarce resources pass everywhere."""

    name = "resource-strategy-fit"
    reads = TEMPLATE_ONLY

    def __init__(self, shares: dict[str, IdleShare]) -> None:
        self._shares = shares
        self._kept: list[ScarceResource] | None = None

    def prepare(self, session: Session, task: Task) -> Check | None:
        """Return the answers; None where nothing is reserved against this task. The first resource by name is the
        reason.
        """
        request = task.template.request
        # Shares are kept for such pods, so they may use them.
        if any((request.scalars or {}).get(name, 0.0) > 0.0 for name in self._shares):
            return None
        if self._kept is None:
            self._kept = self._find(session)
        nodes = session.nodes
        cpu, memory = (CellColumn(nodes.idle[each], nodes.idle_at[each]) for each in (CPU, MEMORY))
        clauses = [Clause(LeavesTooLittle(kept, cpu, memory, request), kept.code) for kept in self._kept]
        return ColumnRule(Clauses(*clauses)) if clauses else None

    def _find(self, session: Session) -> list[ScarceResource]:
        nodes = session.nodes
        rows = {name: row for row, name in enumerate(session.dims.names[: len(nodes.idle)]) if row > MEMORY}
        found: list[ScarceResource] = []
        for name, share in self._shares.items():
            if name in rows:
                idle = CellColumn(nodes.idle[rows[name]], nodes.idle_at[rows[name]])
                named = [name in (spec.allocatable.scalars or ()) for spec in nodes.specs]
                text = f"proportional of resource {name} check failed"
                code = session.reasons.intern(Reason("resource-strategy-fit", Code.UNRESOLVABLE, text))
                found.append(ScarceResource(idle, cells_of(np.array(named, dtype=np.bool_)), share, code))
        return found


class ResourceStrategyFit(BuiltInPlugin):
    """Fills or spreads by resource."""

    name = "resource-strategy-fit"
    says = "scores nodes by how full each resource is, each in its own direction"
    listens = ("Predicate", "NodeOrder")
    arguments = (WEIGHT, RESOURCES, SCARCE, PROPORTIONAL)
    vocabulary = Vocabulary((TYPE_ANNOTATION, WEIGHT_ANNOTATION))

    def __init__(self, arguments: PluginArguments) -> None:
        self._weight = WEIGHT.of(arguments)
        self._strategies = read_strategies(arguments)
        self._sra = read_sra(arguments)
        self._shares = read_shares(arguments)

    def on_session_open(self, session: Session) -> None:
        """Register the filter when proportional is on, the scorer when a weight is above 0."""
        if self._shares is not None:
            session.points.predicate.add(self.name, [Proportional(self._shares)])
        if self._weight > 0 or self._sra.weight > 0:
            session.points.node_order.add(self.name, [StrategyScorer(self._strategies, self._weight, self._sra)])

    def can_go_on(self, session: Session) -> bool:
        """Return True: filter and scorer read columns alone."""
        return True
