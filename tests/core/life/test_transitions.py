"""Every state with every trigger: a pair is in its table, or it is refused and says who, where and what."""

from enum import Enum
from itertools import product
from typing import Any

import numpy as np
import pytest

from pumice.cluster.controllers.batch.rule import BATCH_JOB_LIFE, BatchJobState, BatchJobTrigger
from pumice.cluster.controllers.flows import FLOW_LIFE, FlowPhase, FlowTrigger
from pumice.cluster.controllers.jobs import life as jobs
from pumice.cluster.controllers.queues import QUEUE_LIFE, QueueState, QueueTrigger
from pumice.cluster.kubelets import container_life as containers
from pumice.cluster.kubelets import pod_life as pods
from pumice.core.errors import InvalidTransition
from pumice.core.life import pod_group, task
from pumice.core.life.cycle import LifeCycle

LIVES: list[tuple[type[Enum], type[Enum], LifeCycle[Any, Any]]] = [
    (task.TaskStatus, task.TaskTrigger, task.TASK_LIFE),
    (pod_group.PodGroupPhase, pod_group.PodGroupTrigger, pod_group.POD_GROUP_LIFE),
    (pods.PodState, pods.PodTrigger, pods.POD_LIFE),
    (containers.ContainerState, containers.ContainerTrigger, containers.CONTAINER_LIFE),
    (jobs.JobPhase, jobs.PhaseTrigger, jobs.JOB_LIFE),
    (FlowPhase, FlowTrigger, FLOW_LIFE),
    (BatchJobState, BatchJobTrigger, BATCH_JOB_LIFE),
    (QueueState, QueueTrigger, QUEUE_LIFE),
]
PAIRS = [
    pytest.param(state, trigger, life, id=f"{states.__name__}-{state.name}-{trigger.name}")
    for states, triggers, life in LIVES
    for state, trigger in product(states, triggers)
]


@pytest.mark.parametrize(("state", "trigger", "life"), PAIRS)
def test_a_pair_is_in_the_table_or_refused(state: Enum, trigger: Enum, life: LifeCycle[Any, Any]) -> None:
    if (state, trigger) in life.transitions:
        found = life.transitions[state, trigger]
        assert life.step(state, trigger) is life.after(state, trigger) is life.move(state, trigger, "who") is found
        return
    assert life.step(state, trigger) is None
    assert life.after(state, trigger) is state
    with pytest.raises(InvalidTransition) as caught:
        life.move(state, trigger, "who")
    assert (caught.value.who, caught.value.trigger) == ("who", str(trigger))
    assert caught.value.state == state.name.capitalize()


@pytest.mark.parametrize(("states", "triggers", "life"), LIVES, ids=lambda each: getattr(each, "__name__", ""))
def test_every_trigger_moves_something_and_no_row_is_of_another_life(
    states: type[Enum], triggers: type[Enum], life: LifeCycle[Any, Any]
) -> None:
    assert {trigger for _, trigger in life.transitions} == set(triggers)
    assert {type(each) for (state, _), after in life.transitions.items() for each in (state, after)} == {states}


def test_an_eviction_that_is_undone_ends_running_even_if_it_began_bound() -> None:
    evicted = task.TASK_LIFE.after(task.TaskStatus.BOUND, task.TaskTrigger.EVICT)
    assert task.TASK_LIFE.after(evicted, task.TaskTrigger.UNEVICT) is task.TaskStatus.RUNNING


def test_only_an_admitted_job_stays_admitted_when_it_is_short() -> None:
    short = pod_group.PodGroupTrigger.SHORT
    stays = [phase for phase in pod_group.PodGroupPhase if pod_group.POD_GROUP_LIFE.after(phase, short) is phase]
    assert stays == [pod_group.PodGroupPhase.PENDING, pod_group.PodGroupPhase.INQUEUE]


def test_the_array_says_what_the_table_says() -> None:
    for phase, (index, trigger) in product(pod_group.PodGroupPhase, enumerate(pod_group.FINDINGS)):
        assert pod_group.AFTER_FINDING[phase, index] == pod_group.POD_GROUP_LIFE.transitions[phase, trigger]


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
