"""capacity with a tree of queues: what children inherit, sums to the root, order, ancestors' say in reclaim."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.cycle import close_session, open_session
from pumice.core.objects.metadata import Object
from pumice.core.plugins.capacity import Capacity
from pumice.core.plugins.capacity.limits import ROOT, FixedAttributes, tree_limits
from pumice.core.resources import LARGEST, Resource
from pumice.core.session.carry import Carry, CycleClock
from pumice.core.session.session import Session
from tests.core.plugins.world import configuration, evictable, job_of, open_world, task_of, view_of
from tests.kit import gang, node, pod_group, queue

BIG = node("n", cpu="32", memory="128Gi")


def tree(level: int = 0, fix: tuple[str, ...] = ()) -> Any:
    entry = {"name": "capacity", "enableHierarchy": True, "arguments": {"ancestorReclaimLevel": level}}
    return configuration([entry], fix=fix)


def plugin(session: Session) -> Capacity:
    found = session.plugins["capacity"]
    assert isinstance(found, Capacity)
    return found


def running(name: str, where: str, pods: int) -> list[Object]:
    return gang(name, queue=where, pods=pods, nodes=["n"] * pods, phase="Running", min_member=1)


def two_teams(*more: Any, level: int = 0, fix: tuple[str, ...] = ()) -> Session:
    """root: a (deserves 8: a1 4, a2 4) and b (deserves 8: b1 8); a1 runs 6, b1 runs 2."""
    return open_world(
        tree(level, fix),
        BIG,
        queue(ROOT),
        queue("a", parent=ROOT, deserved={"cpu": "8", "memory": "64Gi"}),
        queue("b", parent=ROOT, deserved={"cpu": "8", "memory": "64Gi"}),
        queue("a1", parent="a", deserved={"cpu": "4", "memory": "64Gi"}),
        queue("a2", parent="a", deserved={"cpu": "4", "memory": "64Gi"}),
        queue("b1", parent="b", deserved={"cpu": "8", "memory": "64Gi"}),
        running("ja", "a1", 6),
        running("jb", "b1", 2),
        *more,
    )


# --- limits
# -------------------------------------------------------------------------------------------------------------


def limits_of(*queues: Object, total: Resource | None = None) -> dict[str, FixedAttributes]:
    known = {q.name: q for q in view_of(*queues).snapshot().queues}
    found = tree_limits(known, total or Resource(10_000.0, 1e12, {"pods": 110.0}))
    assert found is not None
    return found


def test_children_inherit_what_a_capability_leaves_open() -> None:
    found = limits_of(
        queue(ROOT),
        queue("a", capability={"cpu": "4", "nvidia.com/gpu": "2"}),
        queue("a1", parent="a", capability={"memory": "1Gi"}),
    )
    assert found["a"].capability.memory == LARGEST
    assert found["a1"].capability.milli_cpu == 4000
    assert (found["a1"].capability.scalars or {})["nvidia.com/gpu"] == 2000
    assert found["a1"].ancestors == [ROOT, "a"]
    assert found["a1"].leaf
    assert not found["a"].leaf


def test_a_childs_real_capability_leaves_its_siblings_their_guarantees() -> None:
    found = limits_of(
        queue(ROOT, capability={"cpu": "10"}),
        queue("a", guarantee={"cpu": "3"}),
        queue("b", guarantee={"cpu": "2"}, deserved={"cpu": "1"}),
    )
    assert found["a"].real_capability.milli_cpu == 10_000 - 5_000 + 3_000
    assert found["b"].deserved.milli_cpu == 2000
    assert (found[ROOT].guarantee.milli_cpu, found[ROOT].deserved.milli_cpu) == (5000, 5000)


@pytest.mark.parametrize(
    "queues",
    [
        [queue("a", parent=ROOT)],  # there is no root
        [queue(ROOT), queue("a", parent="gone")],
    ],
)
def test_a_tree_that_cannot_be_used(queues: list[Object]) -> None:
    assert tree_limits({q.name: q for q in view_of(queues).snapshot().queues}, Resource()) is None


def test_a_ring_hangs_in_the_air() -> None:
    found = limits_of(queue(ROOT), queue("x", parent="y"), queue("y", parent="x"), queue("leaf", parent="y"))
    assert found["leaf"].real_capability.is_empty()
    assert not found["x"].leaf


def test_a_deep_tree_is_no_trouble() -> None:
    depth = 3000
    chain = [queue(f"q{i}", parent=f"q{i + 1}") for i in range(depth)]
    found = limits_of(queue(ROOT), queue(f"q{depth}"), *chain)
    assert len(found["q0"].ancestors) == depth + 1


# --- sums
# ---------------------------------------------------------------------------------------------------------------


@st.composite
def forests(draw: Any) -> tuple[list[Object], list[Object]]:
    """Queues in a random tree, and running jobs in its leaves."""
    count = draw(st.integers(1, 9))
    parents = [ROOT if i == 0 else draw(st.sampled_from([ROOT, *(f"q{k}" for k in range(i))])) for i in range(count)]
    queues = [queue(ROOT), *(queue(f"q{i}", parent=parent) for i, parent in enumerate(parents))]
    leaves = [f"q{i}" for i in range(count) if f"q{i}" not in parents]
    jobs: list[Object] = []
    for number in range(draw(st.integers(0, 5))):
        jobs += running(f"j{number}", draw(st.sampled_from(leaves)), draw(st.integers(1, 3)))
    return queues, jobs


@given(forests())
def test_every_queue_has_what_its_leaves_have(forest: tuple[list[Object], list[Object]]) -> None:
    session = open_world(tree(), BIG, *forest)
    ledger = plugin(session).ledger
    pods = dict.fromkeys(session.queues, 0)
    for job in session.jobs.in_order:
        for attributes in ledger.line(job.pod_group.queue):
            pods[attributes.limits.name] += len(job.tasks)
    for name, number in pods.items():
        attributes = ledger.of(name)
        assert attributes.allocated.get("pods") == attributes.request.get("pods") == number
        assert attributes.allocated.milli_cpu == number * 1000


def test_events_reach_every_ancestor_but_only_the_leafs_share_unless_mended() -> None:
    for fix, share in (((), 0.75), (("capacity-ancestor-shares",), 0.875)):
        session = two_teams(gang("new", queue="a1", pods=1, phase="Inqueue"), fix=fix)
        ledger = plugin(session).ledger
        statement = session.statement()
        statement.allocate(task_of(session, "new-0"), 0)
        assert ledger.of("a1").share == 1.75
        assert ledger.of("a").allocated.milli_cpu == ledger.of(ROOT).allocated.milli_cpu - 2000 == 7000
        assert ledger.of("a").share == share
        statement.discard()
        assert ledger.of("a").share == 0.75


# --- order
# ----------------------------------------------------------------------------------------------------------------


def test_leaves_compare_their_branches() -> None:
    session = two_teams()
    queues = session.queues
    assert session.points.queue_order(queues["a2"], queues["a1"]) < 0  # same branch: their own shares
    assert session.points.queue_order(queues["b1"], queues["a2"]) < 0  # branch b has 2 of 8, branch a 6 of 8
    assert session.points.queue_order(queues["a1"], queues["b"]) < 0  # a leaf before any that is none
    assert session.points.queue_order(queues["b"], queues["a"]) < 0


def test_victims_are_sought_in_the_nearer_branch() -> None:
    session = two_teams()
    a1, a2, b1 = (session.queues[name] for name in ("a1", "a2", "b1"))
    (compare,) = session.points.victim_queue_order.rules
    assert compare(a1, b1, a2) < 0
    assert compare(b1, a1, a2) > 0
    assert compare(a1, a1, b1) == 0


def test_a_job_in_an_inner_queue_makes_the_tree_unusable() -> None:
    session = two_teams(gang("lost", queue="a", pods=1))
    b1 = session.queues["b1"]
    assert not plugin(session).ledger.ready
    assert plugin(session).gauges() is None
    assert not session.points.queue_order.rules
    assert not session.points.allocatable(b1, task_of(session, "lost-0"))
    assert not session.points.preemptive(b1, [])
    assert not session.points.job_enqueueable(job_of(session, "lost"))
    assert evictable(session, "Reclaimable", task_of(session, "lost-0"), "ja-0") == []


# --- limits in use
# -----------------------------------------------------------------------------------------------------------


def test_an_ancestors_capability_limits_its_children() -> None:
    session = open_world(
        tree(),
        BIG,
        queue(ROOT),
        queue("a", capability={"cpu": "2"}),
        queue("a1", parent="a"),
        queue("a2", parent="a"),
        running("j", "a1", 2),
        gang("new", queue="a2", pods=1),
        pod_group("waits", queue="a2", min_resources={"cpu": "1"}),
    )
    assert not session.points.allocatable(session.queues["a2"], task_of(session, "new-0"))
    assert session.points.job_enqueueable(job_of(session, "waits"))  # what runs without minimum is elastic
    assert plugin(session).ledger.of(ROOT).inqueue.milli_cpu == 1000


# --- reclaim
# ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "victims"), [(0, 2), (1, 0), (2, 0)])
def test_a_parent_within_its_due_protects_its_children(level: int, victims: int) -> None:
    session = two_teams(gang("poor", queue="b1", pods=1, phase="Inqueue"), level=level)
    taken = evictable(session, "Reclaimable", task_of(session, "poor-0"), *(f"ja-{i}" for i in range(6)))
    assert len(taken) == victims


def test_a_shared_parent_is_not_asked() -> None:
    session = two_teams(gang("poor", queue="a2", pods=1, phase="Inqueue"), level=1)
    assert len(evictable(session, "Reclaimable", task_of(session, "poor-0"), *(f"ja-{i}" for i in range(6)))) == 2


@pytest.mark.parametrize(("level", "victims"), [(0, 4), (1, 2)])
def test_victims_of_several_children_count_against_their_parent(level: int, victims: int) -> None:
    session = open_world(
        tree(level),
        BIG,
        queue(ROOT),
        queue("a", parent=ROOT, deserved={"cpu": "4", "memory": "64Gi"}),
        queue("b", parent=ROOT, deserved={"cpu": "8"}),
        *(queue(name, parent="a", deserved={"cpu": "1", "memory": "64Gi"}) for name in ("a1", "a2")),
        running("x", "a1", 3),
        running("y", "a2", 3),
        gang("poor", queue="b", pods=1, phase="Inqueue"),
    )
    pods = [f"{job}-{i}" for job in "xy" for i in range(3)]
    assert len(evictable(session, "Reclaimable", task_of(session, "poor-0"), *pods)) == victims


@pytest.mark.parametrize(("level", "victims"), [(0, 2), (1, 0)])
def test_siblings_who_deserve_nothing_do_not_rob_each_other(level: int, victims: int) -> None:
    session = open_world(
        tree(level),
        BIG,
        queue(ROOT),
        queue("a", parent=ROOT, deserved={"cpu": "1"}),
        queue("a1", parent="a"),
        queue("a2", parent="a"),
        running("rich", "a1", 2),
        gang("poor", queue="a2", pods=1, phase="Inqueue"),
    )
    assert len(evictable(session, "Reclaimable", task_of(session, "poor-0"), "rich-0", "rich-1")) == victims


@pytest.mark.parametrize(("level", "may"), [(0, False), (1, True)])
def test_a_parent_lends_its_right_to_take(level: int, may: bool) -> None:
    session = two_teams(gang("more", queue="a1", pods=1, phase="Inqueue", memory=None), level=level)
    assert session.points.preemptive(session.queues["a1"], [task_of(session, "more-0")]) is may


def test_limits_are_kept_until_a_queue_changes() -> None:
    view = view_of(BIG, queue(ROOT), queue("a", deserved={"cpu": "1"}), gang("j", queue="a", pods=1))

    def limits() -> FixedAttributes:
        session = open_session(view.snapshot(), tree(), CycleClock(1, 0.0), Carry())
        found = plugin(session).ledger.of("a").limits
        close_session(session)
        return found

    first = limits()
    assert limits() is first
    view.apply("MODIFIED", queue("a", deserved={"cpu": "2"}))
    assert limits().deserved.milli_cpu == 2000
    view.apply("ADDED", node("m", gpus=1))
    gpus = (limits().capability.scalars or {})["nvidia.com/gpu"]
    assert np.isclose(gpus, 9.223372036854775807e18)


def full_tree(fix: tuple[str, ...], *, actions: tuple[str, ...], reclaimable: bool = True, need: str = "8") -> Session:
    """root's 32 cpu are all in use by a; b, which deserves 16, wants some. Both queues may have everything."""
    entry = {"name": "capacity", "enableHierarchy": True}
    config = configuration([entry], fix=fix, actions=actions)
    due = {"cpu": "16", "memory": "64Gi"}
    old = gang("old", queue="a", pods=32, nodes=["n"] * 32, phase="Running", min_member=32)
    old[0]["spec"]["minResources"] = {"cpu": "32", "memory": "32Gi"}
    return open_world(
        config,
        BIG,
        queue(ROOT, capability={"cpu": "32"}),
        queue("a", parent=ROOT, deserved=due, reclaimable=reclaimable),
        queue("b", parent=ROOT, deserved=due),
        old,
        pod_group("new", queue="b", min_resources={"cpu": need}),
    )


LENT = ("enqueue-counts-what-is-lent",)
RECLAIMS = ("enqueue", "allocate", "reclaim")


@pytest.mark.parametrize(
    ("fix", "actions", "reclaimable", "need", "admitted"),
    [
        ((), RECLAIMS, True, "8", False),
        (LENT, RECLAIMS, True, "8", True),
        (LENT, RECLAIMS, True, "16", True),
        (LENT, RECLAIMS, True, "17", False),  # more than a holds above its due
        (LENT, RECLAIMS, False, "8", False),  # a gives nothing back
        (LENT, ("enqueue", "allocate"), True, "8", False),  # nobody would take it
        (LENT, ("enqueue", "gangreclaim"), True, "8", True),
    ],
)
def test_job_is_admitted_into_what_others_borrowed_under_the_fix(
    fix: tuple[str, ...], actions: tuple[str, ...], reclaimable: bool, need: str, admitted: bool
) -> None:
    session = full_tree(fix, actions=actions, reclaimable=reclaimable, need=need)
    assert session.points.job_enqueueable(job_of(session, "new")) is admitted


def test_queue_above_its_due_borrows_no_more_under_the_fix() -> None:
    session = full_tree(LENT, actions=RECLAIMS)
    job = job_of(session, "new")
    plugin(session).ledger.of("b").allocated.milli_cpu = 16_000
    assert not session.points.job_enqueueable(job)


def test_what_is_placed_is_credited_to_its_own_queue_and_those_above() -> None:
    session = two_teams(gang("new", queue="a2", pods=1), gang("other", queue="b1", pods=1))
    ledger, statement = plugin(session).ledger, session.statement()

    def held() -> dict[str, float]:
        return {name: ledger.of(name).allocated.milli_cpu for name in (ROOT, "a", "b", "a1", "a2", "b1")}

    before = held()
    for name in ("new-0", "other-0"):
        assert statement.allocate(task_of(session, name), 0)
    assert held() == {ROOT: 10_000, "a": 7000, "b": 3000, "a1": 6000, "a2": 1000, "b1": 3000}
    statement.evict(task_of(session, "ja-0"), "reclaim")
    assert held() == {ROOT: 9000, "a": 6000, "b": 3000, "a1": 5000, "a2": 1000, "b1": 3000}
    statement.discard()
    assert held() == before
