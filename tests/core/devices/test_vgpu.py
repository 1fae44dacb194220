"""Virtual GPUs: which cards a pod gets by the policy, what comes back, and slices of MIG."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.devices.columns import MOST_CARDS
from pumice.core.devices.family import DeviceError
from pumice.core.devices.vgpu import Vgpu, read_rules, settings_of
from pumice.core.devices.vgpu.asking import CardRequest
from pumice.core.devices.vgpu.choosing import has_room
from pumice.core.devices.vgpu.codec import assigned
from tests.core.devices.cards import asking, vgpu_node, virtual
from tests.kit import node

A100, A30 = "NVIDIA-A100", "NVIDIA-A30"
IDS = "volcano.sh/vgpu-ids-new"
CARDS = [(2, 100, A100), (2, 100, A30)]
WAYS = [
    {"group": "group1", "geometries": [{"name": "1g", "memory": 10, "count": 7}]},
    {
        "group": "group2",
        "geometries": [{"name": "2g", "memory": 20, "count": 3}, {"name": "1g", "memory": 10, "count": 1}],
    },
]
GEOMETRIES: dict[str, Any] = {
    "resourceCountName": "volcano.sh/vgpu-number",
    "resourceMemoryName": "volcano.sh/vgpu-memory",
    "resourceCoreName": "volcano.sh/vgpu-cores",
    "resourceMemoryPercentageName": "volcano.sh/vgpu-memory-percentage",
    "knownMigGeometries": [{"models": ["A100"], "allowedGeometries": WAYS}],
}


def got(family: Vgpu, name: str, notes: dict[str, str] | None = None, /, **limits: int) -> str:
    return family.assign(0, asking(name, limits), {} if notes is None else notes, 5.0).get(IDS, "")


@pytest.mark.parametrize(("policy", "first", "second"), [("", 1, 1), ("binpack", 0, 0), ("spread", 0, 1)])
def test_the_policy_says_which_card_comes_first(policy: str, first: int, second: int) -> None:
    family = virtual(vgpu_node("n0", CARDS), policy=policy)
    assert got(family, "a", vgpu_number=1, vgpu_memory=40) == f"n0-{first},NVIDIA,40,0:"
    assert got(family, "b", vgpu_number=1, vgpu_memory=40) == f"n0-{second},NVIDIA,40,0:"


def test_a_pod_is_told_its_cards_once() -> None:
    family, notes = virtual(vgpu_node("n0", CARDS)), dict[str, str]()
    asked = {"vgpu_number": 1, "vgpu_memory": 40, "vgpu_cores": 30}
    assert got(family, "a", notes, **asked) == notes["volcano.sh/devices-to-allocate"] == "n0-1,NVIDIA,40,30:"
    assert (notes["volcano.sh/vgpu-node"], notes["volcano.sh/bind-phase"]) == ("n0", "allocating")
    assert got(family, "a", notes, **asked) == ""
    assert family.owned(0, notes) == {"volcano.sh/vgpu-memory": 40_000.0, "volcano.sh/vgpu-cores": 30_000.0}
    assert set(family.release(0, asking("a", asked), notes)) == set(notes)
    assert family.release(0, asking("a", asked), {**notes, "volcano.sh/bind-phase": "success"}) == ()


@pytest.mark.parametrize(
    ("annotations", "card"),
    [
        ({"nvidia.com/use-gputype": "a100"}, 0),
        ({"nvidia.com/use-gputype": "H100,A30"}, 1),
        ({"nvidia.com/nouse-gputype": "A30"}, 0),
        ({"nvidia.com/use-gputype": "A100", "nvidia.com/nouse-gputype": "A100"}, 0),  # the wish comes first
        ({"volcano.sh/vgpu-mode": "mig"}, None),
        ({"nvidia.com/use-gputype": "T4"}, None),
    ],
)
def test_pods_say_which_cards_will_do(annotations: dict[str, str], card: int | None) -> None:
    family, pod = virtual(vgpu_node("n0", CARDS)), asking("a", {"vgpu_number": 1}, notes=annotations)
    assert family.fits(pod, 0) is (card is not None)
    assert family.fitting(pod).tolist() == [card is not None]
    assert card is None or family.assign(0, pod, {}, 0.0)[IDS].startswith(f"n0-{card}")


def test_pods_of_a_group_may_be_kept_apart() -> None:
    spread = {"scheduling.k8s.io/group-name": "g", "volcano.sh/vgpu-podgroup-policy": "spread"}
    family, asked = virtual(vgpu_node("n0", CARDS[:1])), {"vgpu_number": 1, "vgpu_memory": 10}
    family.assign(0, asking("a", asked, notes=spread), dict(spread), 0.0)
    assert not family.fits(asking("b", asked, notes=spread), 0)
    assert family.fits(asking("c", asked), 0)


def test_scores_go_by_the_policy() -> None:
    pod = asking("a", {"vgpu_number": 1, "vgpu_memory": 25})
    scores = [virtual(vgpu_node("n0", CARDS), policy=policy).scores(pod).item() for policy in ("binpack", "spread", "")]
    assert scores == [25.0, 0.0, 0.0]  # spread counts the pod itself as a sharer


def test_a_node_without_amounts_or_words_has_no_cards() -> None:
    bare = vgpu_node("n1", CARDS)
    del bare["status"]["allocatable"]["volcano.sh/vgpu-cores"]
    short = node("n2", annotations={"volcano.sh/node-vgpu-register": "a,1,2:"})
    assert virtual(vgpu_node("n0", CARDS), bare, short, node("n3")).present.tolist() == [True, False, False, False]


def test_a_share_of_the_memory_counts_only_where_the_config_map_names_it() -> None:
    half: dict[str, int] = {"vgpu_number": 1, "vgpu_memory_percentage": 50}
    assert got(virtual(vgpu_node("n0", CARDS)), "a", None, **half) == "n0-1,NVIDIA,100,0:"
    assert got(virtual(vgpu_node("n0", CARDS), nvidia=GEOMETRIES), "a", None, **half) == "n0-1,NVIDIA,50,0:"


def test_without_geometry_cards_of_mig_are_shared_like_others() -> None:
    family = virtual(vgpu_node("n0", CARDS, "mig"))
    assert got(family, "a", vgpu_number=1, vgpu_memory=10) == "n0-1,NVIDIA,10,0:"
    assert family.fits(asking("b", {"vgpu_number": 1}, notes={"volcano.sh/vgpu-mode": "hami-core"}), 0)


def test_a_slice_is_the_smallest_that_will_do_of_the_first_geometry_that_has_one() -> None:
    family = virtual(vgpu_node("n0", [(9, 80, A100)], "mig"), nvidia=GEOMETRIES)
    assert got(family, "a", vgpu_number=1, vgpu_memory=5) == "n0-0[group1-0],NVIDIA,5,0:"
    assert got(family, "b", vgpu_number=1, vgpu_memory=15) == "n0-0[group2-0],NVIDIA,15,0:"  # nobody cut it yet
    assert not family.fits(asking("c", {"vgpu_number": 1, "vgpu_memory": 25}), 0)


def test_a_card_that_is_cut_stays_cut() -> None:
    family = virtual(vgpu_node("n0", [(9, 80, A100)], "mig"), nvidia=GEOMETRIES)
    running, notes = asking("r", {"vgpu_number": 1}), {IDS: "n0-0[group2-1],NVIDIA,20,0:"}
    family.add(0, running, notes)
    assert family.memory.tolist() == [[20]]
    assert got(family.trial(0), "a", vgpu_number=1, vgpu_memory=5) == "n0-0[group2-0],NVIDIA,5,0:"  # no kind not in use
    family.remove(0, running, notes)
    assert got(family, "b", vgpu_number=1, vgpu_memory=5) == "n0-0[group2-3],NVIDIA,5,0:"  # all kinds again


LIMITS = st.fixed_dictionaries(
    {"vgpu_number": st.integers(1, 3)},
    optional={"vgpu_memory": st.integers(0, 120), "vgpu_cores": st.sampled_from([0, 10, 60, 100])},
)
CARD = st.tuples(st.integers(0, 3), st.sampled_from([50, 100]), st.sampled_from([A100, A30, "MLU"]))
PLACED = st.lists(st.tuples(st.integers(0, 2), st.lists(LIMITS, min_size=1, max_size=2)), max_size=8)


@given(st.lists(CARD, min_size=1, max_size=4), PLACED, LIMITS, st.sampled_from(["", "binpack", "spread"]))
def test_looking_at_all_nodes_is_looking_at_each(cards: Any, placed: Any, wanted: Any, policy: str) -> None:
    family = virtual(vgpu_node("n0", cards), vgpu_node("n1", cards[:1]), node("n2"), policy=policy)
    for number, (row, each) in enumerate(placed):
        pod = asking(f"p{number}", *each)
        if family.present[row] and family.fits(pod, row):
            family.assign(row, pod, {}, 0.0)
    pod = asking("p", wanted)
    found = [bool(family.present[row]) and family.fits(pod, row) for row in range(3)]
    assert family.fitting(pod).tolist() == found
    one_by_one = [family.scores(pod, slice(row, row + 1)).item() for row in range(3)]
    assert family.scores(pod).tolist() == one_by_one == family.scores(pod, np.arange(3)).tolist()
    assert [family.trial(row).fits(pod, 0) for row in range(2)] == found[:2]


@given(st.lists(CARD, min_size=1, max_size=3), st.lists(LIMITS, max_size=5))
def test_a_card_never_gives_more_than_it_has_and_gets_all_back(cards: Any, asked: Any) -> None:
    family, held = virtual(vgpu_node("n0", cards)), list[Any]()
    for number, limits in enumerate(asked):
        pod, notes = asking(f"p{number}", limits), dict[str, str]()
        if family.fits(pod, 0):
            family.assign(0, pod, notes, 0.0)
            held.append((pod, notes))
        assert (family.memory <= family.cards.memory).all()
        assert (family.cores <= 100).all()
        assert (family.sharers <= family.cards.split).all()
    for pod, notes in held:
        family.release(0, pod, notes)
    assert [int(each.sum()) for each in (family.sharers, family.memory, family.cores)] == [0, 0, 0]


@pytest.mark.parametrize(
    ("cores", "memory", "used", "room"),
    [
        (0, 40, (0, 0, 0), True),
        (0, 100, (1, 0, 0), True),
        (0, 100, (1, 1, 0), False),
        (0, 40, (2, 60, 0), False),  # two may share it
        (0, 40, (1, 60, 99), True),
        (0, 40, (1, 60, 100), False),  # a pod that asks for no cores needs some as well
        (60, 40, (1, 60, 40), True),
        (60, 40, (1, 60, 41), False),
        (100, 40, (0, 0, 0), True),
        (100, 40, (1, 0, 0), False),  # all cores are had alone
    ],
)
def test_card_has_room_by_number_memory_and_cores(
    cores: int, memory: int, used: tuple[int, int, int], room: bool
) -> None:
    assert bool(has_room(CardRequest(1, memory, 101, cores), memory, 2, 100, *used)) is room


STEPS = st.lists(st.tuples(LIMITS, st.booleans()), max_size=8)


@given(st.lists(CARD, min_size=1, max_size=3), STEPS, st.sampled_from(["", "binpack", "spread"]))
def test_cards_in_use_are_what_the_pods_there_were_told(cards: Any, steps: Any, policy: str) -> None:
    family, held = virtual(vgpu_node("n0", cards), policy=policy), list[Any]()
    for number, (limits, ends) in enumerate(steps):
        pod, notes = asking(f"p{number}", limits), dict[str, str]()
        if family.fits(pod, 0):
            family.assign(0, pod, notes, 0.0)
            (devices,) = assigned(notes[IDS])
            assert len({device.uuid for device in devices}) == len(devices) == limits["vgpu_number"]
            held.append((pod, notes))
        if ends and held:
            family.release(0, *held.pop(0))
        told = [device for _, notes in held for devices in assigned(notes[IDS]) for device in devices]
        for card, known in enumerate(family.cards.cards[0]):
            here = [device for device in told if device.uuid == known.uuid]
            assert family.sharers[0, card] == len(here)
            assert family.memory[0, card] == sum(device.memory for device in here)
            assert family.cores[0, card] == sum(device.cores for device in here)
            assert len(here) == 1 or all(device.cores != 100 for device in here)  # all cores: it is alone
        again = virtual(vgpu_node("n0", cards))
        for other, notes in held:
            again.resident(0, other, notes, leaves=False)
        assert str(again.table()) == str(family.table())


@given(st.lists(CARD, min_size=1, max_size=3), st.lists(LIMITS, max_size=4), LIMITS)
def test_sentences_against_cards_say_whether_a_pod_fits(cards: Any, placed: Any, wanted: Any) -> None:
    family = virtual(vgpu_node("n0", cards))
    for number, limits in enumerate(placed):
        pod = asking(f"p{number}", limits)
        if family.fits(pod, 0):
            family.assign(0, pod, {}, 0.0)
    pod = asking("p", wanted)
    good = [card for card, sentences in family.against(pod, 0).items() if not sentences]
    assert family.fits(pod, 0) is (len(good) >= wanted["vgpu_number"])


def test_assignment_without_room_changes_nothing() -> None:
    family = virtual(vgpu_node("n0", CARDS))
    got(family, "a", vgpu_number=1, vgpu_memory=40)
    before, notes = str(family.table()), dict[str, str]()
    with pytest.raises(DeviceError, match="hami-vgpuDeviceSharing error"):
        got(family, "b", notes, vgpu_number=2, vgpu_memory=70)
    assert (str(family.table()), notes) == (before, {})


SLICED = st.fixed_dictionaries({"vgpu_number": st.integers(1, 2), "vgpu_memory": st.sampled_from([5, 10, 15, 20, 25])})


@given(st.integers(1, 2), st.lists(st.tuples(st.lists(SLICED, min_size=1, max_size=3), st.booleans()), max_size=9))
def test_with_the_fix_a_slice_is_one_containers_and_comes_back(cards: int, steps: Any) -> None:
    family = virtual(vgpu_node("n0", [(9, 80, A100)] * cards, "mig"), nvidia=GEOMETRIES, once=True)
    empty, held = str(family.table()), list[Any]()
    for number, (asked, ends) in enumerate(steps):
        pod, notes = asking(f"p{number}", *asked), dict[str, str]()
        if family.fits(pod, 0):
            family.assign(0, pod, notes, 0.0)
            held.append((pod, notes))
        given_out = [device.uuid for _, said in held for devices in assigned(said[IDS]) for device in devices]
        assert len(set(given_out)) == len(given_out)
        again = virtual(vgpu_node("n0", [(9, 80, A100)] * cards, "mig"), nvidia=GEOMETRIES, once=True)
        for other, said in held:
            again.resident(0, other, said, leaves=False)
        assert again.memory.tolist() == family.memory.tolist()
        assert again.sharers.tolist() == family.sharers.tolist()
        if ends and held:
            family.release(0, *held.pop(0))
    for pod, notes in held:
        family.release(0, pod, notes)
    assert str(family.table()) == empty


def test_without_the_fix_a_slice_is_given_to_all_that_come_in_one_cycle() -> None:
    nodes = vgpu_node("n0", [(9, 80, A100)], "mig")
    for once, other in ((False, "n0-0[group1-0],NVIDIA,5,0:"), (True, "n0-0[group1-1],NVIDIA,5,0:")):
        family = virtual(nodes, nvidia=GEOMETRIES, once=once)
        assert got(family, "a", vgpu_number=1, vgpu_memory=5) == "n0-0[group1-0],NVIDIA,5,0:"
        assert got(family, "b", vgpu_number=1, vgpu_memory=5) == other


def test_pods_of_one_rule_never_share_a_card() -> None:
    rules = read_rules([{"app": "a"}, {"team": "t", "tier": "x"}, "no rule", {"n": 1}])
    assert rules == ((("app", "a"),), (("team", "t"), ("tier", "x")))
    made = virtual(vgpu_node("n0", CARDS))
    family = Vgpu(["n0"], made.cards, settings_of(None), "binpack", rules)
    asked = {"vgpu_number": 1, "vgpu_memory": 10}
    first, second, third = (asking(name, asked, labels={"app": "a"}) for name in "abc")
    notes: dict[str, str] = {}
    assert family.assign(0, first, notes, 0.0)[IDS].startswith("n0-0")
    assert family.assign(0, asking("x", asked), {}, 0.0)[IDS].startswith("n0-0")  # no rule is its own
    assert family.trial(0).assign(0, second, {}, 0.0)[IDS].startswith("n0-1")
    assert family.assign(0, second, {}, 0.0)[IDS].startswith("n0-1")
    assert not family.fits(third, 0)
    assert family.fitting(third).tolist() == [False]
    family.release(0, first, notes)
    assert family.fits(third, 0)
    family.resident(
        0, asking("d", asked, labels={"app": "a"}), {IDS: "n0-0,NVIDIA,10,0:"}, leaves=True
    )  # until it is gone
    assert not family.fits(third, 0)
    assert family.fits(asking("y", asked, labels={"team": "t"}), 0)


def test_the_table_says_how_much_of_which_card_is_in_use() -> None:
    cards = virtual(vgpu_node("n0", [(9, 100, A100)]), node("n1"), vgpu_node("n2", [(9, 50, A100)] * 2))
    cards.add(2, asking("a", {"vgpu_number": 1}), {IDS: "n2-1,NVIDIA,20,30:"})
    cards.assign(0, asking("b", {"vgpu_number": 1, "vgpu_memory": 40}), {}, 0.0)
    table = cards.table()
    assert list(zip(table.nodes, table.cards, strict=True)) == [("n0", "n0-0"), ("n2", "n2-0"), ("n2", "n2-1")]
    assert table.columns().tolist() == [[1, 0, 1], [40, 0, 20], [0, 0, 30], [100, 50, 50]]
    assert [(table.cards[each.card], each.pod, each.memory, each.cores) for each in table.pods] == [
        ("n0-0", "b", 40, 0),
        ("n2-1", "a", 20, 30),
    ]


@pytest.mark.parametrize("said", [{"gpuMemoryFactor": "x"}, {"knownMigGeometries": 7}, {"knownMigGeometries": ["x"]}])
def test_what_cannot_be_read_is_as_if_nothing_were_said(said: dict[str, Any]) -> None:
    assert settings_of(said) == settings_of(None)


def test_node_that_registers_very_many_cards_has_the_first() -> None:
    family = virtual(vgpu_node("n0", [(8, 10, "NVIDIA")] * (MOST_CARDS + 44)))
    assert family.sharers.shape == (1, MOST_CARDS)
    against = family.against(asking("a", {"vgpu_number": MOST_CARDS + 1}), 0)
    assert against["44 more cards"] == ["only the first 256 of a node count"]
    assert len(against) == MOST_CARDS + 1
