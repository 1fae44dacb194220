"""Plugins that raise, answer nonsense or refuse: they are named, and the cycle goes on."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pumice.core.plugins.failures import CARRIED
from pumice.core.plugins.overcommit import Overcommit
from pumice.core.plugins.user import GuardedPoint
from pumice.core.session.carry import Carry
from pumice.core.session.points.nodes import Reads, Volatility
from pumice.core.session.points.orders import JobColumn, TaskKey
from pumice.core.session.points.per_node import NodeLook, PerNodeFilter, PerNodeScorer
from pumice.core.session.points.victims import Mask

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session

Register = Callable[["Session"], None]
ALL = slice(None)


class Registering:
    """A plugin that registers what a test wants."""

    name = "mine"

    def __init__(self, register: Register) -> None:
        self._register = register

    def on_session_open(self, session: Session) -> None:
        self._register(session)

    def on_session_close(self, session: Session) -> None:
        pass


def always(answer: Any) -> Callable[..., Any]:
    def say(*_: Any) -> Any:
        return answer

    return say


def boom(*_: Any, **__: Any) -> Any:
    raise ValueError("boom")


def registering(register: Register) -> Callable[[dict[str, Any]], Registering]:
    return lambda _: Registering(register)


def nonsense(session: Any) -> None:
    session.points.nonsense.add("mine", boom)


BREAKS: dict[str, Any] = {
    "builder": boom,
    "on_session_open": registering(boom),
    "a point that is none": registering(nonsense),
    "filter prepare": registering(lambda session: session.points.predicate.add("mine", [broken("prepare")])),
    "filter reject": registering(lambda session: session.points.predicate.add("mine", [broken("reject")])),
    "kind": registering(lambda session: session.points.predicate.add("mine", [broken("kind")])),
    "plain": registering(lambda session: session.points.predicate.add("mine", boom)),
    "plain score": registering(lambda session: session.points.node_order.add("mine", boom)),
    "per node": registering(lambda session: session.points.predicate.add("mine", [PerNodeFilter("mine", boom)])),
    "JobOrder": registering(lambda session: session.points.job_order.add("mine", boom)),
    "TaskOrder": registering(lambda session: session.points.task_order.add("mine", boom)),
    "scorer prepare": registering(lambda session: session.points.node_order.add("mine", [broken("prepare")])),
    "scorer score": registering(lambda session: session.points.batch_node_order.add("mine", [broken("score")])),
    "per node score": registering(lambda session: session.points.node_order.add("mine", [PerNodeScorer("mine", boom)])),
    "Allocatable": registering(lambda session: session.points.allocatable.add("mine", boom)),
    "JobEnqueueable": registering(lambda session: session.points.job_enqueueable.add("mine", boom)),
    "JobReady": registering(lambda session: session.points.job_ready.add("mine", boom)),
    "JobValid": registering(lambda session: session.points.job_valid.add("mine", boom)),
    "Overused": registering(lambda session: session.points.overused.add("mine", boom)),
    "PrePredicate": registering(lambda session: session.points.pre_predicate.add("mine", boom)),
    "handler": registering(lambda session: session.points.handle(boom, boom)),
}
HARMLESS = {"kind", "JobOrder", "TaskOrder", "handler", *[name for name in BREAKS if "score" in name]}


def last_first(left: Task, right: Task) -> int:
    return (left.name < right.name) - (left.name > right.name)


def broken(where: str) -> Any:
    """A filter and scorer that raises in one place and else says nothing."""
    answers = {
        "volatility": Volatility.STATIC, "normalised": False, "constant": None,
        "reject": always(np.zeros(2, np.int32)), "reject_one": always(0),
        "score": always(np.zeros(2)), "score_one": always(0.0), "finish": always(np.zeros(2)),
    }  # fmt: skip
    inner = SimpleNamespace(**{**answers, where: boom, f"{where}_one": boom})
    outer = {"name": "mine", "reads": Reads(kind=boom if where == "kind" else always(0)), "prepare": always(inner)}
    return SimpleNamespace(**{**outer, where: boom})


@pytest.mark.parametrize("where", BREAKS)
def test_ignored_it_is_as_if_it_had_not_been_asked(where: str, use: Any, told: list[str]) -> None:
    result = use(BREAKS[where])
    assert len(result.binds) == 4
    assert told
    assert all(sentence.startswith("plugin mine failed in ") for sentence in told)


@pytest.mark.parametrize("where", BREAKS)
def test_failing_what_it_was_asked_about_is_refused(where: str, use: Any, told: list[str]) -> None:
    result = use(BREAKS[where], onError="fail")
    assert len(result.binds) == (4 if where in HARMLESS else 0)
    assert told


@pytest.mark.parametrize("where", ["builder", "filter prepare", "filter reject", "plain", "per node", "PrePredicate"])
def test_who_waits_is_told_which_plugin_failed(where: str, use: Any) -> None:
    result = use(BREAKS[where], onError="fail")
    messages = [condition.message for condition in result.pod_conditions]
    assert messages
    assert all("2 plugin mine failed in" in message and "ValueError: boom" in message for message in messages)


@pytest.mark.parametrize("answer", [5, False, True, ["no"]])
def test_a_verdict_that_is_none_is_a_failure_of_the_plugin(use: Any, told: list[str], answer: Any) -> None:
    register = registering(lambda session: session.points.predicate.add("mine", always(answer)))
    assert len(use(register).binds) == 4
    assert told
    assert all(sentence.startswith("plugin mine failed in ") for sentence in told)
    assert all(f"expected a text, a Reason or None, was {answer!r}" in sentence for sentence in told)


def test_an_objection_to_a_placement_is_told_under_the_plugins_name(use: Any) -> None:
    heard: list[str] = []

    def close(session: Session) -> None:
        heard.append(session.objection)

    opening = registering(lambda session: session.points.handle(always("no licence")))({}).on_session_open
    objecting = SimpleNamespace(name="mine", on_session_open=opening, on_session_close=close)
    assert not use(always(objecting)).binds
    assert heard == ["mine: no licence"]


def test_failures_are_counted_in_the_carry(use: Any) -> None:
    carry = Carry(plugins={CARRIED: {"mine": {"failures": 5, "last": "before"}}})
    kept = use(BREAKS["builder"], carry).carry["plugins"][CARRIED]["mine"]
    assert kept == {"failures": 6, "last": "plugin mine failed in on_session_open: ValueError: boom"}
    assert CARRIED not in use(registering(always(None))).carry["plugins"]


def test_each_sentence_is_told_once_a_session(use: Any, told: list[str]) -> None:
    use(BREAKS["per node"])
    assert len(told) == len(set(told))


def test_a_plugin_that_does_not_open_registers_nothing(use: Any) -> None:
    def half(session: Session) -> None:
        session.points.predicate.add("mine", [PerNodeFilter("mine", always("no"))])
        raise ValueError("boom")

    assert len(use(registering(half)).binds) == 4


def test_an_unknown_way_to_answer_errors_is_told(use: Any, told: list[str]) -> None:
    assert len(use(registering(always(None)), onError="explode").binds) == 4
    assert told == ["plugin mine failed in its arguments: ValueError: onError: expected ignore or fail, was 'explode'"]


def test_one_node_that_fails_does_not_decide_for_the_others(use: Any) -> None:
    def judge(_: Task, look: NodeLook) -> str | None:
        if look.name == "n0":
            raise KeyError(look.name)
        return None

    result = use(registering(lambda s: s.points.predicate.add("mine", [PerNodeFilter("mine", judge)])), onError="fail")
    assert {bind.node for bind in result.binds} == {"n1"}


def test_what_works_is_asked(use: Any, told: list[str]) -> None:
    def register(session: Session) -> None:
        session.points.predicate.add(
            "mine", [PerNodeFilter("mine", lambda _, look: "no" if look.name == "n0" else None)]
        )
        session.points.task_order.add("mine", last_first)

    result = use(registering(register))
    assert [bind.name for bind in result.binds] == ["j-2", "j-1", "j-0", "k-0"]
    assert {bind.node for bind in result.binds} == {"n1"}
    assert told == []


def test_rules_by_columns_are_lifted_to_what_may_change_at_any_moment(use: Any, told: list[str]) -> None:
    def register(session: Session) -> None:
        session.points.job_order.add("mine", JobColumn(lambda: -np.arange(len(session.jobs.readiness))))
        session.points.task_order.add("mine", TaskKey(lambda task: -int(task.name[-1])))
        session.points.preemptable.add("mine", Mask(lambda _, batch: batch.rows > 0))

    result = use(registering(register))
    assert [bind.name for bind in result.binds if bind.name.startswith("j")] == ["j-2", "j-1", "j-0"]
    assert told == []


def test_a_filter_that_does_not_say_what_it_reads_is_told_so(use: Any, told: list[str]) -> None:
    inner: Any = SimpleNamespace(name="mine", prepare=always(None))
    assert len(use(registering(lambda session: session.points.predicate.add("mine", [inner]))).binds) == 4
    (sentence,) = told
    assert "mine has no `reads`: expected a Reads" in sentence


def test_what_is_no_bind_context_is_not_carried(use: Any, told: list[str]) -> None:
    result = use(registering(lambda session: session.points.bind_context.add("mine", always({"a": "b"}))))
    assert [bind.pre_bind for bind in result.binds] == [None] * 4
    assert told == ["plugin mine failed in BindContext: WrongAnswerError: expected a BindContext or None, was dict"]


def test_closing_badly_is_only_noted(use: Any, told: list[str]) -> None:
    plugin = SimpleNamespace(name="mine", on_session_open=always(None), on_session_close=boom)
    assert len(use(always(plugin)).binds) == 4
    assert told == ["plugin mine failed in on_session_close: ValueError: boom"]


def test_a_plugin_that_builds_on_a_built_in_one_is_guarded(use: Callable[..., Any], told: list[str]) -> None:
    """What it inherits is registered in columns, under the name of the plugin that it builds on."""

    class Mine(Overcommit):
        def on_session_open(self, session: Session) -> None:
            super().on_session_open(session)
            session.points.job_enqueueable.add_in_columns(self.name, boom, boom)  # type: ignore[arg-type]

    use(Mine)
    assert any("plugin mine failed in JobEnqueueable: ValueError: boom" in each for each in told), told


def test_a_point_has_no_other_way_to_add() -> None:
    point = GuardedPoint(SimpleNamespace(name="JobOrder", add_raw=boom), SimpleNamespace())  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="must be guarded"):
        point.add_raw("mine", boom)
