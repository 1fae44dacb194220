"""usage: which nodes are too busy, how the others rank, and when a measurement is too old to say."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.cycle import close_session, open_session
from pumice.core.objects.metadata import parse_time
from pumice.core.objects.node_usage import KIND
from pumice.core.plugins.usage import Usage
from pumice.core.session.carry import Carry, CycleClock, SessionOptions
from pumice.core.session.session import Session
from tests.core.kube.sessions import scores, texts
from tests.core.plugins.world import NOW, configuration, task_of, view_of
from tests.kit import gang, node, queue

Load = dict[str, Any]
CPU = "the CPU load of the node exceeds the upper limit."
MEMORY = "the memory load of the node exceeds the upper limit."
START = parse_time(NOW)
PERCENT = st.one_of(st.floats(0, 130), st.sampled_from([80.0, 60.0, 100.0]))
AVERAGES = st.dictionaries(st.sampled_from(["10m", "5m"]), PERCENT)
AGES = st.sampled_from([0.0, 299.0, 300.0, 300.5, 1e6])
LOADS = st.fixed_dictionaries({}, optional={"cpu": AVERAGES, "memory": AVERAGES, "age": AGES})


def opened(loads: dict[str, Load], arguments: dict[str, Any], count: int) -> Session:
    objects = [*(node(f"n{i}") for i in range(count)), queue("default"), *gang("j", pods=1)]
    usage = {name: dict(load) for name, load in loads.items()}
    for load in usage.values():
        load["measuredAt"] = START - load.pop("age", 0.0)
    config = configuration([{"name": "usage", "arguments": arguments}])
    options = SessionOptions(node_usage=usage)
    return open_session(view_of(*objects).snapshot(), config, CycleClock(1, START), Carry(), options)


def answers(session: Session) -> tuple[list[str], list[float]]:
    task, rows = task_of(session, "j-0"), list(range(session.nodes.count))
    refused = [""] * len(rows)
    for node_filter in (one for filters in session.points.predicate.rules for one in filters):
        refused = texts(session, node_filter.prepare(session, task))
    ranks = [0.0] * len(rows)
    for scorer in (one for scorers in session.points.node_order.rules for one in scorers):
        ranks = scores(session, scorer.prepare(session, task), rows)
    return refused, ranks


def plain(load: Load, weights: tuple[int, int, int], limits: tuple[int, int]) -> tuple[str, float]:
    """Volcano's predicateFn and nodeOrderFn for one node."""
    weight, wc, wm = weights
    if not load or load.get("age", 0.0) > 300:
        return "", 0.0
    cpu, memory = load.get("cpu", {}), load.get("memory", {})
    refused = CPU if cpu.get("10m", 0.0) > limits[0] else MEMORY if memory.get("10m", 0.0) > limits[1] else ""
    if "10m" not in cpu or "10m" not in memory or wc + wm == 0:
        return refused, 0.0
    score = ((100 - cpu["10m"]) / 100 * wc + (100 - memory["10m"]) / 100 * wm) / (wc + wm)
    return refused, score * (100 * weight)


@given(
    loads=st.lists(LOADS, min_size=1, max_size=4),
    weights=st.tuples(st.integers(-2, 5), st.integers(-1, 3), st.integers(0, 3)),
    limits=st.tuples(st.sampled_from([-1, 0, 50, 80]), st.sampled_from([-1, 60, 80])),
)
def test_usage_is_the_slow_one(loads: list[Load], weights: tuple[int, int, int], limits: tuple[int, int]) -> None:
    arguments: dict[str, Any] = dict(zip(("usage.weight", "cpu.weight", "memory.weight"), weights, strict=True))
    arguments["thresholds"] = {"cpu": limits[0], "mem": limits[1]}
    session = opened({f"n{i}": load for i, load in enumerate(loads) if load}, arguments, len(loads))
    expected = [plain(load, weights, limits) for load in loads]
    assert answers(session) == ([refused for refused, _ in expected], [score for _, score in expected])


def test_thresholds() -> None:
    busy = {"n0": {"cpu": {"10m": 70.0}, "memory": {"10m": 70.0}}}
    for thresholds, text in (
        ({"cpu": 60, "mem": 60}, CPU),
        ({"mem": 60}, MEMORY),
        ({"cpu": 60.0}, CPU),  # no whole number: 0
        ({"cpu": "90"}, CPU),
        ({}, ""),
        (None, ""),
        ("80", ""),
    ):
        assert answers(opened(busy, {"thresholds": thresholds}, 1))[0] == [text]


def test_it_wakes_when_the_first_refusal_grows_old() -> None:
    busy, idle = {"cpu": {"10m": 90.0}}, {"cpu": {"10m": 10.0}}
    ages = {"n0": {**busy, "age": 10.0}, "n1": {**busy, "age": 20.0}, "n2": {**idle, "age": 200.0}}
    session = opened(ages, {}, 3)
    assert session.wake_at is None  # nobody has asked yet
    answers(session)
    wake_at = session.wake_at
    assert wake_at is not None
    assert math.isclose(wake_at, START + 280.0, abs_tol=0.01)
    assert wake_at > START + 280.0
    session = opened({"n2": idle}, {}, 3)
    answers(session)
    assert session.wake_at is None


def test_weights_that_cancel_out_leave_the_scorer_out() -> None:
    assert opened({}, {"cpu.weight": 1, "memory.weight": -1}, 1).points.node_order.rules == ()


@pytest.mark.parametrize(("stamp", "refused"), [(NOW, [CPU]), ("2026-01-01T11:54:59Z", [""])])
def test_node_metrics_in_the_view(stamp: str, refused: list[str]) -> None:
    sampled = {"kind": KIND, "metadata": {"name": "n0"}, "timestamp": stamp, "usage": {"cpu": "7", "memory": "1Gi"}}
    view = view_of(node("n0", cpu="8"), queue("default"), gang("j", pods=1), sampled)
    session = open_session(view.snapshot(), configuration(["usage"]), CycleClock(1, START), Carry())
    assert answers(session)[0] == refused


def test_arguments_of_the_wrong_type_keep_their_defaults() -> None:
    idle = {"n0": {"cpu": {"10m": 0.0}, "memory": {"10m": 0.0}}}
    assert answers(opened(idle, {"usage.weight": "3"}, 1))[1] == [500.0]
    assert Usage({}).name == "usage"


def test_newer_metrics_replace_older_ones() -> None:
    def sampled(cpu: str) -> Load:
        return {"kind": KIND, "metadata": {"name": "n0"}, "timestamp": NOW, "usage": {"cpu": cpu, "memory": "1Gi"}}

    view = view_of(node("n0", cpu="8"), queue("default"), gang("j", pods=1), sampled("7"))
    for cpu, refused in ((None, [CPU]), ("1", [""]), ("7500m", [CPU])):
        if cpu:
            view.apply("MODIFIED", sampled(cpu))
        session = open_session(view.snapshot(), configuration(["usage"]), CycleClock(1, START), Carry())
        assert answers(session)[0] == refused
        close_session(session)
