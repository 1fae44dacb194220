"""Each scorer against the obvious one, over hypothesis-made clusters.

All rows, some rows and one row agree to the last bit.
"""

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.kube.placed import placed_pods
from pumice.core.objects.metadata import Object
from pumice.core.plugins.nodeorder.balanced_allocation import BalancedAllocation
from pumice.core.plugins.nodeorder.plugin import (
    LEAST,
    MOST,
    PREFERRED,
    WEIGHTS,
    Allocated,
    ImageLocality,
    NodeAffinityScorer,
    NodeOrder,
    PodAffinityScorer,
    TaintToleration,
)
from pumice.core.plugins.nodeorder.topology_spread import TopologySpreadScorer
from tests.core.kube import slow
from tests.core.kube.clusters import clusters
from tests.core.kube.sessions import opened, put, scores, task_named
from tests.kit import node, node_affinity, pod, taint

if TYPE_CHECKING:
    from pumice.core.session.points.nodes import NodeScorer
    from pumice.core.session.session import Session

Cluster = tuple[list[Object], list[Object], Object]
WEIGHT = 3


def key_of(one: Object) -> str:
    return f"{one['metadata']['namespace']}/{one['metadata']['name']}"


def on_nodes(nodes: list[Object], running: list[Object]) -> list[list[Object]]:
    return [[p for p in running if p["spec"]["nodeName"] == n["metadata"]["name"]] for n in nodes]


def answers(scorer: "NodeScorer", session: "Session", key: str, candidates: list[int]) -> list[float]:
    return scores(session, scorer.prepare(session, task_named(session, key)), candidates)


def test_a_scorer_prepared_for_several_tasks_says_of_each_what_one_of_its_own_would() -> None:
    asked = (("1", "1Gi"), ("3", "2Gi"), ("2", "12Gi"))
    pods = [pod(f"p{number}", cpu=cpu, memory=memory) for number, (cpu, memory) in enumerate(asked)]
    session, rows = opened(node("n0", cpu="4"), node("n1", cpu="16"), *pods), [0, 1]
    makers = (lambda: Allocated(session, LEAST, WEIGHT), lambda: BalancedAllocation(session, WEIGHT))
    for make in makers:
        shared, tasks = make(), [task_named(session, key_of(each)) for each in pods]
        together = [score for task in tasks if (score := shared.prepare(session, task)) is not None]
        alone = [answers(make(), session, key_of(each), rows) for each in pods]
        assert [scores(session, score, rows) for score in together] == alone
        assert len({*map(tuple, alone)}) == len(asked)


@given(cluster=clusters(), moved=st.integers(0, 9))
def test_resource_scorers_are_the_slow_ones(cluster: Cluster, moved: int) -> None:
    nodes, running, waiting = cluster
    session, key, rows = opened(*nodes, *running, waiting), key_of(waiting), list(range(len(nodes)))
    least, most = Allocated(session, LEAST, WEIGHT), Allocated(session, MOST, 1)
    balanced = BalancedAllocation(session, WEIGHT)
    placed = on_nodes(nodes, running)
    for step in range(2):
        if step and running:
            put(session, task_named(session, key_of(running[moved % len(running)])), moved % len(nodes))
            placed[moved % len(nodes)].append(running[moved % len(running)])
        there = [[*placed[row], waiting] for row in rows]
        expected = [WEIGHT * slow.least_allocated(there[row], nodes[row]) for row in rows]
        assert answers(least, session, key, rows) == expected
        assert answers(most, session, key, rows) == [slow.most_allocated(there[r], nodes[r]) for r in rows]
        even = [slow.balanced_allocation(waiting, placed[row], nodes[row]) for row in rows]
        assert answers(balanced, session, key, rows) == [WEIGHT * (e or 0) for e in even]


@given(cluster=clusters(), data=st.data())
def test_normalised_scorers_are_the_slow_ones(cluster: Cluster, data: st.DataObject) -> None:
    nodes, running, waiting = cluster
    session, key = opened(*nodes, *running, waiting), key_of(waiting)
    candidates = data.draw(st.lists(st.integers(0, len(nodes) - 1), unique=True, min_size=1).map(sorted))
    liked = slow.normalised([slow.preferred(waiting, nodes[row]) for row in candidates])
    assert answers(NodeAffinityScorer(WEIGHT), session, key, candidates) == [WEIGHT * s for s in liked]
    clean = slow.normalised([slow.soft_taints(waiting, nodes[row]) for row in candidates], reverse=True)
    assert answers(TaintToleration(session, WEIGHT), session, key, candidates) == [WEIGHT * s for s in clean]


@given(cluster=clusters())
def test_image_locality_is_the_slow_one(cluster: Cluster) -> None:
    nodes, running, waiting = cluster
    session, rows = opened(*nodes, *running, waiting), list(range(len(nodes)))
    expected = [2 * slow.image_locality(waiting, one, nodes) for one in nodes]
    assert answers(ImageLocality(2), session, key_of(waiting), rows) == expected


def test_large_memories_are_divided_exactly() -> None:
    """One byte short of a whole per cent, on a node of 60 TiB."""
    memory = 60 * 2**40
    for percent in (1, 29, 57, 99):
        taken = -(-memory * percent // 100) + 1
        session = opened(node("n0", cpu="0", memory=str(memory)), pod("p", memory=str(taken)))
        score = Allocated(session, LEAST, 1).prepare(session, task_named(session, "default/p"))
        assert scores(session, score, [0]) == [(memory - taken) * 100 // memory]


def test_a_pod_that_asks_for_nothing_has_no_balance() -> None:
    session = opened(node("n0"), pod("p", cpu=None, memory=None))
    assert BalancedAllocation(session, 1).prepare(session, task_named(session, "default/p")) is None


def test_pod_level_resources_do_not_count_as_the_pods_own() -> None:
    whole = pod("p", cpu=None, memory=None)
    whole["spec"]["resources"] = {"requests": {"cpu": "4", "memory": "1Gi"}}
    session = opened(node("n0"), whole)
    assert BalancedAllocation(session, 1).prepare(session, task_named(session, "default/p")) is None


def test_oversubscription_is_not_allocatable_to_kubernetes() -> None:
    lent = node("n1", cpu="4", annotations={"volcano.sh/oversubscription-cpu": "4000"})
    session = opened(node("n0", cpu="4"), lent, pod("p", cpu="2"))
    least, same = Allocated(session, LEAST, 1), answers
    found = same(least, session, "default/p", [0, 1])
    assert found[0] == found[1]


def test_an_untainted_cluster_scores_a_constant() -> None:
    session = opened(node("n0"), node("n1", taints=[taint("k")]), pod("p"))
    score = TaintToleration(session, 3).prepare(session, task_named(session, "default/p"))
    assert score.constant == 300.0


def test_nothing_preferred_matches_nothing_to_add() -> None:
    session = opened(node("n0"), pod("p", affinity=node_affinity("zone", "a", weight=5)))
    assert NodeAffinityScorer(2).prepare(session, task_named(session, "default/p")) is None


def broken(**where: Any) -> Object:
    """A pod whose preference names no value."""
    selector = {"matchExpressions": [{"key": "app", "operator": "In"}]}
    soft = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector}
    near = {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": selector}}
    affinity = node_affinity("zone", operator="In", weight=5) | {"podAffinity": {PREFERRED: [near]}}
    one = pod("p", affinity=affinity, **where)
    one["spec"]["topologySpreadConstraints"] = [soft]
    return one


def test_a_preference_that_cannot_be_read_does_not_count() -> None:
    session = opened(node("n0"), broken())
    task, placed = task_named(session, "default/p"), placed_pods(session)
    for scorer in (NodeAffinityScorer(2), PodAffinityScorer(placed, 2), TopologySpreadScorer(placed, 2)):
        assert scorer.prepare(session, task) is None


@pytest.mark.parametrize(("skew", "scores"), [(1, [0.0, 100.0]), (3, [66.0, 100.0])])
def test_the_more_skew_is_tolerated_the_less_it_matters(skew: int, scores: list[float]) -> None:
    labels = {"app": "web"}
    waiting = pod("p", labels=labels)
    soft = {"topologyKey": "kubernetes.io/hostname", "maxSkew": skew, "whenUnsatisfiable": "ScheduleAnyway"}
    waiting["spec"]["topologySpreadConstraints"] = [{**soft, "labelSelector": {"matchLabels": labels}}]
    session = opened(node("n0"), node("n1"), pod("old", node="n0", labels=labels), waiting)
    assert answers(TopologySpreadScorer(placed_pods(session), 1), session, "default/p", [0, 1]) == scores


def scorer_names(arguments: dict[str, Any]) -> list[str]:
    return [scorer.name for scorer in NodeOrder(arguments).batch_scorers(opened(node("n0")))]


def test_weight_zero_leaves_a_scorer_out() -> None:
    assert "NodeResourcesFit_MostAllocated" not in scorer_names({})
    assert "NodeResourcesFit_MostAllocated" in scorer_names({"mostrequested.weight": 2})
    assert scorer_names({f"{name}.weight": 0 for name in WEIGHTS}) == []


def test_a_weight_that_is_no_whole_number_is_ignored() -> None:
    assert scorer_names({"leastrequested.weight": "0", "balancedresource.weight": True}) == scorer_names({})
