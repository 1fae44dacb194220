"""Shares of cards: which cards a pod gets, and which pods are typical."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.devices.milli import (
    CardAsk,
    CardClass,
    NodeStates,
    best_fit,
    clustering,
    dot_product,
    fitting,
    fullest,
    packing,
    typical_of,
)

MOST = (64_000, 4_000)
LEFT = st.lists(st.integers(0, 1000) | st.just(1000), min_size=1, max_size=4)
ASKS = st.builds(CardAsk, st.integers(0, 8000), st.just(1), st.integers(1, 1000)) | st.builds(
    CardAsk, st.integers(0, 8000), st.integers(1, 4), st.just(1000)
)
CLASSES = st.builds(CardClass, st.integers(0, 3), st.sampled_from([0, 500, 1000]), st.integers(0, 2))


def states_of(*nodes: list[int], cpu: int = 8000) -> NodeStates:
    """Nodes whose cards have so much left; a card that is not there has 1000, which must not count."""
    most = max(map(len, nodes))
    left = np.array([[*each, *[1000] * (most - len(each))] for each in nodes], dtype=np.int64)
    there = np.array([[at < len(each) for at in range(most)] for each in nodes], dtype=np.bool_)
    return NodeStates(left, there, np.full(len(nodes), cpu), np.zeros(len(nodes), dtype=np.int64))


@given(st.lists(LEFT, min_size=1, max_size=4), ASKS)
def test_pod_gets_the_fullest_cards_that_have_enough(nodes: list[list[int]], ask: CardAsk) -> None:
    states = states_of(*nodes)
    fits, chosen = fitting(states, ask), fullest(states, ask)
    for row, left in enumerate(nodes):
        enough = [card for card, each in enumerate(left) if each >= ask.milli]
        assert fits[row].nonzero()[0].tolist() == enough
        if len(enough) >= ask.cards:
            expected = sorted(enough, key=lambda card: (left[card], card))[: ask.cards]
            assert chosen[row].nonzero()[0].tolist() == sorted(expected)


@given(LEFT, st.lists(ASKS, max_size=8))
def test_cards_give_no_more_than_they_have_and_get_all_back(left: list[int], asks: list[CardAsk]) -> None:
    states, given_out = states_of(left), list[tuple[CardAsk, NodeStates]]()
    for ask in asks:
        if np.count_nonzero(fitting(states, ask)) < ask.cards:
            continue
        chosen = fullest(states, ask)
        after = states._replace(left=np.where(chosen, states.left - ask.milli, states.left))
        assert int((states.left - after.left).sum()) == ask.total
        assert (after.left >= 0).all()
        given_out.append((ask, states))
        states = after
    assert sum(left) - int(states.left.sum()) == sum(ask.total for ask, _ in given_out)


@given(st.lists(LEFT, min_size=1, max_size=3), ASKS, st.integers(0, 64_000), st.integers(0, 2), st.integers(0, 2))
def test_scores_of_nodes_that_fit_lie_between_0_and_100(
    nodes: list[list[int]], ask: CardAsk, cpu: int, own: int, others: int
) -> None:
    states = states_of(*nodes, cpu=cpu)
    fits = (np.count_nonzero(fitting(states, ask), axis=1) >= ask.cards) & (states.cpu >= ask.cpu)
    rows = fits.nonzero()[0]
    states, held = states.at(rows), (np.full(len(rows), own), np.full(len(rows), others))
    scored = (best_fit(states, ask, MOST), dot_product(states, ask, MOST), clustering(states, ask, MOST, *held))
    for scores in (*scored, packing(states, ask)):
        assert len(scores) == len(rows)
        assert ((scores >= 0) & (scores <= 100) & (scores == np.trunc(scores))).all()


@given(LEFT, LEFT, ASKS)
def test_best_fit_prefers_the_node_with_less_left(one: list[int], other: list[int], ask: CardAsk) -> None:
    first, second = best_fit(states_of(one, other), ask, MOST).tolist()
    assert (first >= second) or sum(one) > sum(other)


@given(st.lists(CLASSES, max_size=30), st.floats(1, 100))
def test_typical_pods_are_the_fewest_that_cover_enough(pods: list[CardClass], percent: float) -> None:
    found, counts = typical_of(pods, percent), Counter(pods)
    wanted = len(pods) * percent / 100.0
    assert found == typical_of(dict(counts), percent)
    assert all(counts[each] == number for each, number in found.items())
    assert sum(found.values()) >= wanted
    assert not found or sum(found.values()) - min(found.values()) < wanted
    rest = [number for each, number in counts.items() if each not in found]
    assert max(rest, default=0) <= min(found.values(), default=0) or not pods


@pytest.mark.parametrize(("percent", "count"), [(49.0, 1), (50.0, 1), (51.0, 2), (75.0, 2), (76.0, 3), (100.0, 3)])
def test_typical_pods_end_where_they_cover_just_enough(percent: float, count: int) -> None:
    pods = {CardClass(1, 0, 0): 2, CardClass(2, 0, 0): 1, CardClass(3, 0, 0): 1}
    assert len(typical_of(pods, percent)) == count


@pytest.mark.parametrize(
    ("models", "model", "suits"),
    [("", "T4", True), ("T4", "NVIDIA-t4", True), ("G2|T4", "T4", True), ("G2", "T4", False), ("G2|V100", "T4", False)],
)
def test_class_that_names_models_suits_them_only(models: str, model: str, suits: bool) -> None:
    assert CardClass(1, 1000, 1, models).suits(model) is suits


@pytest.mark.parametrize(
    ("ask", "is_shared", "total"),
    [
        (CardAsk(1, 0, 0), False, 0),
        (CardAsk(1, 1, 400), True, 400),
        (CardAsk(1, 1, 1000), False, 1000),
        (CardAsk(1, 3, 1000), False, 3000),
    ],
)
def test_share_of_one_card_alone_counts_as_shared(ask: CardAsk, is_shared: bool, total: int) -> None:
    assert (ask.is_shared, ask.total) == (is_shared, total)
