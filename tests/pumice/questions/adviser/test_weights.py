"""Weights of queues divide only what pods ask for that exist: said where jobs wait for admission."""

from __future__ import annotations

import pytest

from pumice.questions.adviser.queues import weights_remark
from pumice.questions.adviser.waiting_jobs import waiting_jobs_of
from tests.kit import gang, node, pod_group, queue
from tests.pumice.questions.adviser.test_reasons import STOCK, scene

FULL = gang("old", pods=4, nodes=["n"] * 4, phase="Running", queue="batch")
WAITS = pod_group("new", queue="prod", min_resources={"cpu": "4"})


@pytest.mark.parametrize(
    ("weights", "config", "told"),
    [
        ({"prod": 6, "batch": 1}, STOCK, True),
        ({"prod": 1, "batch": 1}, STOCK, False),
        ({"prod": 6, "batch": 1}, STOCK.replace("enqueue, ", ""), False),
    ],
)
def test_weights_of_jobs_that_wait_for_admission_are_remarked(weights: dict[str, int], config: str, told: bool) -> None:
    queues = [queue(name, weight=weight) for name, weight in weights.items()]
    found = scene(node("n", cpu="4"), *queues, *FULL, WAITS, config=config)
    remark = weights_remark(found.config, weights, waiting_jobs_of(found))
    assert ("1 job of prod (weight 6) wait for admission" in remark) is told
    assert bool(remark) is told
