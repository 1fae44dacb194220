"""Plugin resource-strategy-fit: fill or spread by resource, keep off scarce resources, reserve cpu and memory for them.

arguments.py reads what is configured, scorer.py scores (sra included), proportional.py refuses nodes.
"""

from pumice.core.plugins.resource_strategy_fit.plugin import ResourceStrategyFit

__all__ = ["ResourceStrategyFit"]
