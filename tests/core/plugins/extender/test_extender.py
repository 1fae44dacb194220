"""The plugin where Volcano's recordings do not reach: arguments, words, what goes wrong in backfill, reports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.cycle import Trail, close_session, open_session, run_action
from pumice.core.life.task import TaskStatus
from pumice.core.messages.questions import AskedPod, OutsideAnswer, OutsideQuestion
from pumice.core.outside import NOT_RECORDED, AskedOutside, Recorded, WholePod, filled, question
from pumice.core.plugins.extender.bodies import MAX_UNAVAILABLE, MIN_AVAILABLE, budget_of
from pumice.core.plugins.extender.plugin import PREDICATE, PRIORITIZE, ExtenderError, read_answer, read_settings
from pumice.core.session.carry import Carry, CycleClock
from pumice.core.session.trail.records import Ending
from tests.core.plugins.extender.test_recorded import acted, asking, decide, recorded
from tests.core.plugins.world import configuration, view_of
from tests.kit import gang, node, queue

URL = "http://e/predicate"


@pytest.mark.parametrize(
    ("annotations", "least", "most"),
    [
        ({}, "", ""),
        ({MAX_UNAVAILABLE: "1"}, "", "1"),
        ({MIN_AVAILABLE: "2", MAX_UNAVAILABLE: "1"}, "2", ""),
        ({MIN_AVAILABLE: "", MAX_UNAVAILABLE: "1"}, "", ""),
    ],
)
def test_budget_with_both_annotations_reads_the_first(annotations: dict[str, str], least: str, most: str) -> None:
    """As Volcano's extractBudget, for which an empty value is a value."""
    assert budget_of(annotations) == {"MinAvailable": least, "MaxUnavailable": most}


def words(body: bytes, shape: Any = PREDICATE) -> str:
    with pytest.raises(ExtenderError) as error:
        read_answer(OutsideAnswer(200, body), "predicate", URL, shape)
    return str(error.value)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", "EOF"),
        (b" \n", "EOF"),
        (b"{", "unexpected EOF"),
        (b"<html>", "invalid character '<' looking for beginning of value"),
        (b"tru", "unexpected EOF"),
        (b"nope", "invalid character 'o' in literal null (expecting 'u')"),
        (b"NaN", "invalid character 'N' looking for beginning of value"),
        (b"[1]", "json: cannot unmarshal array into Go value of type extender.PredicateResponse"),
        (
            b'{"status": 5}',
            "json: cannot unmarshal number into Go struct field PredicateResponse.status of type string",
        ),
        (b'{"code": "x"}', "json: cannot unmarshal string into Go struct field PredicateResponse.code of type int"),
        (b'{"code": 1.5}', "json: cannot unmarshal number 1.5 into Go struct field PredicateResponse.code of type int"),
        (b'{"code": true}', "json: cannot unmarshal bool into Go struct field PredicateResponse.code of type int"),
    ],
)
def test_an_answer_that_cannot_be_read_is_told_as_go_tells_it(body: bytes, expected: str) -> None:
    assert words(body) == expected


@pytest.mark.parametrize(
    ("score", "said"), [("true", "bool"), ('"5"', "string"), ('"five"', "string"), ("[5]", "array"), ("{}", "object")]
)
def test_a_score_that_is_no_number_is_told_as_go_tells_it(score: str, said: str) -> None:
    body = f'{{"nodeScore": {{"a": 1, "b": {score}}}}}'.encode()
    expected = f"json: cannot unmarshal {said} into Go struct field PrioritizeResponse.nodeScore of type float64"
    assert words(body, PRIORITIZE) == expected


def test_names_in_any_case_nulls_and_what_comes_after_the_value() -> None:
    body = b'{"STATUS": "no", "code": null, "else": 1} and more'
    assert read_answer(OutsideAnswer(200, body), "predicate", URL, PREDICATE) == {"status": "no"}
    assert read_answer(OutsideAnswer(200, b"null"), "predicate", URL, PREDICATE) == {}
    scores = read_answer(OutsideAnswer(200, b'{"nodeScore": {"a": 1, "b": null}}'), "prioritize", URL, PRIORITIZE)
    assert scores == {"nodeScore": {"a": 1.0}}
    assert "float64" in words(b'{"nodeScore": {"a": 1e999}}', PRIORITIZE)


@given(st.binary(max_size=60))
def test_whatever_comes_is_an_answer_or_an_error(body: bytes) -> None:
    try:
        found = read_answer(OutsideAnswer(200, body), "predicate", URL, PREDICATE)
    except ExtenderError:
        return
    assert found.keys() <= {"status", "code"}


def test_arguments_of_other_types_count_as_not_given() -> None:
    settings = read_settings(
        {
            "extender.urlPrefix": 5,
            "extender.httpTimeout": "soon",
            "extender.predicateVerb": 1,
            "extender.ignorable": "T",
        }
    )
    assert (settings.url_prefix, settings.timeout_s, settings.verbs, settings.ignorable) == ("", 1.0, {}, True)
    assert read_settings({"extender.httpTimeout": "250ms"}).timeout_s == 0.25


def test_backfill_leaves_a_pod_pending_that_cannot_be_scored() -> None:
    """Volcano panics there."""
    case = {**recorded()["cases"]["backfill"], "answers": {"prioritize": {"status": 500}}}
    result, _ = decide(case, asking(case))
    assert not result.binds


@pytest.mark.parametrize("name", ["prioritize-500", "backfill"])
def test_where_a_pod_ends_that_cannot_be_scored_is_told(name: str) -> None:
    case, trail = {**recorded()["cases"][name], "answers": {"prioritize": {"status": 500}}}, Trail()
    session = acted(case, asking(case), trail)
    tasks = [task for job in session.jobs.in_order for task in session.jobs.tasks_in(job, TaskStatus.PENDING)]
    assert tasks
    for task in tasks:
        assert [each.ending for each in trail.endings[task.job] if each.who == task.key] == [Ending.NO_NODE]


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("allocate-says-no", "extender: no licence"),
        ("allocate-wrongfield", "extender: json: cannot unmarshal number into Go struct field "),
        ("allocate-wrongfield-ign", ""),
    ],
)
def test_an_objection_to_a_placement_is_told_under_its_name(case: str, expected: str) -> None:
    asked = recorded()["cases"][case]
    said = acted(asked, asking(asked)).objection
    assert said.startswith(expected)
    assert bool(said) == bool(expected)


@pytest.mark.parametrize(
    ("ignorable", "mended", "bound"), [(False, False, 2), (True, False, 0), (False, True, 0), (True, True, 2)]
)
def test_a_job_is_ready_without_an_answer_the_wrong_way_round_unless_mended(
    ignorable: bool, mended: bool, bound: int
) -> None:
    case = json.loads(json.dumps(recorded()["cases"]["ready-500-ign" if ignorable else "ready-500"]))
    if mended:
        case["conf"]["configurations"] = [{"name": "pumice", "arguments": {"fix": ["extender-job-ready"]}}]
    result, _ = decide(case, asking(case))
    assert len(result.binds) == bound


def test_the_same_question_is_answered_in_turn_and_others_are_not() -> None:
    said = iter([OutsideAnswer(200, b"1"), OutsideAnswer(200, b"2"), OutsideAnswer(200, b"1")])

    def ask(questions: Sequence[OutsideQuestion]) -> Sequence[OutsideAnswer]:
        return [next(said) for _ in questions]

    one, other = question("http://e/a", {"x": 1}, 1.0), question("http://e/a", {"x": 2}, 1.0)
    asked = AskedOutside(ask)
    asked([one, other])
    asked([one])
    again = Recorded(asked.answers())
    assert [answer.body for answer in again([one, one, other, one, other])] == [b"1", b"1", b"2", b"1", b"2"]
    assert again([question("http://e/b", {"x": 1}, 1.0)]) == [NOT_RECORDED]
    assert AskedOutside(ask).answers() is None


def test_a_pod_is_written_in_wherever_the_question_has_it() -> None:
    pods = [AskedPod("ns", "a", "1"), AskedPod("ns", "b", "2")]
    asked = question("http://e", {"x": [WholePod(pods[0]), WholePod(pods[1]), WholePod(pods[0])], "text": "\0"}, 0.0)
    assert asked.pods == tuple(pods)
    assert json.loads(filled(asked, [b'{"n":1}', b'{"n":2}'])) == {"x": [{"n": 1}, {"n": 2}, {"n": 1}], "text": "\0"}


@pytest.mark.parametrize(
    ("answer", "ignorable", "words"),
    [
        (OutsideAnswer(error="timed out"), True, "the cycle went on without"),
        (OutsideAnswer(200, b"<html>"), True, "invalid character '<'"),
        (OutsideAnswer(error="timed out"), False, "what it was asked about is refused"),
        (OutsideAnswer(200, b'{"code": 0}'), True, ""),
        (NOT_RECORDED, True, ""),
    ],
)
def test_extender_that_keeps_a_cycle_waiting_is_named(answer: OutsideAnswer, ignorable: bool, words: str) -> None:
    arguments = {
        "extender.urlPrefix": "http://e:9",
        "extender.predicateVerb": "fit",
        "extender.ignorable": ignorable,
        "extender.httpTimeout": "2s",
    }
    config = configuration(["predicates", {"name": "extender", "arguments": arguments}], actions=["allocate"])
    snapshot = view_of(node("n0"), queue("q"), gang("j", queue="q", pods=1, phase="Inqueue")).snapshot()
    clock = CycleClock(1, 1767323045.0)
    session = open_session(snapshot, config, clock, Carry(), report=True, ask=lambda asked: [answer] * len(asked))
    run_action(session, "allocate")
    troubles = close_session(session).report.troubles
    assert list(troubles) == (["extender"] if words else [])
    for sentence in troubles.values():
        assert sentence.startswith("extender http://e:9: 1 of 1 questions of the cycle got no answer")
        assert "after up to 2 s each" in sentence
        assert words in sentence
