"""Many storms: what one that cannot be run does to the others."""

from __future__ import annotations

import pytest

from pumice.proof.strangers import stress
from pumice.proof.strangers.script import StrangerScript
from pumice.proof.strangers.server import ServerFailedError
from pumice.proof.strangers.storming import Rig, ShownViolation, StormJudgement


def runs_until(failing: int) -> object:
    def run(script: StrangerScript, _: Rig) -> StormJudgement:
        if script.seed == failing:
            raise ServerFailedError("the served cluster did not start")
        return StormJudgement(script, [ShownViolation("one-node", "it moved", 1.0)])

    return run


def test_a_server_that_fails_later_leaves_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stress, "in_a_folder", runs_until(3))
    tally = stress.run_seeds(lambda seed: StrangerScript(seed=seed), range(1, 9), Rig([]), 1)
    assert tally.seeds_of["one-node"][:2] == [1, 2]
    assert (tally.problem, tally.interrupted, tally.first_left) == ("the served cluster did not start", True, 3)


def test_a_server_that_fails_at_first_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stress, "in_a_folder", runs_until(1))
    with pytest.raises(ServerFailedError):
        stress.run_seeds(lambda seed: StrangerScript(seed=seed), range(1, 9), Rig([]), 1)
