"""Who has what of cards and cells, from objects alone."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.core.devices.vgpu import codec
from pumice.proof.storm.invariants.card_books import miscounted_cells, over_assigned, without_cards
from pumice.proof.storm.invariants.upheld import CARDS, EVERY, EXTENDER, KEPT_CARDS, SLICES, upheld_by
from pumice.proof.storm.script.profiles import profile
from pumice.proof.storm.script.shares import POLICY
from tests.kit.nodes import node
from tests.kit.pods import pod

NODE = node("n0", annotations={codec.REGISTER: "GPU-0,2,1000,V100,true,hami-core:"})


def sharing(name: str, memory: int, cores: int = 0, phase: str = "success") -> dict[str, Any]:
    notes = {codec.IDS: f"GPU-0,NVIDIA,{memory},{cores}:", codec.BIND_PHASE: phase}
    return pod(name, node="n0", phase="Running", annotations=notes)


@pytest.mark.parametrize(
    ("pods", "words"),
    [
        ([sharing("a", 500, 50), sharing("b", 500, 50)], ""),
        ([sharing("a", 600), sharing("b", 500)], "1100 of 1000 MiB"),
        ([sharing("a", 1, 60), sharing("b", 1, 50)], "110 of 100 %"),
        ([sharing(name, 1) for name in "abc"], "3 of 2 pods"),
    ],
)
def test_a_card_has_no_more_users_memory_or_cores_than_it_has(pods: list[dict[str, Any]], words: str) -> None:
    problems = [said for _, said in over_assigned(NODE, pods)]
    assert [words in said for said in problems] == ([True] if words else [])
    assert not list(over_assigned(None, pods))


def test_a_slice_has_one_container() -> None:
    notes = {codec.IDS: "GPU-0[g-0],NVIDIA,10,0:;GPU-0[g-0],NVIDIA,10,0:;GPU-0[g-1],NVIDIA,10,0:"}
    twice = pod("a", node="n0", phase="Running", annotations=notes)
    assert list(over_assigned(NODE, [twice])) == [("within-cards", "slice GPU-0[g-0] has 2 containers")]
    assert not list(over_assigned(NODE, [twice], EVERY - {SLICES}))


def test_pods_that_run_were_handed_their_cards() -> None:
    assert not list(without_cards([sharing("a", 1), pod("b", node="n0", phase="Running")]))
    (problem,) = without_cards([sharing("a", 1, phase="allocating")])
    assert "pod a runs without the cards" in problem


def test_what_pods_hold_of_cells_is_not_said_to_be_free() -> None:
    report = {"metadata": {"name": "n0"}, "spec": {"numares": {"cpu": {"allocatable": "2-7", "capacity": 8}}}}
    whole = pod("a", node="n0", phase="Running", annotations={POLICY: "single-numa-node"})
    whole["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "2"}
    assert not list(miscounted_cells([report], lambda _: [whole]))
    (problem,) = miscounted_cells([report], lambda _: [])
    assert problem == "node n0 has 8 CPUs, pods hold 0, and 6 are said to be free"


def test_what_is_judged_follows_from_the_configuration() -> None:
    cards, outside = profile("cards").config, profile("outside").config
    assert {CARDS, KEPT_CARDS} <= upheld_by(cards)
    assert KEPT_CARDS not in upheld_by(cards.replace("terminating-pods-keep-cards", ""))
    assert EXTENDER in upheld_by(outside)
    assert EXTENDER not in upheld_by(outside.replace("extender.httpTimeout: 100ms", "extender.ignorable: true"))
    assert not {CARDS, EXTENDER} & upheld_by(profile("evictions").config)


def test_a_card_is_cut_in_one_way() -> None:
    twice = pod("a", node="n0", phase="Running", annotations={codec.IDS: "GPU-0[g-0],NVIDIA,10,0:;GPU-0[h-0],N,10,0:"})
    said = "card GPU-0 is cut in 2 ways at the same time: g, h"
    assert list(over_assigned(NODE, [twice])) == [("within-cards", said)]
