"""Nobody sets a state but to what its life cycle answers: over the whole source, for every life cycle there is."""

import ast
from typing import Final

import pytest

from tests.kit.life_cycles import FIELDS, OTHERS, lives, offences, stores, trees


def test_every_life_cycle_is_found() -> None:
    found = {life.table: life.states for life in lives()}
    assert found == {
        "TASK_LIFE": "TaskStatus",
        "POD_GROUP_LIFE": "PodGroupPhase",
        "POD_LIFE": "PodState",
        "CONTAINER_LIFE": "ContainerState",
        "JOB_LIFE": "JobPhase",
        "QUEUE_LIFE": "QueueState",
        "FLOW_LIFE": "FlowPhase",
        "BATCH_JOB_LIFE": "BatchJobState",
    }


def test_every_field_of_a_state_is_looked_at() -> None:
    assert {name for life in lives() for name in life.fields} <= FIELDS


def test_a_state_is_set_to_what_its_life_cycle_answers() -> None:
    assert [each for path, tree in trees().items() for each in offences(path, tree)] == []


@pytest.mark.parametrize("path", OTHERS)
def test_what_is_passed_over_is_there(path: str) -> None:
    tree = trees()[path]
    assert any(True for _ in stores(tree, written=False)), "nothing of that name is set there any more"


HOME: Final = "cluster/kubelets/example.py"
BEGINS: Final = (
    "from pumice.cluster.kubelets.pod_life import POD_LIFE, PodState, PodTrigger, seen\ndef f(run, other, known):\n    "
)


@pytest.mark.parametrize(
    "wrong",
    [
        "run.state = PodState.ENDED",
        "run.state = PodState.ENDED if other else PodState.RUNNING",
        "run.state = POD_LIFE.after(run.state, other) if other else PodState.RUNNING",
        "run.state = max(known.state, run.state)",
        "run.started, run.state = 1.0, PodState.RUNNING",
        "after = PodState.ENDED; run.state = after",
        "self.tasks.status[run.row] = 4",
        "self._phase_at[run.row] = PodState.ENDED",
        "run = replace(run, state=PodState.ENDED)",
        "run.state += 1",
        "run['state'] = 'Closed'",
        "run['status'] = {'phase': 'Running'}",
    ],
)
def test_a_state_that_is_set_beside_its_table_is_found(wrong: str) -> None:
    assert offences(HOME, ast.parse(BEGINS + wrong))


@pytest.mark.parametrize(
    "right",
    [
        "run.state = POD_LIFE.after(run.state, PodTrigger.STARTED)",
        "run.state = seen(run.state, other)",
        "run.state = known.state",
        "after = POD_LIFE.step(run.state, other); run.state = after",
        "run['state'] = str(POD_LIFE.after(run.state, other))",
    ],
)
def test_what_a_life_cycle_answers_may_be_kept(right: str) -> None:
    assert not offences(HOME, ast.parse(BEGINS + right))
