"""One node at a time: the adapters' answers, and what a node looks like through them."""

from typing import Any

import numpy as np

from pumice.core.objects.pod import Task
from pumice.core.session.points.all_points import NodePoints
from pumice.core.session.points.nodes import Volatility
from pumice.core.session.points.per_node import NodeLook, PerNodeFilter, PerNodeScorer
from pumice.core.session.points.point import Listed
from pumice.core.session.reasons import Code, Reason
from tests.core.kube.sessions import opened, put, scores, task_named, texts
from tests.core.session.points.test_listed import config
from tests.kit import node, pod

OBJECTS: list[dict[str, Any]] = [
    node("n0", cpu="4", gpus=2, labels={"zone": "a"}, annotations={"note": "x"}),
    node("n1", cpu="8"),
    node("n2"),
    pod("r", node="n1", cpu="3", memory="1Gi"),
    pod("p", labels={"app": "db"}),
]


def test_a_filter_answers_by_text_reason_or_nothing() -> None:
    unresolvable = Reason("mine", Code.UNRESOLVABLE, "never")

    def judge(task: Task, look: NodeLook) -> str | Reason | None:
        assert task.labels == {"app": "db"}
        return {"n0": None, "n1": "full", "n2": unresolvable}[look.name]

    session = opened(*OBJECTS)
    check = PerNodeFilter("mine", judge).prepare(session, task_named(session, "default/p"))
    assert texts(session, check) == ["", "full", "never"]
    assert check is not None
    assert session.reasons.reasons(check.one(1)) == (Reason("mine", Code.UNSCHEDULABLE, "full"),)
    assert session.reasons.reasons(check.one(2)) == (unresolvable,)


def test_a_scorer_is_weighted() -> None:
    session = opened(*OBJECTS)
    scorer = PerNodeScorer("mine", lambda _, look: look.idle("cpu") / 1000, weight=2.5)
    score = scorer.prepare(session, task_named(session, "default/p"))
    assert scores(session, score, [0, 1, 2]) == [10.0, 12.5, 20.0]


def test_a_plain_function_is_lifted_by_its_point() -> None:
    session = opened(*OBJECTS)
    task, points = (
        task_named(session, "default/p"),
        NodePoints(Listed(config({"mine": {"Predicate": True, "NodeOrder": True}}))),
    )
    points.predicate.add("mine", lambda _, look: None if look.idle("cpu") > 5000 else "small")
    points.batch_node_order.add("mine", lambda _, look: look.idle("cpu") / 1000)
    ((refuse,),), ((rate,),) = points.predicate.rules, points.batch_node_order.rules
    assert texts(session, refuse.prepare(session, task)) == ["small", "small", ""]
    assert scores(session, rate.prepare(session, task), [0, 1, 2]) == [4.0, 5.0, 8.0]
    put(session, task_named(session, "default/r"), 2)
    assert texts(session, refuse.prepare(session, task)) == ["small"] * 3
    reads = refuse.reads.kind, rate.reads.kind
    assert [kind is not None and kind(task) for kind in reads] == [task.uid] * 2


def test_a_node_looks_as_the_session_sees_it_now() -> None:
    session = opened(*OBJECTS)
    first, second = NodeLook(session, 0), NodeLook(session, 1)
    assert (first.name, first.labels["zone"], first.annotations) == ("n0", "a", {"note": "x"})
    assert (first.allocatable("nvidia.com/gpu"), second.allocatable("nvidia.com/gpu")) == (2000.0, 0.0)
    assert (second.allocatable("cpu"), second.used("cpu"), second.idle("cpu")) == (8000.0, 3000.0, 5000.0)
    assert second.idle("example.com/unheard-of") == 0.0
    put(session, task_named(session, "default/p"), 1)
    assert second.idle("cpu") == 4000.0
    assert [task.name for task in second.tasks] == ["p", "r"]


def anywhere(*_: object) -> None:
    """Every node will do."""


def test_unless_told_otherwise_nothing_is_shared() -> None:
    session = opened(*OBJECTS)
    p, r = (task_named(session, f"default/{name}") for name in "pr")
    careful = PerNodeFilter("mine", anywhere)
    assert careful.volatility is Volatility.GLOBAL
    assert careful.reads.kind is not None
    assert careful.reads.kind(p) != careful.reads.kind(r)
    free = PerNodeFilter("mine", anywhere, volatility=Volatility.STATIC, kind=lambda _: None)
    assert free.reads.kind is not None
    assert free.reads.kind(p) == free.reads.kind(r)
    check = free.prepare(session, p)
    assert check is not None
    assert check.volatility is Volatility.STATIC


def test_rows_may_be_numbers_or_a_slice() -> None:
    session = opened(*OBJECTS)
    score = PerNodeScorer("mine", lambda _, look: float(look.row)).prepare(session, task_named(session, "default/p"))
    assert score is not None
    assert score.many(slice(None)).tolist() == [0.0, 1.0, 2.0]
    assert score.many(np.array([2, 0], dtype=np.intp)).tolist() == [2.0, 0.0]
