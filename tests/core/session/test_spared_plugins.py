"""Where nobody waits, plugins that only answer need not be opened: whatever comes of the session is the same."""

from __future__ import annotations

import gc
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.config.schema import SchedulerConfig
from pumice.core.cycle import (
    Carry,
    CycleClock,
    Session,
    Trail,
    close_session,
    open_session,
    run_action,
    shares_later,
    tables_later,
)
from pumice.core.objects.metadata import Object
from pumice.core.plugins import PLACERS
from pumice.core.session.trail.trail import NULL_TRAIL, NullTrail
from tests.core.plugins.world import configuration, view_of
from tests.kit import gang, node, pod, pod_group, queue

PLACING = ("enqueue", "allocate", "backfill")
TIERS = (
    ["priority", "gang", "conformance"],
    ["overcommit", "drf", "predicates", "proportion", "nodeorder", "binpack"],
)
STOCK = configuration(*TIERS, actions=PLACING)
HIERARCHICAL = configuration(["gang"], ["drf", "capacity", "predicates"], actions=PLACING)
EVICTING = configuration(*TIERS, actions=[*PLACING, "preempt", "reclaim", "gangpreempt", "gangreclaim"])
MENDED = configuration(["gang"], ["proportion"], actions=PLACING, fix=("terminating-members", "min-member-zero"))
QUEUES = (queue("root"), queue("q", weight=2, guarantee={"cpu": "1"}), queue("default"), queue("empty"))


def outside(queue: str, cpu: str | None) -> Object:
    return pod_group("new", queue=queue, min_resources=None if cpu is None else {"cpu": cpu})


OUTSIDE = st.builds(outside, st.sampled_from(["q", "default"]), st.sampled_from([None, "1", "2", "40"]))


def member(phase: str, cpu: str | None, where: int) -> Object:
    return {"phase": phase, "cpu": cpu, "node": f"n{where}"}  # of the last of these nothing is known


MEMBERS = st.builds(
    member,
    st.sampled_from(["Running", "Succeeded", "Failed"]),
    st.sampled_from([None, "100m", "1", "3"]),
    st.integers(0, 2),
)
JOBS = st.tuples(
    st.sampled_from(["q", "default", "nowhere"]),
    st.sampled_from(["Inqueue", "Running", "Unknown", "Completed"]),
    st.integers(0, 3),
    st.lists(MEMBERS, max_size=3),
)
World = list[tuple[str, str, int, list[Object]]]
WORLDS: st.SearchStrategy[World] = st.lists(JOBS, max_size=5)


def objects(world: World) -> list[Object]:
    found: list[Object] = [node("n0"), node("n1", cpu="2"), *QUEUES]
    for number, (where, phase, needed, members) in enumerate(world):
        found += gang(f"j{number}", queue=where, pods=0, min_member=needed, phase=phase)
        found += [pod(f"j{number}-{k}", group=f"j{number}", **each) for k, each in enumerate(members)]
    return found


def lived(config: SchedulerConfig, seen: list[Object], *, sparing: bool) -> tuple[dict[str, Any], Any, Any]:
    """What comes of a cycle, and what is told of it afterwards."""
    session = open_session(view_of(*seen).snapshot(), config, CycleClock(7, 9.0), Carry(), sparing=sparing)
    assert PLACERS.isdisjoint(session.plugins) or not sparing
    for action in config.actions:
        run_action(session, action)
    tables, shares = tables_later(session), shares_later(session)
    return msgspec.structs.asdict(close_session(session)), tables(), shares()


@given(WORLDS, st.none() | OUTSIDE, st.sampled_from([STOCK, HIERARCHICAL, MENDED, EVICTING]))
def test_the_same_comes_of_a_session_and_is_told_of_it(
    world: World, new: Object | None, config: SchedulerConfig
) -> None:
    seen = objects(world) + ([] if new is None else [new])
    assert lived(config, seen, sparing=True) == lived(config, seen, sparing=False)


def opened(
    *more: Object, config: SchedulerConfig = STOCK, report: bool = False, trail: NullTrail = NULL_TRAIL
) -> Session:
    seen = view_of(node("n0"), *QUEUES, *gang("j", pods=1, nodes=["n0"], phase="Running"), *more)
    return open_session(seen.snapshot(), config, CycleClock(1, 0.0), Carry(), report=report, trail=trail, sparing=True)


def test_nobody_is_spared_where_somebody_waits_or_wants_to_know() -> None:
    assert set(opened().plugins) == {"gang"}
    whole = [
        opened(*gang("waiting", pods=1, phase="Inqueue")),
        opened(config=configuration(*TIERS, actions=[*PLACING, "shuffle"])),
        opened(report=True),
        opened(trail=cast("NullTrail", Trail())),
    ]
    assert all(session.plugins.keys() == {*TIERS[0], *TIERS[1]} for session in whole)


def test_who_waits_to_be_admitted_needs_no_node() -> None:
    assert opened(*gang("outside", pods=0)).plugins.keys() == {*TIERS[0], *TIERS[1]} - PLACERS


@pytest.mark.parametrize("lost", ["nowhere", "default"])
def test_who_is_in_no_queue_waits_for_nothing(lost: str) -> None:
    waiting = gang("waiting", queue=lost, pods=1, phase="Inqueue")
    assert ("priority" in opened(*waiting).plugins) is (lost == "default")


@pytest.mark.parametrize("config", [STOCK, HIERARCHICAL])
def test_what_is_opened_to_be_told_of_is_gone_without_the_collector(config: SchedulerConfig) -> None:
    def told() -> None:
        session = opened(config=config)
        tables, shares = tables_later(session), shares_later(session)
        close_session(session)
        assert tables()
        assert shares().jobs

    told()
    gc.collect()
    gc.disable()
    try:
        told()
        assert gc.collect() == 0
    finally:
        gc.enable()
