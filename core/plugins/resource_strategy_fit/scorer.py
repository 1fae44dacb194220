"""The score: fit by the resources' strategies, and sra. Source: Volcano `plugins/resource-strategy-fit` (`Score`,
`sraScore`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
import numpy as np

from pumice.core.plugins.resource_strategy_fit.arguments import LEAST, MOST, Strategy, strategy_for
from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.fill import FULL, FillTerm, fill_score
from pumice.core.session.points.nodes import Reads
from pumice.core.session.points.ready import ReadyScore

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pumice.core.objects.pod import Task
    from pumice.core.plugins.resource_strategy_fit.arguments import Sra
    from pumice.core.session.points.columns import ColumnScore
    from pumice.core.session.points.nodes import FloatArray
    from pumice.core.session.session import Session

TYPE_ANNOTATION: Final = "volcano.sh/resource-strategy-scoring-type"
WEIGHT_ANNOTATION: Final = "volcano.sh/resource-strategy-weight"


def own_weights(text: str) -> dict[str, int] | None:
    """Weights by resource name from a pod's annotation (a JSON object of whole numbers); None when it is none."""
    try:
        given = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return None
    if given is None:
        return {}
    if not isinstance(given, dict):
        return None
    weights: dict[str, int] = {}
    for name, weight in cast("dict[str, Any]", given).items():
        if isinstance(weight, bool) or not isinstance(weight, int | None):
            return None
        weights[name] = weight or 0
    return weights


def annotated(task: Task) -> Hashable:
    """What of a task the score depends on, beside its template."""
    return task.annotations.get(TYPE_ANNOTATION), task.annotations.get(WEIGHT_ANNOTATION)


class StrategyScorer:
    """The scorer; a pod's annotations override the configured strategies."""

    name = "resource-strategy-fit"
    reads = Reads(kind=annotated)

    def __init__(self, configured: dict[str, Strategy], weight: int, sra: Sra) -> None:
        self._configured, self._weight, self._sra = configured, weight, sra

    def prepare(self, session: Session, task: Task) -> ColumnScore | ReadyScore | None:
        """For the task's template and annotations."""
        extra = self._sra_scores(session, task) if self._sra.weight > 0 else None
        if self._weight > 0:
            return self._fit(session, task, extra)
        return None if extra is None else ReadyScore(extra)

    def _fit(self, session: Session, task: Task, extra: FloatArray | None) -> ColumnScore | ReadyScore:
        strategies = self._strategies(session, task)
        terms = [
            FillTerm(dimension, request, float(strategy.weight), strategy.kind == LEAST)
            for dimension, request, strategy in strategies
            if strategy.weight and strategy.kind in (MOST, LEAST)
        ]
        weights = float(sum(strategy.weight for _, _, strategy in strategies))
        return fill_score(session, terms, weights, FULL * self._weight, extra)

    def _strategies(self, session: Session, task: Task) -> list[tuple[int, float, Strategy]]:
        """(dimension, request, strategy) of what the task asks for and what counts."""
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
        """weight * 100 * (1 - the node's scarce resources by weight); 0 where it lacks something asked for. [N]."""
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
