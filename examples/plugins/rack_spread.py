"""Two plugins of one's own: one by a per-node function, one by a column rule over all nodes in one batch.

pumice decide -f cluster.yaml -f queues/ -f work.yaml --plugins-dir plugins --config racks.conf
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pumice.plugins import (
    ColumnRule,
    NodeLook,
    PluginBuilder,
    Reads,
    Session,
    Task,
)


class QuietRacks:
    """Refuses racks that already have so many tasks of the job. Per node: simple, and fast enough when small."""

    name = "quiet-racks"

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._label = str(arguments.get("label", "rack"))
        self._most = int(arguments.get("most", 4))

    def on_session_open(self, session: Session) -> None:
        """Register the filter: any function of a task and a node will do, and is asked anew after every placement."""
        self._session = session
        session.points.predicate.add(self.name, self.test)

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""

    def test(self, task: Task, node: NodeLook) -> str | None:
        """None: the node will do."""
        rack = node.labels.get(self._label)
        if not task.job or rack is None:
            return None
        nodes = self._session.nodes
        there = [row for row, spec in enumerate(nodes.specs) if spec.labels.get(self._label) == rack]
        mates = sum(1 for row in there for other in nodes.tasks_on(row) if other.job == task.job)
        return f"rack {rack} has {mates} of the job's tasks" if mates >= self._most else None


class YoungNodes:
    """Prefers nodes that joined last: for clusters that shrink from the old end. Vectorised: one array for all."""

    name = "young-nodes"
    reads = Reads()  # the score does not depend on the task

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._weight = float(arguments.get("weight", 1))

    def on_session_open(self, session: Session) -> None:
        """Work the scores out once and register."""
        place = np.empty(session.nodes.count)
        place[session.nodes.arrival] = np.arange(session.nodes.count)
        self._score = ColumnRule(place / max(1, session.nodes.count - 1) * 100.0 * self._weight)
        session.points.node_order.add(self.name, [self])

    def on_session_close(self, session: Session) -> None:
        """Nothing to do."""

    def prepare(self, session: Session, task: Task) -> ColumnRule[np.float64]:
        """NodeScorer: an array for good, whatever the task. A function over rows would be asked again."""
        return self._score


PLUGINS: dict[str, PluginBuilder] = {"quiet-racks": QuietRacks, "young-nodes": YoungNodes}
