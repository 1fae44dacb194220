"""A PodGroup in a queue with children, a missing parent and a missing root stop capacity: which one is said."""

from __future__ import annotations

import pytest

from pumice.core.cycle import close_session, run_action
from pumice.core.plugins.capacity.limits import leaves_below, tree_problem
from tests.core.plugins.world import configuration, open_world
from tests.kit import gang, node, queue

TREE = {"root": "", "team": "root", "a": "team", "b": "team", "other": ""}
IN_TREE = configuration([{"name": "capacity", "enableHierarchy": True}, "gang"], ["predicates"])


@pytest.mark.parametrize(
    ("parents", "jobs", "words"),
    [
        (TREE, [("ns/j", "a"), ("ns/k", "other")], []),
        (TREE, [("ns/j", "team")], ["PodGroup ns/j is in queue team", "a queue below it (a, b)"]),
        (TREE, [("ns/j", "root"), ("ns/k", "team")], ["ns/j is in queue root", "so are ns/k", "(a, b, other)"]),
        ({**TREE, "lost": "gone"}, [], ["queue lost names the parent gone, which does not exist"]),
        ({"default": ""}, [], ["queue root does not exist"]),
    ],
)
def test_what_stops_the_tree_is_named_with_the_remedy(
    parents: dict[str, str], jobs: list[tuple[str, str]], words: list[str]
) -> None:
    said = tree_problem(parents, jobs)
    assert bool(said) is bool(words)
    assert all(word in said for word in words)


def test_leaves_below_a_ring_of_parents_end() -> None:
    assert leaves_below({"root": "", "a": "b", "b": "a"}, "a") == []


@pytest.mark.parametrize("phase", ["Pending", "Inqueue"])
def test_report_names_the_podgroup_that_stops_all(phase: str) -> None:
    bad = gang("bad", queue="team", pods=1, nodes=["n"], phase="Running")
    queues = [queue("root"), queue("team", parent="root"), queue("leaf", parent="team"), queue("q", parent="root")]
    good = gang("good", queue="q", pods=1, phase=phase)
    good[0]["spec"]["minResources"] = {"cpu": "1"}
    session = open_world(IN_TREE, node("n"), queues, bad, good)
    for action in ("enqueue", "allocate"):
        run_action(session, action)
    sentence = "while PodGroup default/bad is in queue team, which has child queues"
    assert sentence in close_session(session).report.obstacles["capacity"]


def test_flat_queues_are_never_in_the_way() -> None:
    bad = gang("bad", queue="team", pods=1, phase="Inqueue")
    config = configuration(["capacity", "gang"], ["predicates"])
    session = open_world(config, node("n"), queue("root"), queue("team"), queue("leaf", parent="team"), bad)
    run_action(session, "allocate")
    assert [bind.name for bind in session.binds] == ["bad-0"]
    assert session.fit.obstacles == {}
