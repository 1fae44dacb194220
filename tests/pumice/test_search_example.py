"""The search in examples/search: a proposer, a judge in a sandbox, and the best stay."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from examples.search.search import BASELINE, Candidate, formula, held_out, policy_of, search, toy
from pumice.questions.evaluation.sandbox import is_supported


@pytest.mark.slow
@pytest.mark.skipif(not is_supported(), reason="a sandbox needs Linux on x86-64 or Arm")
def test_the_best_stay_and_what_fails_is_passed_over() -> None:
    proposed = iter(["-gpu_left", "cpu_idle / 0 +", "__import__('os').abort()", "-gpu_left - cpu_left"])

    def in_turn(chance: random.Random, best: Sequence[Candidate]) -> str:
        return next(proposed)

    best = search(4, None, in_turn)
    assert {each.formula for each in best} <= {"-gpu_left", "-gpu_left - cpu_left"}
    assert best[0].score >= best[-1].score > 0.5
    for policy in (policy_of(best[0].formula), BASELINE.replace("found", "binpack")):
        found = held_out(policy, None)
        assert found.figures is not None
        assert len(found.seeds) == 5


def test_a_toy_proposes_formulas_of_its_features() -> None:
    chance = random.Random(1)
    texts = {toy(chance, [Candidate("gpu_left", 0.5)] if at % 2 else []) for at in range(50)}
    assert len(texts) > 30
    assert any("gpu_left" in each for each in texts)
    assert formula(random.Random(2)) == formula(random.Random(2))
