"""The view: whatever happens to it, its books are those of a fresh view that was shown the outcome."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.errors import QuantityError
from pumice.core.life.task import TASK_LIFE, TaskStatus, TaskTrigger
from pumice.core.messages.decisions import BindContext
from pumice.core.objects.metadata import Object
from pumice.core.state.jobs import Job
from pumice.core.state.snapshot import Snapshot
from pumice.core.state.view import View
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.queues import queue

NODES, JOBS, PODS = ("n2", "n0", "n1"), ("j0", "j1"), ("a", "b", "c", "d")


@st.composite
def pods(draw: st.DrawFn) -> Object:
    return pod(
        draw(st.sampled_from(PODS)),
        group=draw(st.sampled_from(JOBS)),
        node=draw(st.sampled_from((None, *NODES))),
        cpu=draw(st.sampled_from(("500m", "2", None))),
        gpus=draw(st.integers(0, 2)),
        phase=draw(st.sampled_from((None, None, "Succeeded", "Failed"))),
    )


@st.composite
def nodes(draw: st.DrawFn) -> Object:
    return node(draw(st.sampled_from(NODES)), cpu=draw(st.sampled_from(("4", "8"))), gpus=draw(st.integers(0, 4)))


@st.composite
def others(draw: st.DrawFn) -> Object:
    group = pod_group(draw(st.sampled_from(JOBS)), queue="q", min_member=draw(st.integers(0, 4)))
    return draw(st.sampled_from((group, queue("q"))))


EVENTS = st.sampled_from(("ADDED", "MODIFIED", "DELETED"))
FLIGHTS = st.sampled_from(("assume", "forget", "evicting", "unevict", "snapshot"))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("apply"), EVENTS, st.one_of(pods(), nodes(), others())),
        st.tuples(FLIGHTS, st.sampled_from(PODS), st.sampled_from(NODES)),
    ),
    max_size=40,
)


def run(view: View, step: Any) -> None:
    what, first, second = step
    if what == "apply":
        view.apply(first, second)
    elif what == "assume":
        view.assume("default", first, second)
    elif what == "snapshot":
        view.snapshot()
    else:
        getattr(view, what)("default", first)


def last_words(steps: list[Any]) -> dict[tuple[str, str], Object]:
    """The objects that are left when the API events are over."""
    left: dict[tuple[str, str], Object] = {}
    for what, event, obj in steps:
        if what == "apply":
            key = (obj["kind"], obj["metadata"]["name"])
            left.pop(key, None)
            if event != "DELETED":
                left[key] = obj
    return left


@given(STEPS)
def test_books_add_up_after_every_step(steps: list[Any]) -> None:
    view = View()
    for step in steps:
        run(view, step)
        assert view.check() == []


@given(STEPS)
def test_without_anything_in_flight_a_view_equals_a_fresh_one(steps: list[Any]) -> None:
    view, fresh = View(), View()
    for step in steps:
        run(view, step)
    for name in PODS:
        view.forget("default", name)
        view.unevict("default", name)
    for obj in last_words(steps).values():
        fresh.apply("ADDED", obj)
    assert books(view) == books(fresh)


def books(view: View) -> dict[str, Any]:
    """What a session would see, by name."""
    snapshot = view.snapshot()
    names = snapshot.dimensions.names
    found: dict[str, Any] = {}
    for row, name in enumerate(snapshot.nodes.names):
        for what in ("allocatable", "idle", "used", "releasing"):
            column = getattr(snapshot.nodes, what)[:, row].tolist()
            found[f"{name} {what}"] = {n: v for n, v in zip(names, column, strict=True) if v}
        found[f"{name} pods"] = int(snapshot.nodes.pod_count[row])
    for job in jobs_of(snapshot):
        found[job.key] = (snapshot.jobs.counts[:, job.row].tolist(), sorted(task.key for task in job.tasks.values()))
        found[f"{job.key} allocated"] = [v for v in snapshot.jobs.allocated[:, job.row].tolist() if v]
    return found


def jobs_of(snapshot: Snapshot) -> list[Job]:
    """The jobs a session would have."""
    rows: list[int] = snapshot.jobs.order.tolist()
    return [job for row in rows if (job := snapshot.jobs.handles[row]) is not None]


def test_columns_do_not_grow_with_jobs_that_are_over() -> None:
    """The pods of a job stay when it is complete; its PodGroup goes, or comes again when it is run again."""
    view = View()
    view.apply("ADDED", queue("q"))
    shapes = set[tuple[int, ...]]()
    for number in range(20):
        name = f"j{number}"
        for obj in gang(name, queue="q", pods=2):
            view.apply("ADDED", obj)
        during = view.snapshot()
        view.apply("MODIFIED", pod(f"{name}-0", group=name, node="n0", phase="Succeeded"))
        view.apply("DELETED", pod_group(name, queue="q"))
        view.apply("MODIFIED", pod(f"{name}-1", group=name, node="n0", phase="Failed"))
        assert view.check() == []
        after = view.snapshot()
        assert len(after.tasks.handles) == len(after.tasks.status)
        shapes.add((len(view.tasks.handles), len(view.jobs.handles), len(after.jobs.order)))
        assert all(during.tasks.handles[task.row] is task for task in jobs_of(during)[0].in_uid_order())
    assert shapes == {(2, 1, 0), (4, 2, 0)}  # at first there is no job beside those that are over
    assert len(view.tasks.by_key) == 40
    assert view.jobs.counts.sum(axis=1)[[TaskStatus.SUCCEEDED, TaskStatus.FAILED]].tolist() == [20, 20]
    view.apply("ADDED", pod_group("j3", queue="q", min_member=1))
    again = view.snapshot()
    assert [job.key for job in jobs_of(again)] == ["default/j3"]
    assert again.jobs.counts[:, again.jobs.order[0]].sum() == 2
    for number in range(20):
        for each in range(2):
            view.apply("DELETED", pod(f"j{number}-{each}", group=f"j{number}"))
    assert view.check() == []
    assert (len(view.tasks.by_key), list(view.jobs.by_key)) == (0, ["default/j3"])


def test_a_snapshot_does_not_see_later_events() -> None:
    view = View()
    for obj in (queue("q"), node("n0"), *gang("j", queue="q", pods=2)):
        view.apply("ADDED", obj)
    snapshot = view.snapshot()
    job = jobs_of(snapshot)[0]
    before = (job.tasks.copy(), snapshot.nodes.idle.copy(), snapshot.tasks.status.copy())
    view.assume("default", "j-0", "n0")
    view.apply("DELETED", pod("j-1", group="j"))
    view.apply("DELETED", node("n0"))
    assert job.tasks == before[0]
    assert np.array_equal(snapshot.nodes.idle, before[1])
    assert np.array_equal(snapshot.tasks.status, before[2])


def test_a_bind_in_flight_survives_updates_that_do_not_know_of_it() -> None:
    view = View()
    for obj in (queue("q"), node("n0"), *gang("j", queue="q", pods=1)):
        view.apply("ADDED", obj)
    assert view.assume("default", "j-0", "n0")
    view.apply("MODIFIED", pod("j-0", group="j", labels={"touched": "yes"}))
    task = view.tasks.by_key["default/j-0"]
    assert view.tasks.status[task.row] == TaskStatus.BINDING
    view.apply("MODIFIED", pod("j-0", group="j", node="n0", phase="Pending"))
    assert view.tasks.status[view.tasks.by_key["default/j-0"].row] == TaskStatus.BOUND
    view.forget("default", "j-0")
    assert view.tasks.status[view.tasks.by_key["default/j-0"].row] == TaskStatus.BOUND


def test_a_pod_cannot_be_assumed_twice() -> None:
    view = View()
    for obj in (node("n0"), pod("p", group="j")):
        view.apply("ADDED", obj)
    assert view.assume("default", "p", "n0")
    assert not view.assume("default", "p", "n0")


def test_what_is_on_its_way_for_one_pod_is_not_for_its_namesake() -> None:
    view = View()
    for obj in (node("n0"), pod("p", group="j")):
        view.apply("ADDED", obj)
    assert not view.assume("default", "p", "n0", None, "another uid")
    assert view.assume("default", "p", "n0", None, view.tasks.by_key["default/p"].uid)
    view.apply("MODIFIED", pod("p", group="j", node="n0", phase="Running"))
    row = view.tasks.by_key["default/p"].row
    view.evicting("default", "p", "another uid")
    assert view.tasks.status[row] == TaskStatus.RUNNING
    uid = view.tasks.by_key["default/p"].uid
    view.evicting("default", "p", uid)
    assert view.tasks.status[row] == TaskStatus.RELEASING
    assert not view.unevict("default", "p", "another uid")
    assert not view.forget("default", "p", uid)
    assert view.unevict("default", "p", uid)
    assert view.tasks.status[row] == TaskStatus.RUNNING


def test_a_bind_to_a_node_that_has_gone_is_on_its_way_all_the_same() -> None:
    """Until its outcome is there nobody may decide about the pod again; the node may come back meanwhile."""
    view = View()
    view.apply("ADDED", pod("p", group="j"))
    assert view.assume("default", "p", "n0")
    row = view.tasks.by_key["default/p"].row
    assert view.tasks.status[row] == TaskStatus.BINDING
    view.apply("ADDED", node("n0"))
    assert view.snapshot().nodes.used[0].tolist() == [1000.0]
    assert view.check() == []
    view.forget("default", "p")
    assert view.tasks.status[row] == TaskStatus.PENDING
    assert view.snapshot().nodes.used[0].tolist() == [0.0]


def test_node_rows_are_in_name_order_and_remember_who_came_first() -> None:
    view = View()
    for name in ("c", "a", "b"):
        view.apply("ADDED", node(name))
    view.apply("ADDED", pod("p", node="c"))
    nodes_seen = view.snapshot().nodes
    assert nodes_seen.names == ["a", "b", "c"]
    assert [nodes_seen.names[row] for row in nodes_seen.arrival.tolist()] == ["c", "a", "b"]
    assert nodes_seen.used[0].tolist() == [0.0, 0.0, 1000.0]


def test_node_rows_are_in_name_order_when_nodes_have_gone() -> None:
    view = View()
    for name in ("a", "b", "c", "d"):
        view.apply("ADDED", node(name))
    view.apply("ADDED", pod("p", node="d"))
    view.apply("DELETED", node("a"))
    nodes_seen = view.snapshot().nodes
    assert nodes_seen.names == ["b", "c", "d"]
    assert nodes_seen.used[0].tolist() == [0.0, 0.0, 1000.0]


def test_a_malformed_quantity_changes_nothing() -> None:
    view = View()
    view.apply("ADDED", pod("p", group="j", cpu="1"))
    version = view.version
    with pytest.raises(QuantityError):
        view.apply("MODIFIED", pod("p", group="j", cpu="one"))
    assert view.version == version
    assert view.tasks.by_key["default/p"].template.request.milli_cpu == 1000.0
    assert view.check() == []


def test_a_promise_lasts_as_long_as_its_bind_is_in_flight() -> None:
    needs = BindContext(volumes=(("pv", "default/claim"),))
    view = View()
    for obj in (queue("q"), node("n0"), *gang("j", queue="q", pods=3)):
        view.apply("ADDED", obj)
    for number in range(3):
        assert view.assume("default", f"j-{number}", "n0", needs)
    before = view.snapshot()
    view.forget("default", "j-0")
    view.apply("MODIFIED", pod("j-1", group="j", node="n0", phase="Pending"))
    view.apply("DELETED", pod("j-2", group="j"))
    assert before.promised == {f"default/j-{number}": ("n0", needs) for number in range(3)}  # a snapshot stays
    assert view.snapshot().promised == {}


@pytest.mark.parametrize("trigger", [TaskTrigger.ASSUME, TaskTrigger.EVICT])
@pytest.mark.parametrize("leaving", [False, True])
@pytest.mark.parametrize("phase", ["Pending", "Running", "Succeeded", "Failed", "Odd"])
def test_what_is_on_its_way_is_a_step_of_the_table(phase: str, leaving: bool, trigger: TaskTrigger) -> None:
    placed = phase != "Pending" or trigger is TaskTrigger.EVICT
    said = pod("p", node="n0" if placed else None, phase=phase)
    if leaving:
        said["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    view = View()
    for obj in (node("n0"), said):
        view.apply("ADDED", obj)
    task = view.tasks.by_key["default/p"]
    if trigger is TaskTrigger.ASSUME:
        view.assume("default", "p", "n0")
    else:
        view.evicting("default", "p")
    after = TASK_LIFE.step(task.status, trigger)
    assert view.in_flight("default", "p") is (after is not None)
    assert view.tasks.status[task.row] == (task.status if after is None else after)
    assert view.check() == []
