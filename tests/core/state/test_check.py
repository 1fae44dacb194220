"""A view with an error planted in its books: the check finds it, in words that name who is concerned."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core.life.task import TaskStatus
from core.state.view import View
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
