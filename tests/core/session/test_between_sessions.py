"""What one session leaves for the next: no more work than what changed asks for, and no memory."""

from __future__ import annotations

import copy
import gc
import weakref
from typing import Any

import pytest

from pumice.core.cycle import Carry, CycleClock, close_session, open_session, run_action, tables_later
from pumice.core.kube.node_selector import label_column
from pumice.core.life.pod_group import PodGroupPhase
from pumice.core.messages.queue_tables import readable
from pumice.core.objects.metadata import Object
from pumice.core.session.session import Session
from pumice.core.state.view import View
from tests.core.plugins.world import configuration, view_of
from tests.kit import gang, node, pod, pod_group, queue


def opened(view: View, plugin: str) -> Session:
    return open_session(
        view.snapshot(), configuration([plugin, "predicates", "nodeorder"]), CycleClock(1, 0.0), Carry()
    )


def view() -> View:
    running = gang("j", queue="q", pods=1, nodes=["n0"], phase="Running")
    return view_of(node("n0"), node("n1"), queue("q", weight=2, guarantee={"cpu": "1"}), queue("root"), running)


def limits(session: Session, plugin: str) -> Any:
    found: Any = session.plugins[plugin]
    return found.attributes._limits if plugin == "proportion" else found.ledger.kept


def changed(obj: Object, path: str, value: object) -> Object:
    twin = copy.deepcopy(obj)
    *parents, last = path.split(".")
    inner = twin
    for name in parents:
        inner = inner.setdefault(name, {})
    inner[last.replace("~", ".")] = value
    return twin


@pytest.mark.parametrize("plugin", ["proportion", "capacity"])
@pytest.mark.parametrize(
    ("obj", "path", "value", "kept"),
    [
        (queue("q", weight=2, guarantee={"cpu": "1"}), "status.allocated", {"cpu": "1"}, True),
        (node("n1"), "metadata.labels.new", "label", True),
        (queue("q", weight=3, guarantee={"cpu": "1"}), "status.state", "Open", False),
        (queue("q", weight=2, guarantee={"cpu": "2"}), "status.state", "Open", False),
        (queue("r"), "status.state", "Open", False),
        (node("n1"), "status.allocatable.cpu", "1", False),
        (node("n1"), "status.allocatable.example~com/card", "1", False),
    ],
)
def test_limits_of_queues_outlive_what_does_not_touch_them(
    plugin: str, obj: Object, path: str, value: object, kept: bool
) -> None:
    seen = view()
    session = opened(seen, plugin)
    before = limits(session, plugin)
    close_session(session)
    seen.apply("MODIFIED", changed(obj, path, value))
    after = limits(opened(seen, plugin), plugin)
    assert (after is before) is kept


def test_a_heartbeat_leaves_everything_that_is_known_of_nodes() -> None:
    seen = view()
    before = opened(seen, "gang")
    column = label_column(before, "a")
    close_session(before)
    heartbeat = changed(
        node("n1"), "status.conditions", [{"type": "Ready", "lastHeartbeatTime": "2026-01-01T00:00:10Z"}]
    )
    seen.apply("MODIFIED", heartbeat)
    after = opened(seen, "gang")
    assert label_column(after, "a") is column
    assert after.nodes.specs[1].node == heartbeat
    close_session(after)
    for path, value in (("spec.unschedulable", True), ("metadata.labels.a", "b"), ("status.allocatable.cpu", "3")):
        column = label_column(before := opened(seen, "gang"), "a")
        close_session(before)
        seen.apply("MODIFIED", changed(node("n1"), path, value))
        assert label_column(opened(seen, "gang"), "a") is not column, path


def test_where_there_is_no_topology_its_tree_is_kept() -> None:
    seen = view()
    session = opened(seen, "proportion")
    tree = session.topology.tree
    close_session(session)
    session = opened(seen, "proportion")
    assert session.topology.tree is tree
    close_session(session)
    hyper_node: Object = {"kind": "HyperNode", "metadata": {"name": "rack"}, "spec": {"tier": 1, "members": []}}
    seen.apply("ADDED", hyper_node)
    grown = opened(seen, "proportion").topology.tree
    assert set(grown.domains) == {"rack", *tree.domains}
    seen.apply("DELETED", hyper_node)
    assert set(opened(seen, "proportion").topology.tree.domains) == set(tree.domains)


def test_a_closed_session_is_gone_without_the_collector() -> None:
    seen = view()
    for plugin in ("capacity", "proportion", "gang", "priority", "drf") * 2:
        session = opened(seen, plugin)
        assert session.points.job_valid(session.jobs.in_order[0]) is None
        alive = weakref.ref(session.jobs)
        gc.disable()
        try:
            close_session(session)
            assert alive() is None, plugin
        finally:
            gc.enable()


def test_what_readers_of_placements_know_is_gone_too() -> None:
    spread: dict[str, Any] = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {},
    }
    waiting = pod("p", group="k")
    waiting["spec"]["topologySpreadConstraints"] = [spread]
    seen = view_of(node("n0", labels={"zone": "a"}), queue("q"), pod_group("k", queue="q", phase="Inqueue"), waiting)
    session = opened(seen, "gang")
    run_action(session, "allocate")
    placed = session.kube.placed
    assert placed is not None
    assert placed.readers, "somebody has asked"
    alive = weakref.ref(placed)
    del placed
    gc.disable()
    try:
        close_session(session)
        assert alive() is None
    finally:
        gc.enable()


def test_what_a_queue_has_is_told_until_its_status_says_so_and_anew_when_it_changes() -> None:
    seen = view()

    def told() -> dict[str, dict[str, str]]:
        result = close_session(opened(seen, "gang"))
        return {status.name: status.allocated for status in result.queues}

    one, two = ({"cpu": str(pods), "memory": f"{pods}Gi", "pods": str(pods)} for pods in (1, 2))
    assert told() == told() == {"q": one, "root": one}
    for name in ("q", "root"):
        seen.apply("MODIFIED", changed(queue(name, weight=2), "status.allocated", one))
    assert told() == {}
    for obj in gang("k", queue="q", pods=1, nodes=["n1"], phase="Running"):
        seen.apply("ADDED", obj)
    assert told() == {"q": two, "root": two}
    for name in ("q", "root"):
        seen.apply("MODIFIED", changed(queue(name, weight=2), "status.allocated", two))
    assert told() == {}


def test_numbers_of_queues_are_those_of_the_opening_whatever_was_done() -> None:
    """Whoever asks for them asks when the session is over; by then the next one may be at work."""
    group = pod_group("j", queue="q", phase="Inqueue", min_resources={"cpu": "3"})
    seen = view_of(node("n0"), queue("q"), group, pod("p", group="j", cpu="2"))
    for plugin in ("proportion", "capacity"):
        session = opened(seen, plugin)
        tables = tables_later(session)
        statement = session.statement()
        statement.allocate(next(t for t in session.snapshot.tasks.handles if t is not None), 0)
        statement.commit()
        session.jobs.phase[0] = PodGroupPhase.RUNNING
        assert close_session(session).binds
        assert seen.assume("default", "p", "n0")
        close_session(opened(seen, plugin))
        numbers = readable(tables()).by_queue()["q"]
        assert numbers["allocated_milli_cpu"] == numbers["elastic_milli_cpu"] == 0
        assert numbers["request_milli_cpu"] == 2000
        assert numbers["inqueue_milli_cpu"] == 3000
        assert seen.forget("default", "p")


@pytest.mark.parametrize("plugin", ["proportion", "capacity"])
def test_what_is_left_to_be_told_keeps_no_session(plugin: str) -> None:
    session = opened(view(), plugin)
    part = weakref.ref(session.jobs)
    tables = tables_later(session)
    close_session(session)
    del session
    assert part() is None
    assert readable(tables()).by_queue()["q"]["allocated_milli_cpu"] == 1000


def test_nobody_asked_for_numbers() -> None:
    report = close_session(opened(view(), "proportion")).report
    assert report.queues.queues == report.queue_amounts.queues == []


@pytest.mark.parametrize("plugin", ["proportion", "capacity"])
def test_where_there_is_nothing_nothing_is_told(plugin: str) -> None:
    session = opened(View(), plugin)
    tables = tables_later(session)
    close_session(session)
    assert readable(tables()).queues == []
