"""conformance: what Kubernetes itself needs is nobody's victim."""

from __future__ import annotations

import pytest

from tests.core.actions.crowds import after, classes, evictions, running, waiting
from tests.core.plugins.world import Option, ask, configuration, open_world
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


TIERS: tuple[list[Option], ...] = (["priority", "conformance"], ["capacity", "predicates"])


@pytest.mark.parametrize(("fix", "victims"), [((), ["b-2", "b-1"]), (("conformance-only-filters",), ["b-2", "c-2"])])
def test_queues_keep_what_they_deserve_under_the_fix(fix: tuple[str, ...], victims: list[str]) -> None:
    """Queues b and c hold three cpu each and deserve two; conformance alone would let any of their pods go."""
    named = {"a": "2", "b": "2", "c": "2"}
    queues = [queue(name, deserved={"cpu": cpu}) for name, cpu in named.items()]
    old = [*running("b", ["n0"] * 3, queue="b", least=0), *running("c", ["n1"] * 3, queue="c", least=0)]
    new = waiting("new", 2, queue="a", min_member=1)
    nodes = [node("n0", cpu="3"), node("n1", cpu="3")]
    session = after("reclaim", configuration(*TIERS, fix=fix), nodes, queues, classes(), old, new)
    assert evictions(session) == victims


@pytest.mark.parametrize("tiers", [(["conformance"],), (["conformance"], ["gang"]), (["gang"], ["conformance"])])
def test_critical_pods_stay_whatever_the_tiers_under_the_fix(tiers: tuple[list[Option], ...]) -> None:
    session = open_world(
        configuration(*tiers, fix=["conformance-only-filters"]),
        node("n"),
        queue("q"),
        running("plain", ["n"], least=0, queue="q"),
        running("system", ["n"], least=0, queue="q", namespace="kube-system"),
        classes(),
    )
    tasks = [task for task in session.snapshot.tasks.handles if task is not None]
    for point in (session.points.preemptable, session.points.reclaimable):
        assert [task.name for task in point(tasks[0], tasks)] == ["plain-0"]
        assert point(tasks[0], [task for task in tasks if task.name == "system-0"]) == []
        assert not point.by_columns
