"""binpack against the obvious one, over hypothesis-made clusters, to the last bit."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.objects.metadata import Object
from pumice.core.plugins.binpack import Binpack, FillScorer
from tests.core.kube.clusters import clusters
from tests.core.kube.sessions import opened, put, scores, task_named
from tests.core.plugins.nodeorder import plain_scores
from tests.core.plugins.world import configuration, open_world
from tests.kit import gang, node, pod, queue

GPU = "nvidia.com/gpu"
WEIGHTS = st.dictionaries(st.sampled_from(["cpu", "memory", GPU, "pods", "example.com/none"]), st.integers(0, 7))


def key_of(one: Object) -> str:
    return f"{one['metadata']['namespace']}/{one['metadata']['name']}"


@given(cluster=clusters(), weights=WEIGHTS, weight=st.integers(-3, 9), moved=st.integers(0, 9))
def test_binpack_is_the_slow_one(
    cluster: tuple[list[Object], list[Object], Object], weights: dict[str, int], weight: int, moved: int
) -> None:
    nodes, running, waiting = cluster
    session = opened(*nodes, *running, waiting)
    task, rows = task_named(session, key_of(waiting)), list(range(len(nodes)))
    score = FillScorer(weights, weight).prepare(session, task)
    for step in range(2):
        if step and running:
            put(session, task_named(session, key_of(running[moved % len(running)])), moved % len(nodes))
        expected = [plain_scores.binpack(session, task, row, weights, weight) for row in rows]
        assert scores(session, score, rows) == expected


def test_a_fuller_node_scores_higher() -> None:
    session = opened(node("n0"), node("n1"), pod("r", node="n1", cpu="4"), pod("p"))
    low, high = scores(session, FillScorer({"cpu": 1}, 1).prepare(session, task_named(session, "default/p")), [0, 1])
    assert (low, high) == (12.5, 62.5)


def test_one_resource_that_does_not_fit_zeroes_the_score() -> None:
    session = opened(node("n0", cpu="1"), pod("p", cpu="2", memory="1Gi"))
    score = FillScorer({"cpu": 1, "memory": 1}, 1).prepare(session, task_named(session, "default/p"))
    assert scores(session, score, [0]) == [0.0]


@pytest.mark.parametrize(
    ("arguments", "weight", "weights"),
    [
        ({}, 1, {"cpu": 1, "memory": 1}),
        ({"binpack.weight": 5, "binpack.cpu": 0, "binpack.memory": -2}, 5, {"cpu": 0, "memory": 1}),
        ({"binpack.weight": "5", "binpack.cpu": 2.0}, 1, {"cpu": 1, "memory": 1}),
        (
            {"binpack.resources": f"{GPU} ,, a/b", f"binpack.resources.{GPU}": 3, "binpack.resources.a/b": -1},
            1,
            {GPU: 3, "a/b": 1, "cpu": 1, "memory": 1},
        ),
        ({"binpack.resources": "cpu", "binpack.resources.cpu": 9, "binpack.cpu": 2}, 1, {"cpu": 2, "memory": 1}),
        ({"binpack.resources": ["a/b"]}, 1, {"cpu": 1, "memory": 1}),
    ],
)
def test_arguments(arguments: dict[str, Any], weight: int, weights: dict[str, int]) -> None:
    plugin = Binpack(arguments)
    assert (plugin.weight, plugin.weights) == (weight, weights)


def test_weight_zero_leaves_the_scorer_out() -> None:
    objects = [node("n0"), queue("default"), *gang("j", pods=1)]
    for weight, scorers in ((0, 0), (1, 1), (-1, 1)):
        config = configuration([{"name": "binpack", "arguments": {"binpack.weight": weight}}])
        assert len(open_world(config, *objects).points.node_order.rules) == scorers
