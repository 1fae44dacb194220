"""What is said of pods that were asked about, before any action."""

from __future__ import annotations

from core.cycle import close_session, open_session
from core.objects.metadata import parse_time
from core.session.carry import Carry, CycleClock, SessionOptions
from tests.core.plugins.world import NOW, configuration, view_of
from tests.kit import gang, node, queue


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
