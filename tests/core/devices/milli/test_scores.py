"""The scores of the other policies, number by number."""

from __future__ import annotations

import numpy as np

from pumice.core.devices.milli import CardAsk, NodeStates, best_fit, clustering, dot_product, packing

MOST = (128_000, 8_000)


def node(cpu: int, *left: int) -> NodeStates:
    cards = np.array([[*left, *[0] * (8 - len(left))]], dtype=np.int64)
    there = np.array([[True] * len(left) + [False] * (8 - len(left))])
    return NodeStates(cards, there, np.array([cpu]), np.array([0]))


def test_best_fit_and_dot_product_weigh_cpu_and_cards_alike() -> None:
    full, ask = node(64_000, 1000, 1000, 500, 500), CardAsk(32_000, 1, 500)
    assert best_fit(full, ask, MOST).tolist() == [71.0]  # 100 · (1 - 0.5 · 0.25 - 0.5 · 0.3125)
    assert dot_product(full, ask, MOST).tolist() == [92.0]  # 100 · (1 - 0.5 · (0.125 + 0.0234…))


def test_clustering_likes_nodes_with_its_own_kind() -> None:
    state, ask = node(1, 1000, 0), CardAsk(1, 1, 500)

    def score(own: int, others: int) -> float:
        return float(clustering(state, ask, MOST, np.array([own]), np.array([others]))[0])

    assert [score(1, 0), score(1, 1), score(0, 0), score(0, 1)] == [96.0, 71.0, 46.0, 21.0]
    assert clustering(state, CardAsk(1, 0, 0), MOST, np.array([1]), np.array([0])).tolist() == [0.0]


def test_packing_keeps_idle_cards_and_idle_nodes() -> None:
    assert packing(node(1, *[1000] * 8), CardAsk(1, 1, 500)).tolist() == [25.0]  # an idle node of eight
    assert packing(node(1, *[1000] * 2), CardAsk(1, 1, 500)).tolist() == [31.0]
    assert packing(node(1, 600, 1000), CardAsk(1, 1, 500)).tolist() == [94.0]  # a card in use
    assert packing(node(1, 400, 1000), CardAsk(1, 1, 500)).tolist() == [49.0]  # an idle card of a node in use
    assert packing(node(1, 500, 1000, 1000), CardAsk(1, 2, 1000)).tolist() == [48.0]
    assert packing(node(1, 600), CardAsk(1, 0, 0)).tolist() == [0.0]
