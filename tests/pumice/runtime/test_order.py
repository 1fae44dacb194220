"""References first, queues after their parents, otherwise as given."""

from __future__ import annotations

from pumice.cluster.kernel.intake import in_order, queue_depths
from tests.kit.nodes import node
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.queues import queue


def test_references_come_first_and_the_rest_as_given() -> None:
    given = [pod("b"), pod_group("g"), pod("a"), node("n1"), queue("q"), node("n0")]
    assert [obj["metadata"]["name"] for obj in in_order(given)] == ["q", "n1", "n0", "g", "b", "a"]


def test_queues_come_after_their_parents() -> None:
    given = [queue("leaf", parent="mid"), queue("mid", parent="top"), queue("top", parent="root"), queue("alone")]
    assert [obj["metadata"]["name"] for obj in in_order(given)] == ["top", "alone", "mid", "leaf"]


def test_a_circle_of_queues_ends() -> None:
    assert queue_depths([queue("a", parent="b"), queue("b", parent="a"), queue("c", parent="c")]) == {
        "a": 1,
        "b": 1,
        "c": 0,
    }
