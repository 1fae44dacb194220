"""rescheduling: when it runs, which nodes count as idle or busy, and who goes."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.core.cycle import open_session, run_action
from pumice.core.objects.metadata import parse_time
from pumice.core.plugins.rescheduling import Qos, qos_of
from pumice.core.session.carry import Carry, CycleClock, SessionOptions
from pumice.core.session.session import Session
from tests.core.actions.crowds import evictions
from tests.core.plugins.world import NOW, configuration, open_world, task_of, view_of
from tests.kit import gang, node, pod, queue

LIMITS = {"thresholds": {"cpu": 20, "memory": 20}, "targetThresholds": {"cpu": 50, "memory": 50}}


def world(
    usage: dict[str, float],
    *parts: Any,
    limits: Any = LIMITS,
    carry: Carry | None = None,
    period: str = "5m",
    fix: tuple[str, ...] = (),
    memory: float = 0.0,
    **arguments: Any,
) -> Session:
    """Three nodes of 10 cpu; `usage`: cpu load in per cent by node; `memory`: that of n2's memory."""
    given = {"interval": "1ns", "strategies": [{"name": "lowNodeUtilization", "params": limits}], **arguments}
    config = configuration([{"name": "rescheduling", "arguments": given}], actions=["shuffle"], fix=fix)
    measured = {name: {"cpu": {period: load}, "memory": dict[str, float]()} for name, load in usage.items()}
    if memory:
        measured["n2"]["memory"][period] = memory
    nodes = [node(f"n{i}", cpu="10", memory="10Gi") for i in range(3)]
    view = view_of(*nodes, queue("q"), *parts)
    options = SessionOptions(node_usage=measured)
    session = open_session(view.snapshot(), config, CycleClock(1, parse_time(NOW)), carry or Carry(), options)
    run_action(session, "shuffle")
    return session


BUSY = {"n0": 80.0, "n1": 30.0, "n2": 5.0}
OLD = gang("old", queue="q", pods=4, nodes=["n0"] * 4, phase="Running", cpu="2")


def test_pods_leave_a_busy_node_until_it_is_below_its_target() -> None:
    assert evictions(world(BUSY, OLD)) == ["old-0", "old-1"]  # 80 - 20 - 20 = 40 per cent


def test_at_the_target_one_more_goes() -> None:
    assert evictions(world({**BUSY, "n0": 90.0}, OLD)) == ["old-0", "old-1", "old-2"]  # 90, 70, 50: not below yet


@pytest.mark.parametrize(
    "usage",
    [{"n0": 80.0, "n1": 30.0, "n2": 30.0}, {"n0": 5.0, "n1": 5.0, "n2": 5.0}, {"n0": 40.0, "n1": 30.0, "n2": 5.0}],
)
def test_nobody_goes_without_idle_and_busy_nodes(usage: dict[str, float]) -> None:
    assert evictions(world(usage, OLD)) == []


@pytest.mark.parametrize("busy_with", ["cpu", "memory"])
@pytest.mark.parametrize(("load", "goes"), [(50.0, []), (51.0, ["old-0"])])
def test_a_node_is_busy_above_its_target(busy_with: str, load: float, goes: list[str]) -> None:
    cpu, memory = (load, 0.0) if busy_with == "cpu" else (30.0, load)
    old = gang("old", queue="q", pods=1, nodes=["n2"], phase="Running", cpu="2")
    assert evictions(world({"n0": 5.0, "n1": 30.0, "n2": cpu}, old, memory=memory)) == goes


def test_a_closed_node_is_not_idle() -> None:
    closed = node("n2", cpu="10", memory="10Gi")
    closed["spec"] = {"unschedulable": True}
    assert evictions(world(BUSY, OLD, closed)) == []


def test_the_load_of_another_period_is_not_read() -> None:
    assert evictions(world(BUSY, OLD, period="10m")) == []
    assert evictions(world(BUSY, OLD, period="10m", metricsPeriod="10m")) != []
    mended = ("rescheduling-default-period",)
    assert evictions(world(BUSY, OLD, period="10m", fix=mended)) != []
    assert evictions(world(BUSY, OLD, period="10m", metricsPeriod="5m", fix=mended)) == []


def test_the_least_important_pods_go_first() -> None:
    members = [
        gang("high", queue="q", pods=1, nodes=["n0"], phase="Running", cpu="2", priority=9),
        gang("low", queue="q", pods=1, nodes=["n0"], phase="Running", cpu="2", priority=1),
        gang("none", queue="q", pods=1, nodes=["n0"], phase="Running", cpu="2"),
    ]
    assert evictions(world({**BUSY, "n0": 85.0}, *members)) == ["none-0", "low-0"]


def test_idle_nodes_that_are_exactly_full_take_no_more() -> None:
    # n2 may take 45 per cent of 10 cpu; a pod of 4500m uses it up to the last.
    old = gang("old", queue="q", pods=3, nodes=["n0"] * 3, phase="Running", cpu="4500m")
    assert evictions(world({**BUSY, "n0": 200.0}, old)) == ["old-0"]


def test_it_runs_once_an_interval() -> None:
    fresh = world(BUSY, OLD, interval="1h")
    assert evictions(fresh) == []
    assert fresh.wake_at is not None
    at = parse_time(NOW)
    again = Carry(plugins={"rescheduling": {"last": at - 3601.0}})
    assert evictions(world(BUSY, OLD, interval="1h", carry=again)) != []
    early = Carry(plugins={"rescheduling": {"last": at - 3599.0}})
    assert evictions(world(BUSY, OLD, interval="1h", carry=early)) == []


@pytest.mark.parametrize(("ago", "runs"), [(299.0, False), (301.0, True)])
def test_an_interval_that_cannot_be_read_is_five_minutes(ago: float, runs: bool) -> None:
    carry = Carry(plugins={"rescheduling": {"last": parse_time(NOW) - ago}})
    assert bool(evictions(world(BUSY, OLD, interval="soon", carry=carry))) is runs


@pytest.mark.parametrize("strategies", [None, [], "lowNodeUtilization"])
def test_without_strategies_the_limits_are_a_hundred(strategies: Any) -> None:
    assert evictions(world({**BUSY, "n0": 99.0}, OLD, strategies=strategies)) == []
    assert evictions(world({**BUSY, "n0": 101.0}, OLD, strategies=strategies)) == ["old-0"]


@pytest.mark.parametrize("given", ["cpu", "memory"])
@pytest.mark.parametrize(("idlest", "goes"), [(99.0, ["old-0"]), (100.0, [])])
def test_a_threshold_that_is_not_given_is_a_hundred(given: str, idlest: float, goes: list[str]) -> None:
    cpu, memory = (5.0, idlest) if given == "cpu" else (idlest, 5.0)
    limits = {"thresholds": {given: 20}, "targetThresholds": {"cpu": 120, "memory": 120}}
    old = gang("old", queue="q", pods=1, nodes=["n0"], phase="Running", cpu="2")
    assert evictions(world({"n0": 200.0, "n1": 110.0, "n2": cpu}, old, limits=limits, memory=memory)) == goes


def test_an_unknown_strategy_does_nothing() -> None:
    assert evictions(world(BUSY, OLD, strategies=[{"name": "other"}])) == []


CLASSES: list[tuple[list[dict[str, Any]], Qos]] = [
    ([{}], Qos.BEST_EFFORT),
    ([{"requests": {"cpu": "0"}}], Qos.BEST_EFFORT),
    ([{"requests": {"cpu": "1"}}], Qos.BURSTABLE),
    ([{"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}], Qos.GUARANTEED),
    ([{"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}], Qos.BURSTABLE),
    ([{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}, {}], Qos.BURSTABLE),
]


@pytest.mark.parametrize(("resources", "expected"), CLASSES)
def test_classes_of_quality(resources: list[Any], expected: Qos) -> None:
    made = pod("p", node="n")
    made["spec"]["containers"] = [{"name": f"c{i}", "resources": each} for i, each in enumerate(resources)]
    session = open_world(configuration(["gang"]), node("n"), made)
    assert qos_of(task_of(session, "p").template) is expected
