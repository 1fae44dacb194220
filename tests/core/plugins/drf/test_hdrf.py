"""drf with enableHierarchy: the tree keeps up, saturation, queue order, reclaim."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.objects.metadata import Object
from pumice.core.plugins.drf import Drf, HierarchicalShares
from pumice.core.session.session import Session
from tests.core.plugins.drf.plain_tree import PlainTree
from tests.core.plugins.world import configuration, evictable, open_world, task_of
from tests.kit import gang, node, queue

CONFIG = configuration([{"name": "drf", "enableHierarchy": True}])
QUEUES = {"qa": ("root/eng/dev", "100/50/20"), "qb": ("root/eng/prod", "100/50/80"), "qc": ("root/sci", "100/50")}
SHAPES: tuple[dict[str, Any], ...] = ({"memory": None}, {"cpu": "500m", "memory": "6Gi"}, {"cpu": "2", "memory": "1Gi"})


def hierarchy(name: str, path: str, weights: str) -> Object:
    return queue(name, annotations={"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights})


def world(*jobs: list[Object], cpu: str = "12") -> Session:
    queues = [hierarchy(name, *where) for name, where in QUEUES.items()]
    return open_world(CONFIG, node("n", cpu=cpu, memory="24Gi"), queues, *jobs)


def tree_of(session: Session) -> HierarchicalShares:
    plugin = session.plugins["drf"]
    assert isinstance(plugin, Drf)
    return plugin.tree


@st.composite
def stories(draw: Any) -> tuple[list[list[Object]], list[tuple[str, bool]]]:
    """Jobs in the three queues, and placements and undoings in some order."""
    jobs: list[list[Object]] = []
    steps: list[tuple[str, bool]] = []
    for number, name in enumerate(QUEUES):
        for copy in range(draw(st.integers(1, 2))):
            shape = draw(st.sampled_from(SHAPES))
            jobs.append(gang(f"j{number}{copy}", queue=name, pods=3, **shape))
            steps += [(f"j{number}{copy}-{i}", draw(st.booleans())) for i in range(3)]
    return jobs, draw(st.permutations(steps))


@pytest.mark.parametrize(
    ("text", "fix", "weight"),
    [("0x1p4", [], 16.0), (" 2", [], 1.0), (" 2", ["fractions-as-python-reads-them"], 2.0), ("nothing", [], 1.0)],
)
def test_weight_is_read_as_go_reads_it(text: str, fix: list[str], weight: float) -> None:
    config = configuration([{"name": "drf", "enableHierarchy": True}], fix=fix)
    where = hierarchy("q", "root/a", f"1/{text}")
    tree = tree_of(open_world(config, node("n"), where, gang("j", queue="q", pods=1)))
    [segment] = tree._root.children.values()  # pyright: ignore[reportPrivateUsage]
    assert segment.weight == weight


@given(stories())
def test_the_tree_that_keeps_up_equals_the_one_worked_out_anew(
    story: tuple[list[list[Object]], list[tuple[str, bool]]],
) -> None:
    jobs, steps = story
    session = world(*jobs)
    paths = {name: where[0] for name, where in QUEUES.items()}
    for name, stays in steps:
        statement = session.statement()
        statement.allocate(task_of(session, name), 0)
        if not stays:
            tree_of(session).compare(session.queues["qa"], session.queues["qb"])  # worked out in between
            statement.discard()
        plain = PlainTree(session)
        for left in QUEUES:
            for right in QUEUES:
                found = tree_of(session).compare(session.queues[left], session.queues[right])
                assert found == plain.compare(paths[left], paths[right])


def test_the_branch_further_below_its_weight_goes_first() -> None:
    session = world(
        gang("a", queue="qa", pods=4, nodes=["n"] * 2, memory=None),
        gang("b", queue="qb", pods=4, nodes=["n"] * 2, memory=None),
        gang("c", queue="qc", pods=4, nodes=["n"], memory=None),
    )
    queues = session.queues
    assert session.points.queue_order(queues["qc"], queues["qb"]) < 0  # science has less than engineering
    assert session.points.queue_order(queues["qb"], queues["qa"]) < 0  # equal shares, but prod weighs more


def test_who_has_all_it_asks_for_goes_last() -> None:
    session = world(
        gang("a", queue="qa", pods=1, nodes=["n"], memory=None),
        gang("b", queue="qb", pods=4, nodes=["n"] * 2, memory=None),
    )
    assert session.points.queue_order(session.queues["qb"], session.queues["qa"]) < 0


def test_a_queue_without_jobs_is_not_in_the_tree() -> None:
    session = world(gang("a", queue="qa", pods=1))
    assert tree_of(session).compare(session.queues["qb"], session.queues["qc"]) == 0


def test_weights_that_are_none_count_as_one() -> None:
    session = open_world(
        CONFIG,
        node("n"),
        hierarchy("x", "root/x", "1/oops"),
        hierarchy("y", "root/y", "1"),
        gang("jx", queue="x", pods=2, nodes=["n"]),
        gang("jy", queue="y", pods=2, nodes=["n"]),
    )
    assert tree_of(session).compare(session.queues["x"], session.queues["y"]) == 0


def test_a_deep_hierarchy_is_no_trouble() -> None:
    path = "/".join(["root", *(f"s{i}" for i in range(3000))])
    session = open_world(
        CONFIG, node("n"), hierarchy("deep", path, "1"), queue("flat"), gang("a", queue="deep", pods=2, nodes=["n"])
    )
    assert tree_of(session).compare(session.queues["deep"], session.queues["deep"]) == 0


def test_reclaim_takes_from_the_branch_that_stays_above_and_changes_nothing() -> None:
    session = world(
        gang("a", queue="qa", pods=8, nodes=["n"] * 8, memory=None),
        gang("c", queue="qc", pods=4, nodes=["n"] * 2, memory=None),
    )
    a, c = session.queues["qa"], session.queues["qc"]
    before = tree_of(session).compare(a, c)
    pods = [f"a-{i}" for i in range(3)]
    assert evictable(session, "Reclaimable", task_of(session, "c-3"), *pods) == pods
    assert evictable(session, "Reclaimable", task_of(session, "c-3"), "c-0") == []
    assert tree_of(session).compare(a, c) == before
