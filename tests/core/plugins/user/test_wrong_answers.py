"""What stands for the answers of a user's plugin that fails or answers nonsense, rule by rule."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pumice.core.plugins.failures import PluginFailures
from pumice.core.plugins.user import HANDLER, INSTEAD, GuardedFilter, guard, guarded_check, guarded_rule, guarded_score
from pumice.core.session.points.earlier_forms import rule_of
from pumice.core.session.points.nodes import TEMPLATE_ONLY, Volatility
from pumice.core.session.points.point import FLAGS
from pumice.core.session.points.rules import ColumnRule
from pumice.core.session.points.victims import Mask
from pumice.core.session.points.votes import ValidateResult, Vote
from pumice.core.session.reasons import Code, FitFailure, Reason
from tests.core.plugins.user.test_user_plugins import always, boom
from tests.core.plugins.world import configuration, open_world
from tests.kit import gang, node, queue

if TYPE_CHECKING:
    from pumice.core.session.session import Session

ALL = slice(None)
OF_NODES = "Predicate", "NodeOrder", "BatchNodeOrder"
OTHERWISE = *OF_NODES, "PrePredicate"


@pytest.fixture
def session() -> Session:
    return open_world(configuration(["gang"]), node("n0"), node("n1"), queue("default"), gang("j", pods=1))


@pytest.mark.parametrize(
    "answer",
    [np.zeros(3, np.int32), np.zeros(2), [[0, 0]], np.array([0, 999]), np.array([-1, 0]), None, "no"],
)
def test_codes_of_the_wrong_kind(session: Session, answer: Any) -> None:
    failures = PluginFailures("mine", {"onError": "fail"})
    inner: Any = SimpleNamespace(reject=always(answer), reject_one=always("x"))
    check = guarded_check(rule_of(inner, "reject"), failures, session)
    for code in (*check.many(ALL).tolist(), check.one(0)):
        assert session.reasons.reasons(code)[0].code is Code.ERROR
    assert check.volatility is Volatility.GLOBAL


@pytest.mark.parametrize("answer", [[1.0, float("nan")], [1.0, float("inf")], [1.0], 1.0, "high", None])
def test_scores_of_the_wrong_kind_are_zero(session: Session, answer: Any) -> None:
    inner: Any = SimpleNamespace(
        score=always(answer), score_one=always([1.0, 2.0]), finish=always(answer), normalised=True
    )
    score = guarded_score(rule_of(inner, "score"), PluginFailures("mine", {}), session)
    assert score.finish is not None
    assert score.many(ALL).tolist() == [0.0, 0.0] == score.finish(np.ones(2)).tolist()
    assert score.one(0) == 0.0


def test_scores_are_copied(session: Session) -> None:
    own = np.ones(2)
    guarded_score(ColumnRule(own), PluginFailures("mine", {}), session).many(ALL)[0] = 7.0
    assert own.tolist() == [1.0, 1.0]


def test_a_verdict_passes_through(session: Session) -> None:
    verdict = FitFailure(Reason("mine", Code.UNRESOLVABLE, "nowhere"))

    def refuse(*_: Any) -> None:
        raise verdict

    inner: Any = SimpleNamespace(prepare=refuse, reads=TEMPLATE_ONLY)
    with pytest.raises(FitFailure, match="nowhere"):
        GuardedFilter(inner, PluginFailures("mine", {})).prepare(
            session, next(iter(session.jobs.in_order[0].tasks.values()))
        )


def test_every_point_is_listed(session: Session) -> None:
    """With what stands for an answer that failed, or among those whose rules are guarded in a way of their own."""
    assert set(session.points.by_name()) == set(FLAGS)
    assert {*INSTEAD, *OTHERWISE} == {*FLAGS, HANDLER}
    assert not set(INSTEAD) & set(OTHERWISE)


@pytest.mark.parametrize("point", [point for point in FLAGS if point not in OF_NODES])
@pytest.mark.parametrize("on_error", ["ignore", "fail"])
def test_every_point_has_an_answer(point: str, on_error: str, session: Session) -> None:
    given = [boom] if point == "VictimTasks" else boom
    function = guarded_rule(point, given, PluginFailures("mine", {"onError": on_error}), session)
    if point == "PrePredicate" and on_error == "fail":
        with pytest.raises(FitFailure, match="plugin mine failed in PrePredicate"):
            function(None)
        return
    answer = function[0]([]) if point == "VictimTasks" else function(None)
    if point == "PrePredicate":
        assert answer is None
        return
    ignored, refused, *_ = INSTEAD[point]
    sentence = f"plugin mine failed in {point}: ValueError: boom"
    assert answer == (refused if on_error == "fail" else ignored)(sentence)


class Nonsense:
    """What no point takes for an answer."""


@pytest.mark.parametrize("point", [point for point in INSTEAD if point != "JobEnqueued"])
def test_no_point_takes_nonsense_for_an_answer(point: str) -> None:
    told: list[str] = []
    failures = PluginFailures("mine", {}, lambda _, sentence: told.append(sentence))
    answer = guard(point, always(Nonsense()), failures)(None)
    assert answer == INSTEAD[point].ignored("")
    expected = f"WrongAnswerError: expected {INSTEAD[point].expected}, was Nonsense"
    assert told == [f"plugin mine failed in {point}: {expected}"]


TASKS = open_world(configuration(["gang"]), node("n0"), queue("default"), gang("j", pods=1)).jobs.in_order[0].tasks
TASK = next(iter(TASKS.values()))
KINDS: list[tuple[str, list[Any], list[Any]]] = [
    ("TaskOrder", [-1, 0, True, 1.5, np.int64(1)], ["x", None]),
    ("JobReady", [True, np.bool_(False)], [1, None, "no"]),
    ("JobEnqueueable", [Vote.PERMIT], [True, 1, "yes", None]),
    ("JobValid", [None, ValidateResult("R", "m")], ["no", False]),
    ("Preemptable", [([], Vote.ABSTAIN), ((TASK,), Vote.PERMIT)], [None, [TASK], ([TASK], 1), (["x"], Vote.PERMIT)]),
    ("VictimTasks", [[], (TASK,)], [None, ["x"], TASK.key]),
    ("SimulatePredicate", [None, "why"], [False, ValueError("why")]),
    ("HyperNodeOrder", [{}, {"h": 1}, {"h": np.float64(1)}], [None, [1.0], {"h": "1"}]),
    ("HyperNodeGradientForJob", [None, [], [[]]], [5, [5]]),
]  # fmt: skip


@pytest.mark.parametrize(("point", "answers", "nonsense"), KINDS, ids=[point for point, *_ in KINDS])
def test_what_is_an_answer(point: str, answers: list[Any], nonsense: list[Any]) -> None:
    assert [INSTEAD[point].is_one(each) for each in answers] == [True] * len(answers)
    assert [INSTEAD[point].is_one(each) for each in nonsense] == [False] * len(nonsense)


def test_refusals(session: Session) -> None:
    failures = PluginFailures("mine", {"onError": "fail"})

    def answer(point: str) -> Any:
        return guarded_rule(point, boom, failures, session)(None)

    assert answer("JobEnqueueable") is Vote.REJECT
    assert answer("JobReady") is False
    assert answer("Overused") is True
    assert answer("JobStarving") is False
    assert answer("JobValid") == ValidateResult("PluginFailed", "plugin mine failed in JobValid: ValueError: boom")
    assert answer("Preemptable") == ([], Vote.REJECT)


def test_a_mask_of_ones_own_permits_node_by_node(session: Session) -> None:
    tasks = list(session.jobs.in_order[0].tasks.values())
    failures = PluginFailures("mine", {})
    rule = guarded_rule("Preemptable", Mask(lambda _, batch: batch.rows >= 0), failures, session)
    assert rule(tasks[0], tasks) == (tasks, Vote.PERMIT)
    broken_rule = guarded_rule("Preemptable", Mask(boom), failures, session)
    assert broken_rule(tasks[0], tasks) == ([], Vote.ABSTAIN)
