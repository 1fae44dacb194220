"""The cache's books against what the api has: whatever differs is found and named."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from pumice.core.life.task import TaskStatus
from pumice.core.objects.parts import WATCHED
from pumice.core.state.view import View
from pumice.proof.storm.invariants.books import compare_view
from tests.actors.cluster import Cluster
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.kit.pods import pod
from tests.kit.queues import queue


def cluster_and_view() -> tuple[Cluster, View]:
    cluster, view = Cluster(), View()
    for obj in (queue("q"), node("n0"), node("n1"), *gang("j", queue="q", pods=2), pod("p", group="j", node="n0")):
        cluster.create(obj)
    for kind in WATCHED:
        for obj in cluster.all(kind):
            view.apply("ADDED", obj)
    return cluster, view


def a_pod_that_nobody_told(cluster: Cluster, view: View) -> None:
    cluster.create(pod("late", group="j"))


def a_pod_that_has_gone(cluster: Cluster, view: View) -> None:
    view.apply("ADDED", pod("gone"))


def a_status_that_nobody_told(cluster: Cluster, view: View) -> None:
    cluster.status("Pod", "p", {"phase": "Running"})


def a_bind_that_came_to_nothing(cluster: Cluster, view: View) -> None:
    assert view.assume("default", "j-0", "n1")


def another_priority(cluster: Cluster, view: View) -> None:
    known = view.tasks.by_key["default/j-1"]
    wrong = replace(known, priority=7)
    view.tasks.by_key[known.key] = view.tasks.handles[known.row] = wrong
    view.jobs.by_key[known.job].put(wrong)


def another_task_in_the_job(cluster: Cluster, view: View) -> None:
    known = view.tasks.by_key["default/j-1"]
    view.jobs.by_key[known.job].put(replace(known))


def a_member_too_many(cluster: Cluster, view: View) -> None:
    known = view.tasks.by_key["default/j-1"]
    view.jobs.by_key[known.job].put(replace(known, uid="x"))
    view.jobs.counts[TaskStatus.PENDING, view.jobs.by_key[known.job].row] += 1


def a_node_that_has_grown(cluster: Cluster, view: View) -> None:
    cluster.status("Node", "n1", {"allocatable": {"cpu": "64"}})


def more_room_than_the_node_has(cluster: Cluster, view: View) -> None:
    row = view.nodes.row["n1"]
    view.nodes.allocatable[0, row] += 1000.0
    view.nodes.idle[0, row] += 1000.0


def a_node_that_nobody_told(cluster: Cluster, view: View) -> None:
    cluster.create(node("n2"))


def a_queue_that_nobody_told(cluster: Cluster, view: View) -> None:
    cluster.create(queue("r"))


PLANTED: list[tuple[Callable[[Cluster, View], None], str]] = [
    (a_pod_that_nobody_told, "task default/late is in the api's books and not in the cache's"),
    (a_pod_that_has_gone, "task default/gone is in the cache's books and not in the api's"),
    (a_status_that_nobody_told, "task default/p has status <TaskStatus.BOUND: 4> in the cache's books"),
    (a_bind_that_came_to_nothing, "task default/j-0 has counted as <TaskStatus.BINDING: 3> in the cache's"),
    (another_priority, "task default/j-1 has priority 7 in the cache's books and "),
    (another_task_in_the_job, "task default/j-1 has member False in the cache's books and True in the api's"),
    (a_member_too_many, "jobs have 4 tasks in the cache's books, but not in the api's"),
    (a_node_that_has_grown, "node n1 has allocatable "),
    (more_room_than_the_node_has, "node n1 has room "),
    (a_node_that_nobody_told, "node n2 is in the api's books and not in the cache's"),
    (a_queue_that_nobody_told, "queue r is in the api's books and not in the cache's"),
]


@pytest.mark.parametrize(("plant", "words"), PLANTED, ids=[plant.__name__ for plant, _ in PLANTED])
def test_what_differs_is_found(plant: Callable[[Cluster, View], None], words: str) -> None:
    cluster, view = cluster_and_view()
    assert compare_view(view, cluster.store) == []
    plant(cluster, view)
    found = compare_view(view, cluster.store)
    assert any(words in each for each in found), found
