"""A cycle says nothing to the next one if that one runs in any case."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pumice.actors.scheduling.core_decider import core_decider
from pumice.actors.scheduling.session_runner import said_by
from pumice.core.configuration import load_scheduler_config
from pumice.core.messages.commands import CycleSaid
from pumice.core.messages.decisions import (
    Bind,
    CycleResult,
    Evict,
    PodCondition,
    PodGroupEvent,
    PodGroupStatus,
    QueueStatus,
)
from pumice.core.messages.events import CycleRecord

GROUPS = (PodGroupStatus("default", "g", "Completed", succeeded=1),)
QUEUES = (QueueStatus("q", {"cpu": "1"}),)
RESULT = CycleResult(1, "", pod_groups=GROUPS, queues=QUEUES)
RECORD = CycleRecord(1, 0.0, 0, 0, 0, "", "", 0)


def test_what_it_said_when_it_did_nothing_else() -> None:
    assert said_by(RESULT, RECORD, may_skip_no_op=True) == CycleSaid(GROUPS, QUEUES, alone=True)


def test_events_of_waiting_jobs_are_no_reason_for_another_cycle() -> None:
    told = replace(RESULT, events=(PodGroupEvent("default", "g", "Unschedulable", "no room"),))
    assert said_by(told, RECORD, may_skip_no_op=True).alone


@pytest.mark.parametrize(
    ("what", "may_skip_no_op"),
    [
        ({}, False),
        ({"binds": (Bind("default", "p", "u", "n", "default/g"),)}, True),
        ({"evicts": (Evict("default", "p", "u", "n", "default/g", "preempt"),)}, True),
        ({"pod_conditions": (PodCondition("default", "p", "u", "Unschedulable", "no room"),)}, True),
        ({"wake_at": 5.0}, True),
        ({"carry": {"drawn": 1}}, True),
    ],
)
def test_nothing_where_another_follows(what: dict[str, Any], may_skip_no_op: bool) -> None:
    assert said_by(replace(RESULT, **what), RECORD, may_skip_no_op=may_skip_no_op) == CycleSaid()


@pytest.mark.parametrize("report", [False, True])
def test_every_cycle_that_is_to_report_is_decided_though_it_comes_to_nothing(report: bool) -> None:
    assert core_decider(report=report).may_skip_no_op(load_scheduler_config(None)) is not report
