"""resource-strategy-fit against the obvious one, over hypothesis-made clusters, to the last bit."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.objects.metadata import Object
from pumice.core.plugins.resource_strategy_fit import (
    DEFAULT_STRATEGIES,
    NO_SRA,
    TYPE_ANNOTATION,
    WEIGHT,
    WEIGHT_ANNOTATION,
    IdleShare,
    Proportional,
    Sra,
    Strategy,
    StrategyScorer,
    annotated,
    own_weights,
    read_shares,
    read_sra,
    read_strategies,
    strategy_for,
)
from tests.core.kube.clusters import clusters
from tests.core.kube.sessions import opened, put, scores, task_named, texts
from tests.core.plugins.nodeorder import plain_scores
from tests.core.plugins.world import configuration, open_world
from tests.kit import gang, node, pod, queue

Cluster = tuple[list[Object], list[Object], Object]
GPU = "nvidia.com/gpu"
NAMES = st.sampled_from(["cpu", "memory", GPU, "pods", "nvidia.com/*", "n*", "example.com/none"])
STRATEGIES = st.dictionaries(
    NAMES, st.builds(Strategy, st.sampled_from(["MostAllocated", "LeastAllocated"]), st.integers(1, 7))
)
SCARCE = st.dictionaries(st.sampled_from(["cpu", GPU, "example.com/none"]), st.integers(0, 4))


def key_of(one: Object) -> str:
    return f"{one['metadata']['namespace']}/{one['metadata']['name']}"


@given(
    cluster=clusters(), strategies=STRATEGIES, weight=st.integers(0, 9), scarce=SCARCE, sra=st.integers(0, 5),
    moved=st.integers(0, 9),
)  # fmt: skip
def test_score_is_the_slow_one(
    cluster: Cluster, strategies: dict[str, Strategy], weight: int, scarce: dict[str, int], sra: int, moved: int
) -> None:
    nodes, running, waiting = cluster
    session = opened(*nodes, *running, waiting)
    task, rows = task_named(session, key_of(waiting)), list(range(len(nodes)))
    score = StrategyScorer(strategies, weight, Sra(sra, scarce, sum(scarce.values()))).prepare(session, task)
    plain = {name: (strategy.kind, strategy.weight) for name, strategy in strategies.items()}
    for step in range(2):
        if step and running:
            put(session, task_named(session, key_of(running[moved % len(running)])), moved % len(nodes))
        expected = [0.0] * len(rows)
        if weight:
            expected = [plain_scores.fit(session, task, row, plain, weight) for row in rows]
        if sra:
            scarce_scores = [plain_scores.sra(session, task, row, scarce, sra) for row in rows]
            expected = [a + b for a, b in zip(expected, scarce_scores, strict=True)]
        assert scores(session, score, rows) == expected


@given(
    cluster=clusters(),
    kind=st.sampled_from(["MostAllocated", "LeastAllocated", "Anything"]),
    weights=st.dictionaries(st.sampled_from(["cpu", "memory", GPU]), st.integers(-2, 4)),
)
def test_a_pods_own_strategy_overrides(cluster: Cluster, kind: str, weights: dict[str, int]) -> None:
    nodes, running, waiting = cluster
    waiting["metadata"]["annotations"] = {TYPE_ANNOTATION: kind, WEIGHT_ANNOTATION: json.dumps(weights)}
    session = opened(*nodes, *running, waiting)
    task, rows = task_named(session, key_of(waiting)), list(range(len(nodes)))
    score = StrategyScorer(DEFAULT_STRATEGIES, 3, NO_SRA).prepare(session, task)
    own = {name: (kind, weight) for name, weight in weights.items()}
    assert scores(session, score, rows) == [plain_scores.fit(session, task, row, own, 3) for row in rows]


SHARES = st.dictionaries(
    st.sampled_from([GPU, "example.com/none", "cpu"]),
    st.builds(IdleShare, st.sampled_from([0.0, 0.5, 1.0, 4.0]), st.sampled_from([0.0, 1.0, 1000.0])),
)


@given(cluster=clusters(), shares=SHARES, moved=st.integers(0, 9))
def test_proportional_is_the_slow_one(cluster: Cluster, shares: dict[str, IdleShare], moved: int) -> None:
    nodes, running, waiting = cluster
    session = opened(*nodes, *running, waiting)
    task = task_named(session, key_of(waiting))
    by_name = {name: shares[name] for name in sorted(shares)}
    check = Proportional(by_name).prepare(session, task)
    for step in range(2):
        if step and running:
            put(session, task_named(session, key_of(running[moved % len(running)])), moved % len(nodes))
        plain = {name: (share.cpu, share.memory) for name, share in shares.items()}
        short = [plain_scores.disproportionate(session, task, row, plain) for row in range(len(nodes))]
        expected = [f"proportional of resource {name} check failed" if name else "" for name in short]
        assert texts(session, check) == expected


def test_who_asks_for_the_scarce_resource_passes() -> None:
    session = opened(node("n0", cpu="1", gpus=4), pod("p", gpus=1), pod("q"))
    shares = {GPU: IdleShare(4.0, 8.0)}
    assert Proportional(shares).prepare(session, task_named(session, "default/p")) is None
    refused = texts(session, Proportional(shares).prepare(session, task_named(session, "default/q")))
    assert refused == [f"proportional of resource {GPU} check failed"]


def test_just_enough_left_beside_the_scarce_resource_passes() -> None:
    session = opened(
        node("n0", cpu="5", gpus=4, memory="4001M"), node("n1", cpu="4999m", gpus=4, memory="8G"),
        node("n2", cpu="8", gpus=4, memory="3999M"), pod("p", cpu="1", memory="1M"),
    )  # fmt: skip
    check = Proportional({GPU: IdleShare(1.0, 1.0)}).prepare(session, task_named(session, "default/p"))
    refused = f"proportional of resource {GPU} check failed"
    assert texts(session, check) == ["", refused, refused]


def test_tasks_share_a_search_only_with_the_same_annotations() -> None:
    marks = {TYPE_ANNOTATION: "MostAllocated", WEIGHT_ANNOTATION: '{"cpu": 1}'}
    session = opened(node("n0"), pod("p", annotations=marks), pod("q"), pod("r", annotations=dict(marks)))
    p, q, r = (annotated(task_named(session, f"default/{name}")) for name in "pqr")
    assert p == r != q


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ('{"cpu": 2, "memory": null}', {"cpu": 2, "memory": 0}),
        ("null", {}),
        ('{"cpu": 1.5}', None),
        ('{"cpu": true}', None),
        ('{"cpu": "1"}', None),
        ("[1]", None),
        ("", None),
    ],
)
def test_own_weights(text: str, weights: dict[str, int] | None) -> None:
    assert own_weights(text) == weights


def test_own_weights_that_cannot_be_read_score_nothing() -> None:
    marks = {TYPE_ANNOTATION: "MostAllocated", WEIGHT_ANNOTATION: "{"}
    session = opened(node("n0"), pod("p", annotations=marks))
    score = StrategyScorer(DEFAULT_STRATEGIES, 1, NO_SRA).prepare(session, task_named(session, "default/p"))
    assert scores(session, score, [0]) == [0.0]


@pytest.mark.parametrize(
    ("value", "weight"), [({}, 10), (-1, 10), (0, 0), (3, 3), (2.9, 2), ("7", 10), (None, 0), (True, 10)]
)
def test_weight(value: Any, weight: int) -> None:
    assert WEIGHT.of({} if value == {} else {"resourceStrategyFitWeight": value}) == weight


def test_strategies() -> None:
    given_strategies = {
        "cpu": {"type": "MostAllocated", "weight": 3}, "memory": {"Type": "Whatever", "Weight": -1}, "*": {}, "a*b": {},
        "a**": {}, "a/*": None,
    }  # fmt: skip
    assert read_strategies({"resources": given_strategies}) == {
        "cpu": Strategy("MostAllocated", 3),
        "memory": Strategy("LeastAllocated", 1),
        "a/*": Strategy("LeastAllocated", 1),
    }
    assert read_strategies({"resources": {}}) == read_strategies({}) == DEFAULT_STRATEGIES
    assert read_strategies({"resources": {"*": {}}}) == {}


def test_the_longest_prefix_wins_and_the_exact_name_above_all() -> None:
    known = {key: Strategy("MostAllocated", i) for i, key in enumerate(["n*", "nvidia.com/*", "nvidia.com/gpu"], 1)}
    found = {name: strategy_for(name, known) for name in (GPU, "nvidia.com/mig", "new", "other")}
    assert [strategy and strategy.weight for strategy in found.values()] == [3, 2, 1, None]


def test_sra_arguments() -> None:
    weights = {"a": 2, "b": -4}
    given_sra = {"Enable": True, "resources": "a, b,c,a", "weight": 5, "ResourceWeight": weights}
    assert read_sra({"sra": given_sra}) == Sra(5, {"a": 2, "b": 1, "c": 1}, 6)
    assert read_sra({"sra": {**given_sra, "Enable": False}}) == read_sra({}) == NO_SRA


def test_proportional_arguments() -> None:
    proportion = {"a.cpu": 4, "a.memory": -8, "b.memory": 0.5}
    given_shares = {"enable": True, "resources": "b,a", "resourceProportion": proportion}
    assert read_shares({"proportional": given_shares}) == {"a": IdleShare(4.0, 1.0), "b": IdleShare(1.0, 0.5)}
    assert read_shares({"proportional": {"resources": "a"}}) is None


@pytest.mark.parametrize(
    ("arguments", "scorers", "filters"),
    [
        ({}, 1, 0),
        ({"resourceStrategyFitWeight": 0}, 0, 0),
        ({"resourceStrategyFitWeight": 0, "sra": {"enable": True, "weight": 1}}, 1, 0),
        ({"proportional": {"enable": True, "resources": GPU}}, 1, 1),
    ],
)
def test_what_is_registered(arguments: dict[str, Any], scorers: int, filters: int) -> None:
    config = configuration([{"name": "resource-strategy-fit", "arguments": arguments}])
    points = open_world(config, node("n0"), queue("default"), *gang("j", pods=1)).points
    assert len(points.node_order.rules) == scorers
    assert len(points.predicate.rules) == filters
