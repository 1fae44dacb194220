"""Texts of virtual GPUs: what nodes register, what pods were assigned, and the names of slices."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.devices.vgpu.codec import Assigned, Registered, assigned, encoded, registered
from pumice.core.devices.vgpu.settings import Geometry, Instance
from pumice.core.devices.vgpu.slices import Cut, find, give_back, named, take
from tests.core.devices.cards import asking, vgpu_node, virtual

INT32 = st.integers(-(2**31), 2**31 - 1)
NAMES = st.text("abGPU-09[]", max_size=9)
WAYS = (
    Geometry("group1", (Instance("1g", 10, 7),)),
    Geometry("group2", (Instance("2g", 20, 3), Instance("1g", 10, 1))),
)


@given(st.lists(st.lists(st.builds(Assigned, NAMES, NAMES, INT32, INT32), max_size=3), max_size=3))
def test_assignment_comes_back_from_its_annotation(containers: list[list[Assigned]]) -> None:
    nothing = containers == [[]]  # one container with nothing is written as no container is
    assert assigned(encoded(containers)) == (() if nothing else tuple(map(tuple, containers)))


@pytest.mark.parametrize(
    ("text", "containers"),
    [
        ("", ()),
        (";", ((), ())),
        ("a,NVIDIA,5,7:", ((Assigned("a", "NVIDIA", 5, 7),),)),
        ("a,NVIDIA,5", ((Assigned("a", "NVIDIA", 5, 0),),)),
        ("a,NVIDIA:;b,T,x,-1,more:", ((Assigned("a", "NVIDIA", 0, 0),), (Assigned("b", "T", 0, -1),))),
    ],
)
def test_assignment_with_odd_parts_is_read(text: str, containers: tuple[tuple[Assigned, ...], ...]) -> None:
    assert assigned(text) == containers


CARD = Registered("a", 2, 100, "T4", True, "hami-core")


@pytest.mark.parametrize(
    ("text", "cards"),
    [
        ("", ()),
        ("a,2,100,T4,true,hami-core", ()),  # without a colon Volcano reads no card
        ("a,2,100,T4,true,hami-core:", (CARD,)),
        ("a,2,100,T4,true,anything:note:", (CARD,)),
        ("a,2,100,T4,1,mig,more:", (CARD._replace(mode="mig"),)),
        ("a,two,1e3,T4,yes,hami-core:", (CARD._replace(split=0, memory=0, healthy=False),)),
        ("a,2,100,T4,true,hami-core:b,2,100,T4,true:", ()),  # one short entry, and the node has none
    ],
)
def test_registered_cards_are_read(text: str, cards: tuple[Registered, ...]) -> None:
    assert registered(text) == cards


@pytest.mark.parametrize("digits", ["9" * 19, "9" * 30, "9" * 5000])
def test_registered_card_with_too_large_a_number_stays_usable(digits: str) -> None:
    node = vgpu_node("n0", [(2, 100, "NVIDIA-A")])
    node["metadata"]["annotations"]["volcano.sh/node-vgpu-register"] = f"c,{digits},{digits},NVIDIA-A,true,hami-core:"
    family = virtual(node)
    assert family.cards.memory.tolist() == family.cards.split.tolist() == [[2**31 - 1]]
    assert family.fitting(asking("a", {"vgpu_number": 1, "vgpu_memory": 40})).tolist() == [True]


@pytest.mark.parametrize(
    ("name", "place"),
    [("u[g-3]", ("g", 3)), ("u[g-x]", None), ("u[g]", None), ("u[a-b-1]", None), ("u", None), ("]u[", None)],
)
def test_slice_name_with_or_without_a_place_is_read(name: str, place: tuple[str, int] | None) -> None:
    assert named(name) == place


@given(st.lists(st.integers(1, 25), max_size=12))
def test_slices_found_in_turn_are_distinct_and_large_enough(asked: list[int]) -> None:
    cut, given_out = Cut(), list[str]()
    for memory in asked:
        found = find("u", memory, cut, WAYS)
        if found is None:
            continue
        name, size = found
        place = named(name)
        assert place is not None
        assert take(cut, *place, WAYS) == size >= memory
        given_out.append(name)
    assert len(set(given_out)) == len(given_out)
    for kind in WAYS[cut.way].instances if given_out else ():
        assert len(cut.taken.get(kind.name, ())) <= kind.most
    before = cut.copy()
    for name in reversed(given_out):
        group, position = named(name) or ("", 0)
        assert give_back(cut, group, position, WAYS) > 0
    assert cut.taken == {}
    assert before.way == cut.way  # a card stays cut
    assert not given_out or before.taken  # the copy is independent


@pytest.mark.parametrize(("group", "position", "size"), [("group2", 1, 20), ("group2", 3, 10), ("none", 0, 0)])
def test_slice_given_back_has_the_size_it_was_taken_with(group: str, position: int, size: int) -> None:
    cut = Cut()
    assert take(cut, group, position, WAYS) == size
    assert give_back(cut, group, position, WAYS) == size
    assert give_back(cut, group, position, WAYS) == 0
