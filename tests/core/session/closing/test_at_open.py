"""What is said of pods that were asked about, before any action."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pumice.core.cycle import close_session, open_session
from pumice.core.messages.questions import OutsideAnswer, OutsideQuestion
from pumice.core.objects.metadata import parse_time
from pumice.core.outside import filled
from pumice.core.session.carry import Carry, CycleClock, SessionOptions
from tests.core.plugins.world import NOW, configuration, view_of
from tests.kit import gang, node, queue


def test_what_a_process_outside_refuses_is_said_too() -> None:
    def ask(questions: Sequence[OutsideQuestion]) -> Sequence[OutsideAnswer]:
        bodies = [json.loads(filled(each, [b"{}"] * len(each.pods))) for each in questions]
        said = {"n0": b"{}", "n1": b'{"status": "no licence", "code": 2}'}
        return [OutsideAnswer(200, said[body["node"]["Name"]]) for body in bodies]

    arguments = {"extender.urlPrefix": "http://e", "extender.predicateVerb": "predicate"}
    config = configuration(["gang", "nodeorder", {"name": "extender", "arguments": arguments}])
    view = view_of(node("n0"), node("n1"), queue("q"), gang("j", queue="q", pods=1))
    clock, options = CycleClock(1, parse_time(NOW)), SessionOptions(explain=("default/j-0",))
    session = open_session(view.snapshot(), config, clock, Carry(), options, report=True, ask=ask)
    said = close_session(session).report.tasks_at_open["default/j-0"]
    assert said.scores.keys() == {"n0"}
    assert said.rejected == {"n1": "task default/j-0 on node n1 fit failed: no licence"}


def test_filters_and_scores_of_the_pods_that_are_asked_about_and_of_no_other() -> None:
    config = configuration(["gang"], ["predicates", "nodeorder"])
    view = view_of(node("n0"), node("n1", unschedulable=True), queue("q"), gang("j", queue="q", pods=2))
    options = SessionOptions(explain=("default/j-1", "default/gone"))
    clock = CycleClock(1, parse_time(NOW))
    report = close_session(open_session(view.snapshot(), config, clock, Carry(), options, report=True)).report
    assert list(report.tasks_at_open) == ["default/j-1"]
    said = report.tasks_at_open["default/j-1"]
    assert said.scores.keys() == {"n0"}
    assert said.rejected == {"n1": "task default/j-1 on node n1 fit failed: node(s) were unschedulable"}


def test_who_was_asked_about_counts_as_not_looked_at() -> None:
    """Preempt goes by who went through PrePredicate."""
    view = view_of(node("n0"), queue("q"), gang("j", queue="q", pods=1))
    options = SessionOptions(explain=("default/j-0",))
    config = configuration(["gang", "predicates"])
    session = open_session(view.snapshot(), config, CycleClock(1, parse_time(NOW)), Carry(), options, report=True)
    assert session.opening.tasks.keys() == {"default/j-0"}
    assert session.pre_filtered == set()
