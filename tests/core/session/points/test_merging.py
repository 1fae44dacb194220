"""Extension points: which rules are asked, and how their answers are merged, rule by rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.config.known import FLAGS as KNOWN_FLAGS
from pumice.core.session.points.point import FLAGS
from pumice.core.session.points.votes import ValidateResult, Vote
from tests.core.session.points.answers import ALL_ON, constant, given_answers, points

if TYPE_CHECKING:
    from collections.abc import Callable

PERMIT, ABSTAIN, REJECT = Vote.PERMIT, Vote.ABSTAIN, Vote.REJECT


# --- who is asked
# ---------------------------------------------------------------------------------------------------------


def test_flags_are_those_of_the_configuration() -> None:
    assert {flag for flag in FLAGS.values() if flag} <= {flag.point for flag in KNOWN_FLAGS}


@pytest.mark.parametrize("point", FLAGS)
def test_a_point_is_switched_by_its_flag_and_nothing_else(point: str) -> None:
    flag = FLAGS[point]
    only = {} if flag is None else {flag: True}
    every_other = {name: True for name in ALL_ON if name != flag}
    asked = given_answers(point, ["a"], {"a": 1}, enabled=only)
    assert len(asked.rules) == 1
    if flag is not None:
        spared = given_answers(point, ["a"], {"a": 1}, enabled=every_other)
        simulates = point in ("SimulateAddTask", "SimulateRemoveTask")  # also on with Allocatable
        assert len(spared.rules) == simulates


@pytest.mark.parametrize("point", FLAGS)
def test_a_plugin_listed_twice_is_asked_twice_and_one_that_is_not_listed_never(point: str) -> None:
    asked = given_answers(point, ["ab", "a"], {"a": 1, "z": 2})
    assert asked.names == ("a", "a")
    assert len(asked.tiers) == 2


def test_those_that_registered_stand_tier_by_tier() -> None:
    asked = given_answers("JobOrder", ["ab", "c", "d"], {"d": 4, "b": 2, "a": 1})
    assert [[name for name, _ in tier] for tier in asked.tiers] == [["a", "b"], ["d"]]
    assert [ask() for ask in asked.rules] == [1, 2, 4]
    assert points("a").queue_order.tiers == ()
    assert points("a").queue_order.rules == ()


def test_a_second_registration_replaces_the_first() -> None:
    overused = given_answers("Overused", ["a"], {"a": False})
    assert not overused(None)
    overused.add("a", constant(True))
    assert overused(None)


# --- orders
# ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["JobOrder", "QueueOrder", "TaskOrder", "SubJobOrder", "VictimQueueOrder"])
def test_the_first_that_tells_two_apart_decides(point: str) -> None:
    assert given_answers(point, ["ab", "c"], {"a": 0, "b": -3, "c": 1})(1, 2) == -3
    assert given_answers(point, ["ab", "c"], {"a": 0, "b": 0, "c": 1})(1, 2) == 1
    assert given_answers(point, ["a"], {})(1, 2) == 0


# --- and, or
# -----------------------------------------------------------------------------------------------------------------

ANDS = ["JobReady", "SubJobReady", "Allocatable", "SimulateAllocatable", "Preemptive"]


@pytest.mark.parametrize("point", ANDS)
@given(st.dictionaries(st.sampled_from("abcd"), st.booleans()))
def test_all_must_agree(point: str, answers: dict[str, bool]) -> None:
    assert given_answers(point, ["ab", "cd"], answers)(None) is all(answers.values())


@given(st.dictionaries(st.sampled_from("abcd"), st.booleans()))
def test_any_may_call_a_queue_overused(answers: dict[str, bool]) -> None:
    assert given_answers("Overused", ["ab", "cd"], answers)(None) is any(answers.values())


@pytest.mark.parametrize(
    ("answers", "starves"),
    [
        ({}, False),
        ({"a": True}, True),
        ({"a": True, "b": False}, False),
        ({"a": True, "c": False}, True),  # later tiers are not asked
        ({"a": False, "c": True}, False),
        ({"c": True, "d": True}, True),  # the first tier with a plugin
    ],
)
def test_the_first_tier_says_who_starves(answers: dict[str, bool], starves: bool) -> None:
    assert given_answers("JobStarving", ["ab", "cd"], answers)(None) is starves


# --- votes
# ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["JobPipelined", "SubJobPipelined", "JobEnqueueable"])
@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        ({}, True),
        ({"a": ABSTAIN, "c": ABSTAIN}, True),
        ({"a": REJECT}, False),
        ({"a": PERMIT, "b": REJECT}, False),  # within a tier a reject beats a permit
        ({"a": PERMIT, "c": REJECT}, True),  # an earlier tier's permit is final
        ({"a": ABSTAIN, "c": REJECT, "d": PERMIT}, False),
        ({"a": REJECT, "c": PERMIT}, False),
    ],
)
def test_votes(point: str, answers: dict[str, Vote], outcome: bool) -> None:
    made = given_answers(point, ["ab", "cd"], answers)
    assert made(None) is outcome
    if not outcome:
        assert made.rejecter(None) == next(name for name, vote in answers.items() if vote is REJECT)


def test_a_reject_ends_the_vote_immediately() -> None:
    asked: list[str] = []

    def voter(name: str, answer: Vote) -> Callable[[Any], Vote]:
        def vote(_: Any) -> Vote:
            asked.append(name)
            return answer

        return vote

    made: Any = points("abc").job_enqueueable
    for name, answer in (("a", PERMIT), ("b", REJECT), ("c", PERMIT)):
        made.add(name, voter(name, answer))
    assert not made(None)
    assert asked == ["a", "b"]


# --- first answers, everybody
# ---------------------------------------------------------------------------------------------------


def test_the_first_verdict_on_a_job() -> None:
    bad = ValidateResult("NotEnoughTasks", "too few")
    assert given_answers("JobValid", ["ab"], {"a": None, "b": bad})(None) is bad
    assert given_answers("JobValid", ["ab"], {"a": None})(None) is None


@pytest.mark.parametrize("point", ["HyperNodeGradientForJob", "HyperNodeGradientForSubJob"])
def test_the_first_gradient_and_without_one_the_domain_itself(point: str) -> None:
    assert given_answers(point, ["ab", "c"], {"a": None, "b": [[2]], "c": [[3]]})("job", "domain") == [[2]]
    assert given_answers(point, ["a"], {"a": None})("job", "domain") == [["domain"]]


@pytest.mark.parametrize("point", ["SimulateAddTask", "SimulateRemoveTask", "SimulatePredicate"])
def test_the_first_error(point: str) -> None:
    assert given_answers(point, ["ab", "c"], {"a": None, "b": "no", "c": "never"})() == "no"
    assert given_answers(point, ["ab"], {"a": None})() is None


@pytest.mark.parametrize("point", ["JobEnqueued", "PrePredicate"])
def test_everybody_is_told_in_order(point: str) -> None:
    told: list[str] = []

    def listener(name: str) -> Callable[[int], None]:
        return lambda subject: told.append(f"{name}{subject}")

    made: Any = points("b", "a").by_name()[point]
    for name in ("a", "b"):
        made.add(name, listener(name))
    made(1)
    assert told == ["b1", "a1"]


def test_handlers_are_kept_in_order_of_registration() -> None:
    made = points("a")
    first, second = constant(None), constant("no")
    made.handle(first)
    made.handle(second, first)
    assert made.on_allocate == [first, second]
    assert made.on_deallocate == [first]
