"""Every state with every trigger: a pair is in its table, or it is refused and says who, where and what."""

from collections.abc import Callable, Mapping
from enum import Enum
from itertools import product
from typing import Any

import numpy as np
import pytest

from core.errors import InvalidTransition
from core.life import pod_group, task

LIVES: list[tuple[type[Enum], type[Enum], Mapping[Any, Any], Callable[..., Any]]] = [
    (task.TaskStatus, task.TaskTrigger, task.TRANSITIONS, task.move),
    (pod_group.PodGroupPhase, pod_group.PodGroupTrigger, pod_group.TRANSITIONS, pod_group.move),
]
PAIRS = [
    pytest.param(state, trigger, table, move, id=f"{states.__name__}-{state.name}-{trigger.name}")
    for states, triggers, table, move in LIVES
    for state, trigger in product(states, triggers)
]


@pytest.mark.parametrize(("state", "trigger", "table", "move"), PAIRS)
def test_a_pair_is_in_the_table_or_refused(
    state: Enum, trigger: Enum, table: Mapping[Any, Enum], move: Callable[..., Enum]
) -> None:
    if (state, trigger) in table:
        assert move(state, trigger) is table[state, trigger]
        return
    with pytest.raises(InvalidTransition) as caught:
        move(state, trigger, "who")
    assert caught.value.who == "who"
    assert caught.value.trigger == str(trigger)


def test_an_eviction_that_is_undone_ends_running_even_if_it_began_bound() -> None:
    evicted = task.move(task.TaskStatus.BOUND, task.TaskTrigger.EVICT)
    assert task.move(evicted, task.TaskTrigger.UNEVICT) is task.TaskStatus.RUNNING


def test_only_an_admitted_job_stays_admitted_when_it_is_short() -> None:
    short = pod_group.PodGroupTrigger.SHORT
    stays = [phase for phase in pod_group.PodGroupPhase if pod_group.move(phase, short) is phase]
    assert stays == [pod_group.PodGroupPhase.PENDING, pod_group.PodGroupPhase.INQUEUE]


def test_the_array_says_what_the_table_says() -> None:
    for phase, (index, trigger) in product(pod_group.PodGroupPhase, enumerate(pod_group.FINDINGS)):
        assert pod_group.AFTER_FINDING[phase, index] == pod_group.TRANSITIONS[phase, trigger]


@pytest.mark.parametrize(
    ("running", "scheduled", "completed", "needed", "unschedulable", "expected"),
    [
        (1, 1, 0, 2, True, pod_group.PodGroupTrigger.RUNS_UNSCHEDULABLE),
        (1, 1, 0, 2, False, pod_group.PodGroupTrigger.SHORT),
        (2, 2, 0, 2, False, pod_group.PodGroupTrigger.SCHEDULED),
        (0, 2, 2, 2, False, pod_group.PodGroupTrigger.COMPLETED),
        (
            0,
            0,
            0,
            0,
            False,
            pod_group.PodGroupTrigger.COMPLETED,
        ),  # minMember 0 with nothing scheduled, as Volcano has it
        (0, 1, 1, 2, True, pod_group.PodGroupTrigger.SHORT),
    ],
)
def test_findings(
    running: int, scheduled: int, completed: int, needed: int, unschedulable: bool, expected: pod_group.PodGroupTrigger
) -> None:
    counts = [np.array([n]) for n in (running, scheduled, completed, needed)]
    found = pod_group.finding(counts[0], counts[1], counts[2], counts[3], np.array([unschedulable]))
    assert pod_group.FINDINGS[found[0]] is expected
