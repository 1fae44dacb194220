"""conformance: what Kubernetes itself needs is nobody's victim."""

from __future__ import annotations

import pytest

from tests.core.plugins.world import ask, configuration, open_world
from tests.kit import node, pod, queue

CRITICAL = ("system-cluster-critical", "system-node-critical")


@pytest.mark.parametrize("point", ["Preemptable", "Reclaimable", "UnifiedEvictable"])
def test_critical_pods_stay(point: str) -> None:
    session = open_world(
        configuration(["conformance"]),
        node("n"),
        queue("q"),
        pod("plain", node="n", priority_class="high"),
        pod("system", node="n", namespace="kube-system"),
        *(pod(name, node="n", priority_class=name) for name in CRITICAL),
    )
    tasks = [task for task in session.snapshot.tasks.handles if task is not None]
    assert [task.name for task in ask(session, point, tasks[0], tasks)] == ["plain"]
