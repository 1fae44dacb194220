"""Draining a node asks the api for evictions, and budgets are heard."""

from __future__ import annotations

import pytest

from pumice.core.configuration import parse_scheduler_config
from pumice.proof.storm.invariants.upheld import asks_budgets
from pumice.proof.storm.script.events import Event, Script
from pumice.proof.storm.script.profiles import profile
from pumice.proof.storm.simulation import simulate

NODE = Event("node", target="n7", details={"cpu": 8, "memory": "16Gi"})
JOB = Event("job", 0.5, target="j", details={"pods": 3, "min": 1, "cpu": "1", "memory": "1Gi"})
DRAIN = Event("drain", 5.0, target="n7", amount=4)


@pytest.mark.parametrize(("least", "left"), [(0, 0), (2, 2), (3, 3), (9, 3)])
def test_a_budget_keeps_its_pods_on_a_node_that_is_drained(least: int, left: int) -> None:
    budget = Event("budget", 0.6, target="j", amount=least)
    outcome = simulate(Script(least, (NODE, JOB, budget, DRAIN), faults_end_s=12.0))
    assert outcome.violations == []
    assert list(outcome.pods.values()) == [("n7", "Running")] * left


def test_an_eviction_that_is_refused_is_asked_for_again() -> None:
    """The api says 429 for no reason to the first request; the second one goes through."""
    refused = [Event("evict-blocked", on=f"eviction default/j-{number} #1") for number in range(3)]
    once = Event("drain", 5.0, target="n7", amount=1)
    assert len(simulate(Script(1, (NODE, JOB, once, *refused), faults_end_s=12.0)).pods) == 3
    assert len(simulate(Script(1, (NODE, JOB, DRAIN, *refused), faults_end_s=12.0)).pods) == 0


def test_a_node_that_is_gone_is_not_drained() -> None:
    gone = Event("remove-node", 4.0, target="n7")
    assert simulate(Script(1, (NODE, JOB, gone, DRAIN), faults_end_s=12.0)).violations == []


def test_whether_victims_are_the_budgets_business() -> None:
    victims = profile("victims").config
    assert asks_budgets(parse_scheduler_config(victims, source="test"))
    assert not asks_budgets(parse_scheduler_config(victims.replace("preempt", "gangpreempt"), source="test"))
    assert not asks_budgets(parse_scheduler_config(f"{victims}\n  - name: binpack\n", source="test"))
