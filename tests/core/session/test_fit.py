"""How far a job is, in words."""

from __future__ import annotations

from typing import Any

import pytest

from core.cycle import run_action
from core.session import fit
from tests.core.actions.crowds import waiting
from tests.core.plugins.world import configuration, open_world
from tests.kit import node, queue


def test_what_is_remembered_of_a_jobs_words_does_not_grow_with_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, ...]] = []
    worded = vars(fit)["_state"]

    def word(*state: Any) -> str:
        asked.append(state)
        return worded(*state)  # type: ignore[no-any-return]

    monkeypatch.setattr(fit, "_state", word)
    group, *pods = waiting("new", 300, queue="q", cpu="1")
    group["spec"]["minMember"] = 300
    session = open_world(configuration(["gang", "predicates"]), node("n0", cpu="2"), queue("q"), group, pods)
    run_action(session, "allocate")
    (job,) = session.jobs.in_order
    sentence = session.fit.job_sentence(job)
    state = "pod group is not ready, 300 Pending, 300 minAvailable; Pending: 2 Schedulable, 298 Unschedulable"
    assert sentence.startswith(state)
    assert asked
    assert max(len(repr(state)) for state in asked) < 200
