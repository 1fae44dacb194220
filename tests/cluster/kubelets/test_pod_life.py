"""The lives of a pod and of a container on their node, where they lead."""

import itertools

import pytest

from pumice.cluster.kubelets.container_life import CONTAINER_LIFE, ContainerState, ContainerTrigger
from pumice.cluster.kubelets.pod_life import POD_LIFE, PodState, PodTrigger, seen

ORDER = list(PodState)
# What an agent knows, and what the api says: the later of the two, and stopping does not end by hearsay.
SEEN = {
    PodState.STARTING: {"Running": PodState.RUNNING, "Succeeded": PodState.ENDED, "Failed": PodState.ENDED},
    PodState.RUNNING: {"Succeeded": PodState.ENDED, "Failed": PodState.ENDED},
    PodState.ENDED: {},
    PodState.STOPPING: {},
    PodState.GONE: {},
}


@pytest.mark.parametrize(("pair", "after"), list(POD_LIFE.transitions.items()))
def test_life_goes_one_way(pair: tuple[PodState, PodTrigger], after: PodState) -> None:
    assert ORDER.index(after) >= ORDER.index(pair[0])


def test_what_is_gone_stays_gone() -> None:
    assert not [pair for pair in POD_LIFE.transitions if pair[0] is PodState.GONE]


@pytest.mark.parametrize("state", [state for state in PodState if state is not PodState.GONE])
def test_everybody_can_go(state: PodState) -> None:
    assert POD_LIFE.step(state, PodTrigger.REMOVED) is PodState.GONE
    assert POD_LIFE.step(state, PodTrigger.DELETED) is PodState.STOPPING


@pytest.mark.parametrize(
    ("state", "phase"),
    list(itertools.product(PodState, ("Pending", "Running", "Succeeded", "Failed", "Unknown", "", None))),
)
def test_what_the_api_says_never_takes_a_pod_back(state: PodState, phase: str | None) -> None:
    assert seen(state, phase) is SEEN[state].get(phase or "", state)


def test_a_container_never_waits_for_its_first_start_again() -> None:
    assert ContainerState.WAITING not in CONTAINER_LIFE.transitions.values()


@pytest.mark.parametrize("state", [state for state in ContainerState if state is not ContainerState.RUNNING])
def test_whatever_does_not_run_can_be_started_and_is_not_killed(state: ContainerState) -> None:
    assert CONTAINER_LIFE.step(state, ContainerTrigger.STARTED) is ContainerState.RUNNING
    assert CONTAINER_LIFE.step(state, ContainerTrigger.KILLED) is None
