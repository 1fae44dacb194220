"""How far a job is, in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pumice.core.cycle import run_action
from pumice.core.life.task import TaskStatus
from pumice.core.session import fit
from pumice.core.session.reasons import Code, FitErrors, Reason, ReasonTable
from tests.core.actions.crowds import waiting
from tests.core.plugins.world import configuration, job_of, open_world, task_of
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


def test_what_is_said_of_a_job_follows_its_tasks() -> None:
    session = open_world(configuration(["gang"]), node("n0"), queue("q"), waiting("new", 2, queue="q"))
    job = job_of(session, "new")
    assert session.fit.job_sentence(job).startswith("pod group is not ready, 2 Pending, 2 minAvailable")
    session.place(task_of(session, "new-0"), 0, TaskStatus.ALLOCATED)
    assert session.fit.job_sentence(job).startswith("pod group is not ready, 1 Allocated, 1 Pending, 2 minAvailable")


@pytest.mark.parametrize(("size", "goes_on"), [(1, True), (2, False), (3, False)])
def test_a_group_that_has_no_task_to_spare_is_given_up_at_the_first_that_fails(size: int, goes_on: bool) -> None:
    """A group of two pods, of a job that has more than it needs."""
    group, *pods = waiting("new", 4, queue="q")
    policy = {"name": "p", "subGroupSize": size, "matchLabelKeys": ["set"]}
    group["spec"] |= {"minMember": 2, "subGroupPolicy": [policy]}
    for number, each in enumerate(pods):
        each["metadata"]["labels"] = {"set": str(number // 2)}
    session = open_world(configuration(["gang"]), node("n0"), queue("q"), group, *pods)
    job = job_of(session, "new")
    assert [session.fit.worth_continuing(job, each) for each in session.sub_jobs(job).values()] == [goes_on, goes_on]


@pytest.mark.parametrize(("names_empty", "said"), [(False, "2 full"), (True, "1 , 2 full")])
def test_a_reason_without_words_is_not_counted(names_empty: bool, said: str) -> None:
    table = ReasonTable(names_empty=names_empty)
    mute, full = (table.intern(Reason("p", Code.UNSCHEDULABLE, text)) for text in ("", "full"))
    errors = FitErrors(table, np.array([mute, full, full, 0], dtype=np.int32))
    assert errors.message() == f"0/3 nodes are unavailable: {said}."
