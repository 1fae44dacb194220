"""Cards shared by memory or had by number: who gets which, and what comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.devices.columns import MOST_CARDS
from pumice.core.devices.family import Around, DeviceError
from pumice.core.devices.gpushare import cards_of, indices, memory_asked, number_asked
from pumice.core.objects.node import read_node
from tests.core.devices.cards import TEMPLATES, asking, gpu_node, shared
from tests.kit import node, pod

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task

INDEX = "volcano.sh/gpu-index"


def test_memory_is_had_of_the_first_card_with_enough() -> None:
    family = shared(gpu_node("n0", cards=2, memory=20), node("n1"))
    assert family.present.tolist() == [True, False]
    first, second = asking("a", {"gpu_memory": 6}), asking("b", {"gpu_memory": 3}, {"gpu_memory": 3})
    assert family.assign(0, first, {}, 7.0) == {INDEX: "0", "volcano.sh/predicate-time": "7000000000"}
    assert family.assign(0, second, {}, 7.0)[INDEX] == "1"
    assert not family.fits(asking("c", {"gpu_memory": 5}), 0)
    assert family.refusal(asking("x"), 0).text == "GpuShare no enough gpu memory on node n0"
    assert family.assign(0, asking("d", {"gpu_memory": 4}), {}, 7.0)[INDEX] == "0"


def test_cards_are_had_whole_by_number() -> None:
    family = shared(gpu_node("n0", cards=4, memory=40, unhealthy="1,x,9"), by_memory=False)
    assert family.assign(0, asking("a", {"gpu_number": 2}), {}, 0.0)[INDEX] == "0,2"
    assert family.fits(asking("b", {"gpu_number": 1}), 0)
    assert family.refusal(asking("x"), 0).text == "GpuNumber no enough gpu number on node n0"
    with pytest.raises(DeviceError, match="the node n0 can't place the pod c in ns default"):
        family.assign(0, asking("c", {"gpu_number": 2}), {}, 0.0)


def test_a_pod_that_lost_its_node_stays_on_its_card_in_that_session() -> None:
    """Its own copy was never told of the card; a running pod's says which."""
    family, pod = shared(gpu_node("n0", cards=1, memory=8)), asking("a", {"gpu_memory": 8})
    family.assign(0, pod, {}, 0.0)
    assert family.release(0, pod, {}) == ("volcano.sh/predicate-time", INDEX)
    assert not family.fits(asking("b", {"gpu_memory": 1}), 0)
    family = shared(gpu_node("n0", cards=1, memory=8))
    family.add(0, pod, {INDEX: "0"})
    assert not family.fits(asking("b", {"gpu_memory": 1}), 0)
    family.release(0, pod, {INDEX: "0"})
    assert family.fits(asking("b", {"gpu_memory": 8}), 0)


@pytest.mark.parametrize(("overfull_is_full", "cards"), [(False, "0"), (True, "1")])
def test_overfull_card_is_given_again_unless_the_fix_is_on(overfull_is_full: bool, cards: str) -> None:
    """Volcano counts without sign."""
    family = shared(gpu_node("n0", cards=2, memory=8), overfull_is_full=overfull_is_full)
    for name in ("a", "b"):
        family.add(0, asking(name, {"gpu_memory": 3}), {INDEX: "0"})
    assert family.fits(asking("c", {"gpu_memory": 100}), 0) is not overfull_is_full
    assert family.assign(0, asking("d", {"gpu_memory": 1}), {}, 0.0)[INDEX] == cards


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9)), max_size=12), st.integers(1, 9), st.booleans())
def test_looking_at_all_nodes_is_looking_at_each(placed: list[tuple[int, int]], wanted: int, by_memory: bool) -> None:
    family = shared(gpu_node("n0", 1, 6), gpu_node("n1", 3, 30, "1"), node("n2"), by_memory=by_memory)
    ask = "gpu_memory" if by_memory else "gpu_number"
    for number, (row, amount) in enumerate(placed):
        pod = asking(f"p{number}", {ask: amount})
        if family.present[row] and family.fits(pod, row):
            family.assign(row, pod, {}, 0.0)
    pod = asking("p", {ask: wanted})
    each = [bool(family.present[row]) and family.fits(pod, row) for row in range(3)]
    assert family.fitting(pod).tolist() == each
    assert [family.trial(row).fits(pod, 0) for row in range(2)] == each[:2]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=10), st.sampled_from(["", "1", "0,2"]), st.booleans()
)
def test_cards_give_no_more_than_they_have_and_get_all_back(
    steps: list[tuple[int, bool]], unhealthy: str, by_memory: bool
) -> None:
    family = shared(gpu_node("n0", 3, 30, unhealthy), by_memory=by_memory)
    ask, healthy = "gpu_memory" if by_memory else "gpu_number", {0, 1, 2} - set(indices(unhealthy or None))
    held: list[tuple[Task, int, dict[str, str]]] = []
    for number, (amount, ends) in enumerate(steps):
        pod = asking(f"p{number}", {ask: amount})
        if amount and family.fits(pod, 0):
            held.append((pod, amount, family.assign(0, pod, {}, 0.0)))
        if ends and held:
            pod, _, notes = held.pop(0)
            family.release(0, pod, notes)
        given_out = [(indices(notes[INDEX]), amount) for _, amount, notes in held]
        assert {card for cards, _ in given_out for card in cards} <= healthy
        for card in healthy:
            users = [amount for cards, amount in given_out if card in cards]
            assert sum(users) <= 10 if by_memory else len(users) <= 1
        assert by_memory or all(len(cards) == amount for cards, amount in given_out)
        again = shared(gpu_node("n0", 3, 30, unhealthy), by_memory=by_memory)
        for other, _, notes in held:
            again.add(0, other, notes)
        assert again.encoded(0, Around(str, no_scalars)) == family.encoded(0, Around(str, no_scalars))
    for pod, _, notes in held:
        family.remove(0, pod, notes)
    probe = asking("p", {ask: 10 if by_memory else len(healthy)})
    assert family.fits(probe, 0)
    good = [card for card, sentences in family.against(probe, 0).items() if not sentences]
    assert len(good) == len(healthy)


def no_scalars(row: int) -> dict[str, float]:
    return {}


@pytest.mark.parametrize(
    ("text", "cards"), [(None, ()), ("", ()), ("0", (0,)), ("2,0", (2, 0)), ("0,x", ()), ("9" * 5000, ())]
)
def test_annotation_of_cards_is_read(text: str | None, cards: tuple[int, ...]) -> None:
    assert indices(text) == cards


@pytest.mark.parametrize(
    ("containers", "first", "memory"), [([3, 4], [5], 7), ([3], [5, 6], 6), ([], [5], 5), ([3], [], 3), ([], [], 0)]
)
def test_memory_asked_is_the_sum_or_the_largest_init_container(
    containers: list[int], first: list[int], memory: int
) -> None:
    made = pod("p")
    for kind, amounts in (("containers", containers), ("initContainers", first)):
        made["spec"][kind] = [
            {"name": f"c{n}", "resources": {"limits": {"volcano.sh/gpu-memory": str(each)}}}
            for n, each in enumerate(amounts)
        ]
    template = TEMPLATES.intern(made["spec"])
    assert (memory_asked(template), number_asked(template)) == (memory, 0)


@pytest.mark.parametrize(
    ("capacity", "each", "count"),
    [
        ({"volcano.sh/gpu-memory": "20", "volcano.sh/gpu-number": "3"}, 6, 3),
        ({"volcano.sh/gpu-memory": "20"}, 0, 0),
        ({"volcano.sh/gpu-number": "3"}, 0, 0),
        ({"volcano.sh/gpu-memory": "20", "volcano.sh/gpu-number": "0"}, 0, 0),
    ],
)
def test_cards_of_a_node_are_read_from_its_capacity(capacity: dict[str, str], each: int, count: int) -> None:
    made = node("n0")
    made["status"]["capacity"] = capacity
    found = cards_of([read_node(made)])
    assert (found.each.tolist(), list(found.claimed), found.present.tolist()) == ([each], [count], [count > 0])


def test_node_that_says_it_has_very_many_cards_counts_the_first() -> None:
    """A column for each would take all memory."""
    vast = node("n0")
    vast["status"]["capacity"] = {"volcano.sh/gpu-memory": str(10**13), "volcano.sh/gpu-number": str(10**12)}
    family = shared(vast, by_memory=False)
    fits, refused = asking("a", {"gpu_number": MOST_CARDS}), asking("b", {"gpu_number": 10**12})
    assert family.fits(fits, 0)
    assert family.assign(0, fits, {}, 0.0)[INDEX] == ",".join(map(str, range(MOST_CARDS)))
    assert not family.fits(refused, 0)
    against = family.against(refused, 0)
    assert against.pop("999,999,999,744 more cards") == ["only the first 256 of a node count"]
    assert set(map(tuple, against.values())) == {("in use",)}
