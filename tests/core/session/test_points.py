"""Extension points: which functions are asked, and how their answers are merged, rule by rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.known import FLAGS as KNOWN_FLAGS
from config.pumice_arguments import PumiceArguments
from config.schema import PluginOption, SchedulerConfig, Tier
from core.session.listed import FLAGS
from core.session.points import Points, Verdict, Vote

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ALL_ON = {flag: True for flag in FLAGS.values() if flag is not None}
PERMIT, ABSTAIN, REJECT = Vote.PERMIT, Vote.ABSTAIN, Vote.REJECT


def points(*tiers: str, enabled: dict[str, bool] | None = None, fix: tuple[str, ...] = ()) -> Points:
    """Tiers of plugins named by single letters, all flags on."""
    flags = ALL_ON if enabled is None else enabled
    config = tuple(Tier(tuple(PluginOption(name, flags) for name in tier)) for tier in tiers)
    return Points(SchedulerConfig(("allocate",), config, pumice=PumiceArguments(fix=fix)))


def given_answers(point: str, tiers: Sequence[str], answers: dict[str, Any], **options: Any) -> Points:
    """Every plugin gives its answer, whatever it is asked."""
    made = points(*tiers, **options)
    for name, answer in answers.items():
        made.add(point, name, constant(answer))
    return made


def constant(answer: Any) -> Callable[..., Any]:
    return lambda *_: answer


class Victim(NamedTuple):
    """Enough of a task to be a victim."""

    uid: str


def victims(letters: str) -> list[Victim]:
    return [Victim(letter) for letter in letters]


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
    assert len(asked.flat(point)) == 1
    if flag is not None:
        spared = given_answers(point, ["a"], {"a": 1}, enabled=every_other)
        simulates = point in ("SimulateAddTask", "SimulateRemoveTask")  # also on with Allocatable
        assert len(spared.flat(point)) == simulates


@pytest.mark.parametrize("point", FLAGS)
def test_a_plugin_listed_twice_is_asked_twice_and_one_that_is_not_listed_never(point: str) -> None:
    asked = given_answers(point, ["ab", "a"], {"a": 1, "z": 2})
    assert asked.enabled_names(point) == ("a", "a")
    assert len(asked.tiers(point)) == 2


def test_those_that_registered_stand_tier_by_tier() -> None:
    asked = given_answers("JobOrder", ["ab", "c", "d"], {"d": 4, "b": 2, "a": 1})
    assert asked.tiers_of_names("JobOrder") == (("a", "b"), ("d",))
    assert [len(tier) for tier in asked.tiers("JobOrder")] == [2, 1]
    assert asked.tiers_of_names("QueueOrder") == asked.tiers("QueueOrder") == asked.flat("QueueOrder") == ()


def test_a_second_registration_replaces_the_first() -> None:
    made = points("a")
    made.add("Overused", "a", constant(False))
    assert not made.any_true("Overused", None)
    made.add("Overused", "a", constant(True))
    assert made.any_true("Overused", None)


# --- orders
# ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "point", ["JobOrder", "QueueOrder", "TaskOrder", "SubJobOrder", "ClusterOrder", "VictimQueueOrder"]
)
def test_the_first_that_tells_two_apart_decides(point: str) -> None:
    assert given_answers(point, ["ab", "c"], {"a": 0, "b": -3, "c": 1}).first_nonzero(point, 1, 2) == -3
    assert given_answers(point, ["ab", "c"], {"a": 0, "b": 0, "c": 1}).first_nonzero(point, 1, 2) == 1
    assert points("a").first_nonzero(point, 1, 2) == 0


# --- and, or
# -----------------------------------------------------------------------------------------------------------------

ANDS = ["JobReady", "SubJobReady", "Allocatable", "SimulateAllocatable", "Preemptive"]


@pytest.mark.parametrize("point", ANDS)
@given(st.dictionaries(st.sampled_from("abcd"), st.booleans()))
def test_all_must_agree(point: str, answers: dict[str, bool]) -> None:
    assert given_answers(point, ["ab", "cd"], answers).all_agree(point, None) is all(answers.values())


@given(st.dictionaries(st.sampled_from("abcd"), st.booleans()))
def test_any_may_call_a_queue_overused(answers: dict[str, bool]) -> None:
    assert given_answers("Overused", ["ab", "cd"], answers).any_true("Overused", None) is any(answers.values())


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
    made = given_answers("JobStarving", ["ab", "cd"], answers)
    assert made.first_tier_agrees("JobStarving", None) is starves


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
    assert made.vote(point, None) is outcome
    if not outcome:
        assert made.rejecter == next(name for name, vote in answers.items() if vote is REJECT)


def test_a_reject_ends_the_vote_at_once() -> None:
    asked: list[str] = []

    def voter(name: str, answer: Vote) -> Callable[[Any], Vote]:
        def vote(_: Any) -> Vote:
            asked.append(name)
            return answer

        return vote

    made = points("abc")
    for name, answer in (("a", PERMIT), ("b", REJECT), ("c", PERMIT)):
        made.add("JobEnqueueable", name, voter(name, answer))
    assert not made.vote("JobEnqueueable", None)
    assert asked == ["a", "b"]


# --- first answers, everybody
# ---------------------------------------------------------------------------------------------------


def test_the_first_verdict_on_a_job() -> None:
    bad = Verdict("NotEnoughTasks", "too few")
    assert given_answers("JobValid", ["ab"], {"a": None, "b": bad}).first_failing("JobValid", None) is bad
    assert given_answers("JobValid", ["ab"], {"a": None}).first_failing("JobValid", None) is None


@pytest.mark.parametrize("point", ["BestNode", "TargetJob", "HyperNodeGradientForJob", "HyperNodeGradientForSubJob"])
def test_the_first_answer(point: str) -> None:
    assert given_answers(point, ["ab", "c"], {"a": None, "b": 2, "c": 3}).first_answer(point) == 2
    assert points("a").first_answer(point) is None


@pytest.mark.parametrize("point", ["SimulateAddTask", "SimulateRemoveTask", "SimulatePredicate"])
def test_the_first_error(point: str) -> None:
    assert given_answers(point, ["ab", "c"], {"a": None, "b": "no", "c": "never"}).first_error(point) == "no"
    assert given_answers(point, ["ab"], {"a": None}).first_error(point) is None


@pytest.mark.parametrize("point", ["JobEnqueued", "ReservedNodes"])
def test_everybody_is_told_in_order(point: str) -> None:
    told: list[str] = []

    def listener(name: str) -> Callable[[int], None]:
        return lambda subject: told.append(f"{name}{subject}")

    made = points("b", "a")
    for name in ("a", "b"):
        made.add(point, name, listener(name))
    made.call_all(point, 1)
    assert told == ["b1", "a1"]


def test_handlers_are_kept_in_order_of_registration() -> None:
    made = points("a")
    first, second = constant(None), constant("no")
    made.handle(first)
    made.handle(second, first)
    assert made.on_allocate == [first, second]
    assert made.on_deallocate == [first]


# --- victims
# ------------------------------------------------------------------------------------------------------------------


def intersection(tiers: Sequence[str], answers: dict[str, tuple[str, Vote]], fix: tuple[str, ...] = ()) -> str:
    told = {name: (victims(letters), vote) for name, (letters, vote) in answers.items()}
    made = given_answers("Preemptable", tiers, told, fix=fix)
    candidates: Any = victims("uvwxyz")
    return "".join(task.uid for task in made.tiered_intersection("Preemptable", None, candidates))


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ({}, ""),
        ({"a": ("xyz", PERMIT)}, "xyz"),
        ({"a": ("zyx", PERMIT), "b": ("xz", PERMIT)}, "zx"),  # in the order of the first
        ({"a": ("xy", ABSTAIN), "b": ("z", PERMIT)}, "z"),
        ({"a": ("", PERMIT), "c": ("z", PERMIT)}, "z"),  # an empty answer ends its tier only
        ({"a": ("x", PERMIT), "b": ("", PERMIT), "c": ("z", PERMIT)}, "z"),
        ({"a": ("", REJECT), "c": ("z", PERMIT)}, "z"),  # reject with nobody is permit with nobody
        ({"a": ("x", PERMIT), "c": ("yz", PERMIT)}, "x"),  # the first tier with victims decides
        ({"a": ("x", PERMIT), "b": ("y", PERMIT)}, ""),
        ({"a": ("x", PERMIT), "b": ("y", PERMIT), "c": ("z", PERMIT)}, "z"),
    ],
)
def test_the_plugins_of_a_tier_must_agree_on_victims(answers: dict[str, tuple[str, Vote]], found: str) -> None:
    assert intersection(["ab", "cd"], answers) == found


def test_an_intersection_that_became_empty_starts_anew_unless_mended() -> None:
    answers = {"a": ("x", PERMIT), "b": ("y", PERMIT), "c": ("z", PERMIT), "d": ("w", PERMIT)}
    assert intersection(["abc", "d"], answers) == "z"
    assert intersection(["abc", "d"], answers, fix=("intersection-stays-empty",)) == "w"


def test_an_empty_answer_is_a_veto_when_mended() -> None:
    answers = {"a": ("", PERMIT), "c": ("z", PERMIT)}
    assert intersection(["ab", "cd"], answers, fix=("empty-answer-vetoes",)) == ""
    assert intersection(["ab", "cd"], {"a": ("", ABSTAIN), "c": ("z", PERMIT)}, fix=("empty-answer-vetoes",)) == "z"


letters = st.text("uvwxyz", max_size=4).map(lambda text: "".join(dict.fromkeys(text)))


@given(st.dictionaries(st.sampled_from("abcd"), st.tuples(letters, st.sampled_from([PERMIT, ABSTAIN]))))
def test_victims_are_somebodys_answer_and_a_veto_takes_all_or_nothing(answers: dict[str, tuple[str, Vote]]) -> None:
    found = intersection(["ab", "cd"], answers)
    assert set(found) <= {letter for said, _ in answers.values() for letter in said}
    assert intersection(["ab", "cd"], answers, fix=("empty-answer-vetoes",)) in ("", found)


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ({}, ""),
        ({"a": ["xy", "z"], "b": ["y"]}, "xyz"),
        ({"a": [""], "c": ["z"]}, "z"),
        ({"a": ["x"], "c": ["z"]}, "x"),
    ],
)
def test_victims_to_shuffle_are_a_union_within_a_tier(answers: dict[str, list[str]], found: str) -> None:
    told = {name: [constant(victims(letters)) for letters in parts] for name, parts in answers.items()}
    made = points("ab", "cd")
    for name, functions in told.items():
        made.add("VictimTasks", name, functions)
    assert "".join(task.uid for task in made.first_tier_union("VictimTasks", [])) == found
