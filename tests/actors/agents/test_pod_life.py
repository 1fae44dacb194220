"""The life of a pod on its node: every state and every trigger."""

import itertools

import pytest

from actors.agents.pod_life import TRANSITIONS, PodState, PodTrigger, move

ORDER = list(PodState)


@pytest.mark.parametrize(("state", "trigger"), list(itertools.product(PodState, PodTrigger)))
def test_every_pair_is_in_the_table_or_means_nothing(state: PodState, trigger: PodTrigger) -> None:
    assert move(state, trigger) == TRANSITIONS.get((state, trigger))


@pytest.mark.parametrize(("pair", "after"), list(TRANSITIONS.items()))
def test_life_goes_one_way(pair: tuple[PodState, PodTrigger], after: PodState) -> None:
    assert ORDER.index(after) >= ORDER.index(pair[0])


def test_what_is_gone_stays_gone() -> None:
    assert not [pair for pair in TRANSITIONS if pair[0] is PodState.GONE]


@pytest.mark.parametrize("state", [state for state in PodState if state is not PodState.GONE])
def test_everybody_can_go(state: PodState) -> None:
    assert move(state, PodTrigger.REMOVED) is PodState.GONE
    assert move(state, PodTrigger.DELETED) is PodState.STOPPING
