"""Cards shared by memory or had by number: who gets which, and what comes back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.devices.family import DeviceError
from tests.core.devices.cards import asking, gpu_node, shared
from tests.kit import node

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
