"""A scoring rule that a program found, in our words, as a plugin.

`alphaevolve` is the function that Novikov et al. ("AlphaEvolve", 2025, section 3.3.1) publish for Google's clusters:
what a pod asks for of cpu and of memory, each as a part of what is free on the node; the two parts, and their ratios
either way, are added up, and the less the better. So it takes nodes with much room, and keeps what is left in
proportion. Where cards are asked for, they stand in memory's place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pumice.plugins import ColumnRule, FloatArray, PluginBuilder, Reads, Rows, Session, Task, Volatility

LEAST = 1e-3
"""Least amount that counts as requested or free: ratios stay finite."""


class AlphaEvolve:
    """Scores nodes by the sum of the asked parts of what is free, and of their ratios; the less the better."""

    name = "alphaevolve"
    reads = Reads()

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._card = str(arguments.get("resource", "nvidia.com/gpu"))

    def on_session_open(self, session: Session) -> None:
        """Register the score."""
        session.points.node_order.add(self.name, [self])

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""

    def prepare(self, session: Session, task: Task) -> ColumnRule[np.float64]:
        """Return the score of a pod's template: it follows from what is free on each node."""
        names, asked = session.dims.names, dict(task.template.items)
        cpu, memory = names.index("cpu"), names.index("memory")
        other = names.index(self._card) if self._card in names and asked.get(names.index(self._card)) else memory
        idle = session.nodes.idle

        def score(rows: Rows) -> FloatArray:
            first, second = (max(asked.get(at, 0.0), LEAST) / np.maximum(idle[at][rows], LEAST) for at in (cpu, other))
            found: FloatArray = -(first + second + first / second + second / first)
            return found

        return ColumnRule(score, Volatility.ROW)


PLUGINS: dict[str, PluginBuilder] = {AlphaEvolve.name: AlphaEvolve}
