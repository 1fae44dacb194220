"""The plugin. Source: Volcano `plugins/resource-strategy-fit/resource_strategy_fit.go`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.core.plugins.resource_strategy_fit import arguments as read
from pumice.core.plugins.resource_strategy_fit.proportional import Proportional
from pumice.core.plugins.resource_strategy_fit.scorer import StrategyScorer

if TYPE_CHECKING:
    from pumice.core.session.session import Session


class ResourceStrategyFit:
    """`resourceStrategyFitWeight` (10), `resources` (cpu and memory LeastAllocated), `sra`, `proportional`: see
    arguments.py.
    """

    name = "resource-strategy-fit"

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._weight = read.fit_weight(arguments)
        self._strategies = read.strategies(arguments)
        self._sra = read.sra(arguments)
        self._shares = read.proportional(arguments)

    def on_session_open(self, session: Session) -> None:
        """Register the filter when proportional is on, the scorer when a weight is above 0."""
        if self._shares is not None:
            session.points.predicate.add(self.name, [Proportional(self._shares)])
        if self._weight > 0 or self._sra.weight > 0:
            session.points.node_order.add(self.name, [StrategyScorer(self._strategies, self._weight, self._sra)])

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""
