"""The life of a pod on its node: every state and every trigger."""

import itertools

import pytest

from actors.agents.pod_life import TRANSITIONS, State, Trigger, move

ORDER = list(State)


@pytest.mark.parametrize(("state", "trigger"), list(itertools.product(State, Trigger)))
def test_every_pair_is_in_the_table_or_means_nothing(state: State, trigger: Trigger) -> None:
    assert move(state, trigger) == TRANSITIONS.get((state, trigger))


@pytest.mark.parametrize(("pair", "after"), list(TRANSITIONS.items()))
def test_life_goes_one_way(pair: tuple[State, Trigger], after: State) -> None:
    assert ORDER.index(after) >= ORDER.index(pair[0])


def test_what_is_gone_stays_gone() -> None:
    assert not [pair for pair in TRANSITIONS if pair[0] is State.GONE]


@pytest.mark.parametrize("state", [state for state in State if state is not State.GONE])
def test_everybody_can_go(state: State) -> None:
    assert move(state, Trigger.REMOVED) is State.GONE
    assert move(state, Trigger.DELETED) is State.STOPPING
