"""A job that a hard network topology holds back: how much room each HyperNode has for it, and what would help."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.core.configuration import parse_scheduler_config
from pumice.core.objects.metadata import Object
from pumice.core.session.carry import Carry, CycleClock
from pumice.questions.explain.account import Account, account_of
from pumice.questions.explain.advice.advise import advise
from pumice.questions.explain.scene import Scene
from pumice.questions.oneshot.cycles import fill
from tests.kit.hyper_nodes import hyper_node
from tests.kit.jobs import gang
from tests.kit.nodes import node, taint
from tests.kit.queues import queue

CONFIG = """\
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}]
- plugins: [{name: predicates}, {name: network-topology-aware}]
"""
WHO = ("podgroup", "default/g")


def cluster(*racks: list[int]) -> list[Object]:
    """Racks of nodes with so many CPUs each, under one HyperNode of tier 2."""
    found: list[Object] = [queue("default")]
    for rack, sizes in enumerate(racks):
        names = [f"n{rack}-{place}" for place in range(len(sizes))]
        found += [node(name, cpu=str(size)) for name, size in zip(names, sizes, strict=True)]
        found.append(hyper_node(f"s{rack}", 1, nodes=names))
    return [*found, hyper_node("top", 2, children=[f"s{rack}" for rack in range(len(racks))])]


def asking(pods: int, topology: dict[str, Any] | None = None, **spec: Any) -> list[Object]:
    group, *members = gang("g", pods=pods, cpu="1", memory="0", phase="Inqueue")
    group["spec"] |= {"networkTopology": topology or {"mode": "hard", "highestTierAllowed": 1}, **spec}
    return [group, *members]


def scene(*objects: Object) -> Scene:
    given_objects = list(objects)
    config = parse_scheduler_config(CONFIG, source="test")
    clock = CycleClock(1, 1_800_000_000.0, 0)
    return Scene(fill(given_objects), config, clock, Carry(), objects=lambda: given_objects)


def account(*objects: Object) -> Account:
    return account_of(scene(*objects), *WHO)


def against(*objects: Object) -> str:
    """What stopped allocate, which the first line says too."""
    told = account(*objects)
    (stopped,) = [each["stopped"] for each in told.job.get("steps", []) if each["action"] == "allocate"]
    assert stopped == told.job.get("confined", "") or not told.job.get("confined", "")
    assert told.job.get("confined", "") in told.message
    return str(told.job.get("confined", ""))


ASKS = "it must have room for 4 pods within one HyperNode of tier 1 at most"


def test_how_much_room_each_hyper_node_has_is_said() -> None:
    assert against(*cluster([3], [1, 1], [3], [0]), *asking(4)) == (
        f"{ASKS}: 2 have room for 3 (s0, s2), 1 has room for 2 (s1), 1 has room for 0 (s3)"
    )
    assert against(*cluster(*[[size] for size in (3, 2, 1, 0, 3, 3, 3)]), *asking(4)) == (
        f"{ASKS}: 4 have room for 3 (s0, s4, s5, …), 1 has room for 2 (s1), 1 has room for 1 (s2), 1 for less"
    )


def test_a_tier_without_hyper_nodes_is_said() -> None:
    wish = {"mode": "hard", "highestTierAllowed": 0}
    assert against(*cluster([4]), *asking(4, wish)).endswith("of tier 0 at most, and there is none")


def test_nodes_that_do_not_fit_give_no_room() -> None:
    objects = cluster([4], [3])
    objects[1]["spec"]["taints"] = [taint("a", "b")]
    assert against(*objects, *asking(4)) == f"{ASKS}: 1 has room for 3 (s1), 1 has room for 0 (s0)"


@pytest.mark.parametrize("topology", [{"mode": "soft"}, {"mode": "hard", "highestTierAllowed": 2}])
def test_a_topology_that_holds_nothing_back_is_not_blamed(topology: dict[str, Any]) -> None:
    assert against(*cluster([3], [3]), *asking(4, topology)) == ""
    assert against(*cluster([4], [3]), *asking(4)) == ""


def test_a_group_of_a_job_is_named() -> None:
    policy = {
        "name": "pair",
        "subGroupSize": 4,
        "labelSelector": {"matchLabels": {"role": "a"}},
        "matchLabelKeys": ["role"],
        "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
    }
    group, *pods = asking(4, {"mode": "soft"}, subGroupPolicy=[policy])
    for one in pods:
        one["metadata"]["labels"] = {"role": "a"}
    said = against(*cluster([3], [3]), group, *pods)
    assert said == f"its group default/g/pair-a{ASKS.removeprefix('it')}: 2 have room for 3 (s0, s1)"
    told = advise(scene(*cluster([3], [3]), group, *pods), *WHO, 30.0).sentences
    assert "4 of 4 fit with: network topology of group pair soft instead of hard" in told


def test_a_wider_tier_and_a_soft_mode_are_tried() -> None:
    told = advise(scene(*cluster([1, 1], [1, 1]), *asking(4)), *WHO, 30.0).sentences
    assert told[:2] == [
        "4 of 4 fit with: network topology highestTierAllowed 2 instead of 1",
        "4 of 4 fit with: network topology soft instead of hard",
    ]


def test_what_does_not_help_is_not_advised() -> None:
    told = advise(scene(*cluster([1], [1]), *asking(4)), *WHO, 30.0).sentences
    assert not any(each.endswith(("instead of 1", "instead of hard")) for each in told)


@settings(max_examples=25)
@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3), min_size=1, max_size=4), st.integers(1, 6))
def test_the_rooms_add_up_and_decide(racks: list[list[int]], pods: int) -> None:
    told = account(*cluster(*racks), *asking(pods))
    rooms = {f"s{place}": min(sum(sizes), pods) for place, sizes in enumerate(racks)}
    if max(rooms.values()) < pods:
        assert told.job.get("rooms") == rooms
    else:
        assert (told.state, told.job.get("rooms")) == ("Binding", {})
