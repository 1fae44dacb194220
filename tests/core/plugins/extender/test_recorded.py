"""What Volcano v1.15.1's own plugin asked, in 128 little clusters, and what came of each answer, and of none.

Recorded by running the plugin with a test server; ties went to the lowest name. Left out of the bodies: nodes as the
API has them, and the status of pods, to which Go's types add empty fields, and `ScheduleStartTimestamp`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from pumice.actors.outside.client import as_json
from pumice.core.configuration import parse_scheduler_config
from pumice.core.cycle import Carry, CycleClock, Session, close_session, open_session, run_action
from pumice.core.life.task import TaskStatus
from pumice.core.messages.decisions import CycleResult
from pumice.core.messages.questions import OutsideAnswer, OutsideQuestion
from pumice.core.outside import AskedOutside, Recorded, filled
from pumice.core.session.trail.trail import NULL_TRAIL, NullTrail
from pumice.questions.oneshot.cycles import fill

Raw = dict[str, Any]
RECORDED = Path(__file__).with_name("recorded.json")
URL = "http://extender"
LATE = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"


@cache
def recorded() -> Raw:
    """All cases."""
    return msgspec.json.decode(RECORDED.read_bytes(), type=dict[str, Any])


class Extender:
    """Answers as the case says: of what was asked about a task and a node, a task, or a node, or whatever was asked."""

    def __init__(self, answers: Raw, pods: dict[str, Raw]) -> None:
        self._answers, self._pods = answers, pods
        self.heard: list[tuple[str, Raw]] = []

    def __call__(self, questions: Sequence[OutsideQuestion]) -> list[OutsideAnswer]:
        return [self._one(question) for question in questions]

    def _one(self, question: OutsideQuestion) -> OutsideAnswer:
        pods = [as_json(self._pods[pod.uid], pod) for pod in question.pods]
        verb, body = question.url.removeprefix(f"{URL}/"), json.loads(filled(question, pods))
        self.heard.append((verb, body))
        return self.reply(verb, question, body)

    def reply(self, verb: str, question: OutsideQuestion, body: Raw) -> OutsideAnswer:
        who, node = _name(body, "task"), _name(body, "node")
        for key in (f"{verb}:{who}:{node}", f"{verb}::{node}", f"{verb}:{who}", verb):
            if key in self._answers:
                return self._answer(self._answers[key], question, body)
        return OutsideAnswer(200, b"{}")

    def _answer(self, said: Raw, question: OutsideQuestion, body: Raw) -> OutsideAnswer:
        if said.get("delayMs"):
            assert question.timeout_s == 0.3
            return OutsideAnswer(error=f'Post "{question.url}": {LATE}')
        text = said.get("text") or (json.dumps(said["body"]) if said.get("body") is not None else "")
        text = text.replace('"ECHO"', json.dumps(body.get("evictees")))
        return OutsideAnswer(said.get("status") or 200, text.encode())


def _name(body: Raw, field: str) -> str:
    about: Raw = body.get(field) or {}
    return str(about.get("Name", ""))


def acted(case: Raw, ask: Any, trail: NullTrail = NULL_TRAIL) -> Session:
    """A session after its actions."""
    text = json.dumps(case["conf"]).replace("URL", URL)
    config = parse_scheduler_config(text, source="case")
    view = fill(recorded()["objects"][case["objects"]])
    clock = CycleClock(1, 1767323045.0)
    session = open_session(view.snapshot(), config, clock, Carry(), report=True, ask=ask, trail=trail)
    for action in config.actions:
        run_action(session, action)
    return session


def decide(case: Raw, ask: Any) -> tuple[CycleResult, dict[str, str]]:
    """One cycle; and who was promised room."""
    session = acted(case, ask)
    promised = _pipelined(session)
    return close_session(session), promised


def _pipelined(session: Session) -> dict[str, str]:
    tasks = [task for job in session.jobs.in_order for task in job.in_uid_order()]
    rows = {t.key: session.jobs.node[t.row] for t in tasks if session.jobs.status[t.row] == TaskStatus.PIPELINED}
    return {key: session.nodes.names[row] for key, row in rows.items()}


def asking(case: Raw) -> Extender:
    """The extender of a case."""
    pods = {obj["metadata"]["uid"]: obj for obj in recorded()["objects"][case["objects"]] if obj["kind"] == "Pod"}
    return Extender(case["answers"], pods)


def without_goes_own(value: Any) -> Any:
    """Of a body: what was recorded of it; lists of nodes, which Volcano leaves in any order, by name."""
    if isinstance(value, list):
        return sorted(map(without_goes_own, cast("list[Raw]", value)), key=lambda each: str(each.get("Name")))
    if not isinstance(value, dict):
        return value
    fields = cast("Raw", value)
    kept: Raw = {key: without_goes_own(each) for key, each in fields.items() if key != "ScheduleStartTimestamp"}
    if "Tasks" in kept and "Node" in kept:
        kept["Node"] = None
    pod: Raw | None = fields.get("Pod")
    if pod is not None:
        kept["Pod"] = {name: pod[name] for name in ("metadata", "spec")}
        for container in kept["Pod"]["spec"]["containers"]:
            container.setdefault("resources", {})
    return kept


@pytest.mark.parametrize("name", sorted(recorded()["cases"]))
def test_it_is_asked_and_heeded_as_in_volcano(name: str) -> None:
    case = recorded()["cases"][name]
    extender = asking(case)
    result, promised = decide(case, extender)
    heard = Counter((verb, _name(body, "task"), _name(body, "node")) for verb, body in extender.heard)
    assert heard == Counter(tuple(each) for each in case["asked"])
    assert {f"{bind.namespace}/{bind.name}": bind.node for bind in result.binds} == case["binds"]
    # of twins on a node Volcano takes any
    assert Counter(evict.name[:-1] for evict in result.evicts) == Counter(key[3:-1] for key in case["evicts"])
    assert promised == case["pipelined"]
    said = [condition.message for condition in result.pod_conditions]
    for text in case["fit"]:
        assert any(_anywhere(text) in _anywhere(message) for message in said)


def _anywhere(text: str) -> str:
    """Without the address of the test server."""
    words = [URL if word.strip('"').startswith("http://") else word for word in text.replace("/predicate", "").split()]
    return " ".join(words)


WITH_BODIES = sorted(name for name, case in recorded()["cases"].items() if "bodies" in case)


@pytest.mark.parametrize("name", WITH_BODIES)
def test_the_bodies_are_volcanos(name: str) -> None:
    case = recorded()["cases"][name]
    extender = asking(case)
    decide(case, extender)
    left = [(verb, without_goes_own(body)) for (verb, _, _), body in zip(case["asked"], case["bodies"], strict=True)]
    for verb, body in extender.heard:
        left.remove((verb, without_goes_own(body)))
    assert not left


@pytest.mark.parametrize("name", sorted(recorded()["cases"]))
def test_a_record_of_the_answers_decides_the_same_and_asks_nobody(name: str) -> None:
    case = recorded()["cases"][name]
    asked = AskedOutside(asking(case))
    first, _ = decide(case, asked)
    again, _ = decide(case, Recorded(asked.answers()))
    assert again.digest == first.digest


def test_a_record_of_questions_in_other_words_is_answered_in_order() -> None:
    case = recorded()["cases"]["prioritize-p0"]
    asked = AskedOutside(asking(case))
    first, _ = decide(case, asked)
    answers = asked.answers()
    assert answers is not None
    reworded = msgspec.structs.replace(answers, questions=bytes(len(answers.questions)))
    again, _ = decide(case, Recorded(reworded, in_order=True))
    assert again.digest == first.digest
    unanswered, _ = decide(case, Recorded(reworded))
    assert unanswered.digest != first.digest
