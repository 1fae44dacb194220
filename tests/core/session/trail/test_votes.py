"""What a trail says of votes about victims: who would let whom go, tier by tier."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.core.cycle import Trail, open_session
from pumice.core.objects.metadata import Object, parse_time
from pumice.core.session.carry import Carry, CycleClock
from pumice.core.session.trail.records import Ending
from tests.core.actions.crowds import with_arguments
from tests.core.plugins.world import NOW, configuration, task_of, view_of
from tests.core.session.trail.told import CONFIG, decided
from tests.kit import gang, node, priority_class, queue


def crowd(*, minimum: int) -> list[Object]:
    """A full node, whose job keeps so many, and a more important one that waits."""
    classes = [priority_class("low", 1), priority_class("high", 100)]
    low = gang("low", pods=4, min_member=minimum, cpu="2", priority_class="low", nodes=["n0"] * 4, phase="Running")
    high = gang("high", pods=1, cpu="2", priority_class="high", phase="Inqueue")
    return [node("n0"), queue("default"), *classes, *low, *high]


def test_victims_are_told_plugin_by_plugin() -> None:
    trail = Trail()
    result = decided(trail, crowd(minimum=2))
    (evict,) = result.evicts
    victim = f"default/{evict.name}"
    election = trail.elections.of(victim, evict.preemptor)
    assert election is not None
    assert (election.action, election.point, election.node) == ("preempt", "Preemptable", "n0")
    assert election.preemptor == evict.preemptor == "default/high-0"
    assert (election.tier, len(election.candidates), len(election.victims)) == (1, 4, 2)
    said = {each.plugin: len(each.gave) for each in election.opinions}
    assert said == {"priority": 4, "gang": 2, "conformance": 4}, "nobody asks the second tier"
    assert victim in election.victims


def test_a_tier_that_cannot_agree_leaves_it_to_the_next() -> None:
    trail = Trail()
    (evict,) = decided(trail, crowd(minimum=4)).evicts
    election = trail.elections.of(f"default/{evict.name}", evict.preemptor)
    assert election is not None
    said = {each.plugin: (each.tier, bool(each.gave)) for each in election.opinions}
    assert said == {"priority": (1, True), "gang": (1, False), "drf": (2, True)}
    assert election.tier == 2


def test_who_keeps_whom_is_told_where_nobody_goes() -> None:
    trail = Trail()
    config = configuration(["priority", "gang", "conformance"], ["predicates"], actions=("preempt",))
    assert not decided(trail, crowd(minimum=4), config=config).evicts
    (first, *_) = trail.elections.held
    said = {each.plugin: (each.tier, len(each.gave)) for each in first.opinions}
    assert said["gang"] == (1, 0)
    assert "conformance" not in said, "an empty answer ends its tier"
    assert (first.tier, first.victims) == (0, ())
    ends = [(one.action, one.who, one.ending) for one in trail.of_job("default/high")]
    assert ("preempt", "default/high-0", Ending.TOO_LITTLE) in ends
    assert ("preempt", "default/high", Ending.DISCARDED) in ends


@pytest.mark.parametrize("minimum", [2, 4])
def test_many_nodes_in_one_batch_are_told_as_one_by_one(minimum: int) -> None:
    """A topology-aware preemption asks by columns where every rule is a mask; a fix makes it ask node by node."""
    by_columns, one_by_one = (_elections(minimum, fix) for fix in ((), ("empty-answer-vetoes",)))
    assert by_columns
    assert one_by_one == by_columns


def _elections(minimum: int, fix: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    plain = configuration(["priority", "gang", "conformance"], ["predicates"], actions=("preempt",), fix=fix)
    config = with_arguments(plain, "preempt", enableTopologyAwarePreemption=True)
    trail = Trail()
    decided(trail, crowd(minimum=minimum), config=config)
    return {election.node: election.to_dict() for election in trail.elections.held}


def test_candidates_of_several_nodes_are_of_no_node() -> None:
    objects = [node("n0"), node("n1"), queue("default")]
    running = gang("low", pods=2, nodes=["n0", "n1"], phase="Running")
    trail = Trail()
    snapshot = view_of(*objects, running).snapshot()
    session = open_session(snapshot, CONFIG, CycleClock(1, parse_time(NOW)), Carry(), trail=trail)
    first, second = task_of(session, "low-0"), task_of(session, "low-1")
    for candidates in ([first, second], [first], []):
        trail.elections.hear("UnifiedEvictable", None, candidates)
    assert [election.node for election in trail.elections.held] == ["", "n0"]
