"""A view with an error planted in its books: the check finds it, in words that name who is concerned; looking only at
what was touched it finds as much, and no later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

from pumice.core.life.task import TaskStatus
from pumice.core.state.jobs import JobTable
from pumice.core.state.nodes import NodeTable
from pumice.core.state.tables import NodeTasks
from pumice.core.state.view import View
from tests.core.state.test_view import STEPS, run
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.kit.pods import pod
from tests.kit.queues import queue


def whole_view() -> View:
    view = View()
    for obj in (queue("q"), node("n0"), node("n1"), *gang("j", queue="q", pods=2), pod("p", group="j", node="n0")):
        view.apply("ADDED", obj)
    assert view.assume("default", "j-0", "n1")
    view.evicting("default", "p")
    return view


def row_of(view: View, name: str) -> int:
    return view.tasks.by_key[f"default/{name}"].row


def another_status(view: View) -> None:
    view.tasks.status[row_of(view, "j-1")] = TaskStatus.FAILED


def a_status_that_nobody_releases(view: View) -> None:
    view.tasks.status[row_of(view, "p")] = TaskStatus.RUNNING


def a_count_too_many(view: View) -> None:
    view.jobs.counts[TaskStatus.BOUND, view.jobs.by_key["default/j"].row] += 1


def another_job(view: View) -> None:
    view.tasks.job[row_of(view, "j-1")] += 1


def a_little_less_idle(view: View) -> None:
    view.nodes.idle[0, view.nodes.row["n1"]] -= 0.1


def more_used(view: View) -> None:
    view.nodes.used[1, view.nodes.row["n1"]] += 1.0


def less_released(view: View) -> None:
    view.nodes.releasing[1, view.nodes.row["n0"]] -= 1.0


def another_node(view: View) -> None:
    view.tasks.node[row_of(view, "j-0")] = view.nodes.row["n0"]


def a_node_for_who_has_none(view: View) -> None:
    view.tasks.node[row_of(view, "j-1")] = view.nodes.row["n1"]


def lost_from_its_node(view: View) -> None:
    del view.node_tasks["n0"]["default/p"]


def on_its_node_under_another_name(view: View) -> None:
    residents = view.node_tasks["n0"]
    residents["default/x"] = residents.pop("default/p")


PLANTED: list[tuple[Callable[[View], None], str]] = [
    (another_status, "job default/j: 1 tasks are Failed, the column says 0"),
    (a_status_that_nobody_releases, "node n0: releasing is"),
    (a_count_too_many, "job default/j: 0 tasks are Bound, the column says 1"),
    (another_job, "task default/j-1 does not know its job default/j"),
    (a_little_less_idle, "node n1: idle is [6999.9"),
    (more_used, "node n1: used is"),
    (less_released, "node n0: releasing is"),
    (another_node, "task default/j-0 is counted on n1 but its column says n0"),
    (a_node_for_who_has_none, "task default/j-1 is counted on  but its column says n1"),
    (lost_from_its_node, "task default/p is not among the tasks of its node n0"),
    (on_its_node_under_another_name, "task default/p is not among the tasks of its node n0"),
]


@pytest.mark.parametrize(("plant", "words"), PLANTED, ids=[plant.__name__ for plant, _ in PLANTED])
def test_an_error_is_found(plant: Callable[[View], None], words: str) -> None:
    view = whole_view()
    assert view.check() == []
    plant(view)
    found = view.check()
    assert any(words in each for each in found), found


def test_what_is_below_the_tolerance_is_no_error() -> None:
    view = whole_view()
    view.nodes.idle[0, view.nodes.row["n1"]] -= 0.05
    assert view.check() == []


@pytest.mark.parametrize(("plant", "words"), PLANTED, ids=[plant.__name__ for plant, _ in PLANTED])
def test_among_what_was_touched_an_error_is_found_too(plant: Callable[[View], None], words: str) -> None:
    view = whole_view()
    view.snapshot()
    view.unevict("default", "p")
    view.evicting("default", "p")
    for name in ("j-0", "j-1"):
        view.assume("default", name, "n1")
        view.forget("default", name)
    view.assume("default", "j-0", "n1")
    assert view.check_touched() == []
    plant(view)
    found = view.check_touched()
    assert any(words in each for each in found), found


def test_what_nobody_touched_is_left_to_the_whole_check() -> None:
    view = whole_view()
    view.snapshot()
    more_used(view)
    assert view.check() != []
    assert view.check_touched() == []
    view.forget("default", "j-0")
    assert any("node n1: used is" in each for each in view.check_touched())


def test_when_nodes_change_everything_is_looked_at() -> None:
    view = whole_view()
    view.snapshot()
    a_count_too_many(view)
    assert view.check_touched() == []
    view.apply("ADDED", node("a"))
    assert view.check_touched() == view.check() != []
    view.snapshot()  # brings the rows into the order of names
    assert view.check_touched() == view.check() != []


def _nothing(*_: Any) -> None:
    """What a forgotten call does."""


DEFECTS: list[tuple[type, str]] = [
    (JobTable, "move"), (JobTable, "count"), (NodeTable, "place"), (NodeTable, "restate"), (NodeTasks, "leave"),
]  # fmt: skip


@pytest.mark.parametrize(("owner", "name"), DEFECTS, ids=[f"{o.__name__}.{n}" for o, n in DEFECTS])
@given(steps=STEPS)
def test_what_a_forgotten_step_breaks_is_found_immediately(owner: type, name: str, steps: list[Any]) -> None:
    view = View()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, _nothing)
        for step in steps:
            run(view, step)
            broken = view.check()
            assert bool(view.check_touched()) == bool(broken)
            if broken:
                break


@given(STEPS)
def test_whatever_happens_to_a_whole_view_nothing_is_found(steps: list[Any]) -> None:
    view = View()
    for step in steps:
        run(view, step)
        assert view.check_touched() == []
