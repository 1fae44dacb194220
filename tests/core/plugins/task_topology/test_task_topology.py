"""task-topology against the obvious one: buckets, order of tasks and scores, while tasks are placed."""

from itertools import product
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.life.task import TaskStatus
from pumice.core.objects.metadata import Object
from pumice.core.plugins.task_topology import AFFINITY, ANTI_AFFINITY, TASK_ORDER, TaskTopology
from pumice.core.session.session import Session
from tests.core.kube.sessions import scores
from tests.core.plugins.task_topology.plain_topology import PlainJob
from tests.core.plugins.world import configuration, job_of, open_world, task_of
from tests.kit import gang, node, pod, pod_group, queue

ROLES = ["ps", "worker", "chief", "plain"]
GROUPS = st.lists(st.lists(st.sampled_from(ROLES[:3]), unique=True, min_size=1, max_size=3), min_size=1, max_size=3)
SIZES = st.sampled_from([("500m", "1Gi", 0), ("1", "1Gi", 0), ("2", "3Gi", 1), ("3", "512Mi", 0)])
NODE_SIZES = st.sampled_from([("1", "2Gi", 0), ("4", "8Gi", 2), ("6", "4Gi", 0), ("0", "8Gi", 1)])


def annotations_of(affinity: list[list[str]], anti: list[list[str]], order: list[str]) -> dict[str, str]:
    texts = {AFFINITY: ";".join(map(",".join, affinity)), ANTI_AFFINITY: ";".join(map(",".join, anti))}
    return {key: text for key, text in (*texts.items(), (TASK_ORDER, ",".join(order))) if text}


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Object], list[list[str]], list[list[str]], list[str]]:
    """Nodes, a job with a role or two of each size, some of it running, and what the job wants."""
    affinity, anti = draw(st.one_of(st.just([]), GROUPS)), draw(st.one_of(st.just([]), GROUPS))
    order = draw(st.lists(st.sampled_from(ROLES[:3]), unique=True, max_size=3))
    nodes = [draw(st.builds(sized_node, st.just(f"n{i}"), NODE_SIZES)) for i in range(draw(st.integers(1, 3)))]
    group = pod_group("j", min_member=1, annotations=annotations_of(affinity, anti, order))
    pods: list[Object] = []
    uids = iter(draw(st.permutations([f"u{i}" for i in range(30)])))
    for role in ROLES:
        for i in range(draw(st.integers(1, 3))):
            where = draw(st.sampled_from([None, None, "n0", "n9"]))
            size = draw(SIZES)
            pods.append(sized_pod(f"{role}-{i}", role, where, size, next(uids)))
    pods.append(sized_pod("last", "plain", None, ("1", "1Gi", 0), next(uids)))
    return [*nodes, queue("default"), group, *pods], affinity, anti, order


def sized_node(name: str, size: tuple[str, str, int]) -> Object:
    return node(name, cpu=size[0], memory=size[1], gpus=size[2])


def sized_pod(name: str, role: str, where: str | None, size: tuple[str, str, int], uid: str) -> Object:
    cpu, memory, gpus = size
    return pod(name, group="j", task=role, cpu=cpu, memory=memory, gpus=gpus, node=where, uid=uid)


def opened(objects: list[Object], weight: int = 1) -> tuple[Session, TaskTopology]:
    option = {"name": "task-topology", "arguments": {"task-topology.weight": weight}}
    session = open_world(configuration([option]), objects)
    plugin = session.plugins["task-topology"]
    assert isinstance(plugin, TaskTopology)
    return session, plugin


@given(world=worlds(), weight=st.integers(-1, 7), data=st.data())
def test_task_topology_is_the_slow_one(
    world: tuple[list[Object], list[list[str]], list[list[str]], list[str]], weight: int, data: st.DataObject
) -> None:
    objects, affinity, anti, order = world
    session, plugin = opened(objects, weight)
    if not (affinity or anti or order):
        assert not plugin.jobs
        return
    job = job_of(session, "j")
    tasks = job.in_uid_order()
    plain = PlainJob(affinity, anti, order, [(task, task.node_name) for task in tasks])
    waiting = [task for task in tasks if not task.node_name]
    for _ in range(3):
        compare(session, plugin, plain)
        if not waiting:
            return
        task = waiting.pop(data.draw(st.integers(0, len(waiting) - 1)))
        row = data.draw(st.integers(0, session.nodes.count - 1))
        session.place(task, row, TaskStatus.ALLOCATED)
        plain.place(task, session.nodes.names[row])
        if data.draw(st.booleans()):
            session.unplace(task)  # nothing is taken back
            waiting.append(task)
    compare(session, plugin, plain)


def compare(session: Session, plugin: TaskTopology, plain: PlainJob) -> None:
    mine, tasks = plugin.jobs["default/j"], job_of(session, "j").in_uid_order()
    assert [set(bucket.tasks) for bucket in mine.buckets] == [set(bucket.tasks) for bucket in plain.buckets]
    assert [bucket.on_node for bucket in mine.buckets] == [bucket.nodes for bucket in plain.buckets]
    task_order, [[scorer]] = session.points.task_order, cast("Any", session.points.node_order.rules)
    for left, right in product(tasks, tasks):
        said, expected = task_order(left, right), plain.task_order(left, right)
        assert (said > 0) - (said < 0) == expected
    rows = list(range(session.nodes.count))
    for task in tasks:
        expected_scores = [plain.score(session, task, row, scorer._weight) for row in rows]
        assert scores(session, scorer.prepare(session, task), rows) == expected_scores


@given(world=worlds())
def test_tasks_of_one_kind_and_template_have_the_same_scores(
    world: tuple[list[Object], list[list[str]], list[list[str]], list[str]],
) -> None:
    session, plugin = opened(world[0])
    if not plugin.jobs:
        return
    [[scorer]], rows = cast("Any", session.points.node_order.rules), list(range(session.nodes.count))
    seen: dict[Any, list[float]] = {}
    for task in job_of(session, "j").in_uid_order():
        if not task.node_name:
            found = scores(session, scorer.prepare(session, task), rows)
            assert seen.setdefault((scorer.kind(task), task.template.number), found) == found


@pytest.mark.parametrize(
    ("annotations", "dealt"),
    [
        ({AFFINITY: "ps,worker"}, True),
        ({TASK_ORDER: "ps"}, True),
        ({AFFINITY: "ps,ps"}, False),
        ({AFFINITY: "ps,nobody"}, False),
        ({AFFINITY: "ps,worker", TASK_ORDER: "nobody"}, False),
        ({AFFINITY: "ps,,worker,"}, True),
        ({ANTI_AFFINITY: ""}, True),
        ({}, False),
    ],
)
def test_which_annotations_count(annotations: dict[str, str], dealt: bool) -> None:
    group = pod_group("j", annotations=annotations)
    pods = [pod(f"j-{i}", group="j", task=role) for i, role in enumerate(["ps", "worker"])]
    session, plugin = opened([node("n0"), queue("default"), group, *pods])
    assert bool(plugin.jobs) is dealt
    assert bool(session.points.task_order.rules) is dealt


@pytest.mark.parametrize(("gpus", "joined"), [(0, "ps-0"), (2, "ps-1")])
def test_of_buckets_liked_the_same_the_one_with_least_to_place_gets_the_next(gpus: int, joined: str) -> None:
    """A thousandth of a GPU weighs as much as one of a core."""
    group = pod_group("j", annotations=annotations_of([["ps", "worker"]], [["ps"]], []))
    sizes = {"ps-0": ("1", "1Gi", gpus), "ps-1": ("2", "1Gi", 0), "worker-0": ("1", "1Gi", 0)}
    pods = [sized_pod(name, name.partition("-")[0], None, size, name) for name, size in sizes.items()]
    _, plugin = opened([node("n0"), queue("default"), group, *pods])
    assert {joined, "worker-0"} in [set(bucket.tasks) for bucket in plugin.jobs["default/j"].buckets]


def test_a_job_with_nothing_to_place_is_left_alone() -> None:
    group = pod_group("j", annotations={AFFINITY: "worker"})
    _, plugin = opened([node("n0"), queue("default"), group, pod("j-0", group="j", node="n0")])
    assert not plugin.jobs


def test_jobs_are_not_compared() -> None:
    groups = [pod_group(name, annotations={AFFINITY: "worker"}) for name in "jk"]
    pods = [pod("j-0", group="j"), pod("k-0", group="k"), pod("k-1", group="k", task="free"), *gang("plain", pods=1)]
    session, _ = opened([node("n0"), queue("default"), *groups, *pods])
    order = session.points.task_order
    bucketed, other, outside, plain = (task_of(session, name) for name in ("j-0", "k-0", "k-1", "plain-0"))
    assert order(bucketed, other) == 0
    assert order(bucketed, outside) < 0 < order(outside, bucketed)
    assert order(bucketed, plain) == order(plain, bucketed) == 0
