"""What snapshots have of the view's columns, and what they share with each other."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.core.state.view import View
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.priority_classes import priority_class
from tests.kit.queues import queue

NAMED = {f"example.com/{number}": "1" for number in range(9)}


def test_snapshots_share_their_listing_of_nodes_until_one_comes_or_goes() -> None:
    view = View()
    for name in ("c", "a", "b"):
        view.apply("ADDED", node(name))
    first = view.snapshot()
    view.apply("MODIFIED", node("b", cpu="4"))
    assert view.snapshot().nodes.names is first.nodes.names
    view.apply("DELETED", node("b"))
    assert view.snapshot().nodes.names == ["a", "c"]


@pytest.mark.parametrize(
    "first",
    [
        queue("q", capability=NAMED),
        node("x", extra=NAMED),
        pod("x", extra=NAMED),
        pod_group("g", min_resources=NAMED),
    ],
    ids=lambda first: first["kind"],
)
def test_every_resource_has_its_row_whoever_is_the_first_to_name_it(first: dict[str, Any]) -> None:
    view = View()
    view.apply("ADDED", node("n"))
    view.apply("ADDED", first)
    found = view.snapshot()
    heights = {len(column) for column in (found.nodes.idle, found.jobs.minimum, found.jobs.pending)}
    assert heights == {len(found.dimensions)}
    assert set(NAMED) < set(found.dimensions.names)


def test_columns_have_room_for_however_many_jobs_there_are() -> None:
    view = View()
    view.apply("ADDED", queue("q"))
    for number in range(40):
        for obj in gang(f"j{number:02}", queue="q", pods=1 + number % 3, priority_class="high"):
            view.apply("ADDED", obj)
    view.apply("ADDED", priority_class("high", 7))
    assert view.check() == []
    jobs = view.snapshot().jobs
    assert [job.key for job in jobs.named(jobs.order)] == [f"default/j{number:02}" for number in range(40)]
    assert jobs.min_member[jobs.order].tolist() == [1 + number % 3 for number in range(40)]
    assert jobs.counts[:, jobs.order].sum(axis=0).tolist() == [1 + number % 3 for number in range(40)]
    assert set(jobs.priority[jobs.order].tolist()) == {7}
