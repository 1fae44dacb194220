"""Fragmentation against its definition, one typical pod after the other, and what it makes of scores."""

from __future__ import annotations

from math import exp

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.devices.milli import (
    NO_CARD,
    CardAsk,
    CardClass,
    Fragmentation,
    NodeStates,
    TypicalPods,
    typical_of,
)

MODELS = ("NVIDIA-G2", "NVIDIA-T4")
LEFT = st.lists(st.sampled_from([0, 100, 250, 460, 500, 999, 1000]), min_size=0, max_size=4)
NODES = st.lists(st.tuples(LEFT, st.integers(0, 12) | st.just(64), st.integers(0, 1)), min_size=1, max_size=4)
SHARED = st.tuples(st.integers(0, 12), st.sampled_from([100, 460, 500, 1000]), st.just(1))
WHOLE = st.tuples(st.integers(0, 12), st.just(1000), st.integers(2, 4))
NONE = st.tuples(st.integers(0, 12), st.just(0), st.just(0))


def card_class(ask: tuple[int, int, int], models: str) -> CardClass:
    return CardClass(*ask, models)


PODS = st.builds(
    card_class,
    SHARED | WHOLE | NONE,
    st.sampled_from(["", "G2", "T4", "G2|T4"]),
)
CLASSES = st.dictionaries(PODS, st.integers(1, 9), min_size=1, max_size=6)

Node = tuple[list[int], int, int]


def states_of(nodes: list[Node]) -> NodeStates:
    most = max(len(left) for left, _, _ in nodes)
    left = np.array([[*each, *[0] * (most - len(each))] for each, _, _ in nodes], dtype=np.int64)
    there = np.array([[True] * len(each) + [False] * (most - len(each)) for each, _, _ in nodes], dtype=np.bool_)
    cpu, model = np.array([node[1] for node in nodes]), np.array([node[2] for node in nodes])
    shape = len(nodes), most
    return NodeStates(left.reshape(shape), there.reshape(shape), cpu, model)


def wasted(node: Node, classes: dict[CardClass, int]) -> float:
    """F as it is defined, added up by reason as the authors do: neither CPU nor cards, no cards, no CPU, and so on."""
    left, cpu, model = node
    total, sums = sum(classes.values()), [0.0] * 6
    for pod, count in classes.items():
        enough = sum(each >= pod.milli for each in left) >= pod.cards
        room, amount = cpu >= pod.cpu, sum(left)
        if not pod.cards:
            reason = 3 if room else 4
        elif not pod.suits(MODELS[model]):
            reason = 5
        elif enough and room:
            reason, amount = 1, sum(each for each in left if each < pod.milli)
        else:
            reason = {(False, False): 0, (False, True): 1, (True, False): 2}[enough, room]
        sums[reason] += count / total * amount
    return sum(sums[1:], sums[0])


def worth(before: float, after: float) -> int:
    return int(1 / (1 + exp(-(before - after) / 1000)) * 100)


@given(NODES, CLASSES)
def test_it_is_what_typical_pods_could_not_use(nodes: list[Node], classes: dict[CardClass, int]) -> None:
    found = Fragmentation(TypicalPods(classes, MODELS)).of(states_of(nodes))
    assert found.tolist() == [wasted(node, classes) for node in nodes]


@given(NODES, CLASSES, SHARED | WHOLE | NONE)
def test_a_pod_is_worth_what_it_takes_off_the_fragmentation(
    nodes: list[Node], classes: dict[CardClass, int], asked: tuple[int, int, int]
) -> None:
    cpu, milli, cards = asked
    scores, chosen = Fragmentation(TypicalPods(classes, MODELS)).scores(states_of(nodes), CardAsk(cpu, cards, milli))
    for (left, room, model), score, card in zip(nodes, scores.tolist(), chosen.tolist(), strict=True):
        fits = [index for index, each in enumerate(left) if each >= milli]
        if len(fits) < cards:
            assert (score, card) == (0.0, NO_CARD)
            continue
        fullest = sorted(fits, key=left.__getitem__)[:cards]
        ways = [[index] for index in fits] if cards == 1 and milli < 1000 else [fullest]
        before, tried = wasted((left, room, model), classes), list[int]()
        for way in ways:
            after = [each - milli * (index in way) for index, each in enumerate(left)]
            tried.append(worth(before, wasted((after, room - cpu, model), classes)))
        assert score == max(tried)
        if len(ways) > 1:
            assert [card] == ways[tried.index(max(tried))]


def test_the_most_frequent_classes_are_typical_until_they_cover_enough() -> None:
    rare, often, big, small = CardClass(1, 0, 0), CardClass(2, 460, 1), CardClass(9, 0, 0), CardClass(3, 0, 0)
    assert typical_of([rare] + [often] * 16 + [big] * 2 + [small] * 2, 94.0) == {often: 16, big: 2, small: 2}
    assert typical_of({often: 16, big: 2, small: 2}, 85.0) == {often: 16, big: 2}
    assert typical_of([]) == {}


def test_rare_pods_are_left_out_and_the_shares_of_the_others_are_as_the_authors_have_them() -> None:
    pods = TypicalPods({CardClass(1, 1000, 1): 7, CardClass(2, 0, 0): 2}, MODELS, 10)
    assert pods.share.tolist() == [7 / 10 / (9 / 10), 2 / 10 / (9 / 10)]


def test_without_typical_pods_nothing_is_wasted() -> None:
    judged = Fragmentation(TypicalPods({}, MODELS))
    states = states_of([([900, 1000], 3, 0), ([100], 2, 1)])
    assert judged.of(states).tolist() == [0.0, 0.0]
    assert judged.scores(states, CardAsk(1, 1, 500))[0].tolist() == [50.0, 0.0]


def test_a_reason_that_changes_may_change_the_last_digits() -> None:
    """Nobody can have these cards. Taking CPU leaves as much unused as before, but of one class for another reason: to
    the authors' simulator that is worth 49, not 50.
    """
    classes = {CardClass(8, 1000, 1): 5, CardClass(1, 1000, 1): 1, CardClass(3, 1000, 1): 8}
    judged = Fragmentation(TypicalPods(classes, MODELS))
    scores, _ = judged.scores(states_of([([900] * 8, 3, 0), ([900] * 8, 2, 0)]), CardAsk(1, 0, 0))
    assert scores.tolist() == [49.0, 50.0]
