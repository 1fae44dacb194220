"""What storms have found in the actors, each cut down to the events that matter."""

from __future__ import annotations

import pytest

from pumice.proof.storm.script.events import Event, Script
from pumice.proof.storm.script.profiles import profile
from pumice.proof.storm.script.workload import Size
from pumice.proof.storm.simulation import simulate
from pumice.proof.storm.stress import StressPlan, script_of

NODE = Event("node", target="n7", details={"cpu": 8, "memory": "16Gi"})
JOB = Event("job", 3.6, target="j", details={"pods": 2, "cpu": "2", "memory": "2Gi", "seconds": 3})
STATUS = "status PodGroup default/j by scheduler #1"


@pytest.mark.parametrize("seed", [7002015, 7002072, 7002171, 7002205])
def test_what_is_late_does_not_come_true_over_what_was_decided_since(seed: int) -> None:
    """A pod was bound and deleted, and looked at before the watch had told of either. A claim was written that nobody
    waited for any more: a device was given twice, a pod was on one node and its volume on another. The device of a pod
    that had ended was given away while its claim was being written.
    """
    assert simulate(script_of(seed, StressPlan("late", size=Size(5, 40)))).violations == []


@pytest.mark.parametrize("seed", range(5))
def test_a_bind_on_its_way_survives_a_crash_of_the_cache(seed: int) -> None:
    """A new cache did not count it: the pod was bound a second time, its room given to others."""
    late = Event("bind-delayed", on="bind default/j-1 #1", amount=3.1)
    crash = Event("crash", on=STATUS, target="cache", amount=15)
    assert simulate(Script(seed, (NODE, JOB, late, crash))).violations == []


@pytest.mark.parametrize("actor", ["session-runner", "cache", "api-server", "bind-worker:0", "status-writer"])
def test_a_crash_at_any_moment_of_a_cycle_is_made_good(actor: str) -> None:
    """A cycle that was recorded and not handed out was decided again; a change in the store missed the journal."""
    for steps in range(0, 40, 3):
        crash = Event("crash", on="watch Node+Queue #6", target=actor, amount=steps)
        outcome = simulate(Script(steps, (NODE, JOB, crash), faults_end_s=8.0))
        assert (outcome.violations, len(outcome.struck)) == ([], 1)


@pytest.mark.parametrize("what", ["journal-failing", "journal-unsure", "journal-torn"])
def test_nobody_waits_for_a_recorder_that_has_died(what: str) -> None:
    """Those who shield their wait for the recorder kept the process from ending."""
    for number in range(1, 18, 2):
        outcome = simulate(Script(number, (NODE, JOB, Event(what, on=f"append #{number}")), faults_end_s=8.0))
        assert (outcome.violations, outcome.lives) == ([], 2)


def test_the_first_queues_are_created_again_when_the_api_crashes_over_them() -> None:
    for steps in range(8):
        crash = Event("crash", on="watch Node+Pod:placed #1", target="api-server", amount=steps)
        outcome = simulate(Script(steps, (NODE, JOB, crash), faults_end_s=8.0))
        assert (outcome.violations, len(outcome.struck)) == ([], 1)


def test_what_became_of_a_pod_that_is_gone_does_not_undo_the_bind_of_its_namesake() -> None:
    """A failed bind was undone by name, while the pod that the controller had made anew was on its way."""
    job = Event("vcjob", 5.612, target="j3", details={"pods": 8, "cpu": "1", "memory": "1Gi", "seconds": 0})
    faults = (
        Event("bind-pod-deleted", on="bind default/j3-worker-5 #1"),
        Event("bind-delayed", on="bind default/j3-worker-7 #1", amount=0.6295),
        Event("bind-delayed", on="bind default/j3-worker-5 #2", amount=1.5906),
    )
    for seed in range(12):
        assert simulate(Script(seed, (NODE, job, *faults))).violations == []


def test_a_new_cache_does_not_take_a_pod_for_its_namesake_on_its_way() -> None:
    """It held the bind of a pod that had gone against the one made in its place: the gang went on without that one."""
    job = Event("vcjob", 3.6, target="j", details={"pods": 3, "cpu": "2", "memory": "2Gi", "grace": 0})
    first = [Event("delete-pod", 4.5, target="j")] * 2
    faults = (
        Event("bind-pod-deleted", on="bind default/j-worker-0 #2"),
        Event("bind-answered-late", on="bind default/j-worker-1 #2", amount=6.0),
    )
    third = Event("delete-pod", 4.8, target="j", amount=2)
    touch = Event("touch-pod", 4.9, target="j", amount=1)  # an occasion at a time
    for steps in range(10):
        crash = Event("crash", on="patch Pod default/j-worker-1 by submit #1", target="cache", amount=steps)
        assert simulate(Script(steps, (NODE, job, *first, third, touch, *faults, crash))).violations == []


def test_the_refused_bind_of_a_pod_is_undone_though_its_namesake_is_still_on_its_way() -> None:
    """An answer was late for the pod that had gone, so the one made in its place was held as bound for ever."""
    job = Event("vcjob", 3.6, target="j", details={"pods": 2, "cpu": "2", "memory": "2Gi", "grace": 0})
    faults = (
        Event("bind-answered-late", on="bind default/j-worker-0 #1", amount=8.0),
        Event("bind-refused", on="bind default/j-worker-0 #2"),
    )
    for seed in range(5):
        again = Event("delete-pod", 4.5, target="j")
        outcome = simulate(Script(seed, (NODE, job, again, *faults)))
        assert outcome.violations == []
        assert outcome.pods["default/j-worker-0"][0] == "n7"


def test_a_bind_of_a_worker_that_crashed_may_still_come_true() -> None:
    """Its successor was refused and said so; the pod was decided anew, and then bound to the first node after all."""
    job = Event("job", 3.6, target="j", details={"pods": 1, "cpu": "2", "memory": "2Gi"})
    late = Event("bind-delayed", on="bind default/j-0 #1", amount=6.0)
    refused = [Event("bind-refused", on=f"bind default/j-0 #{number}") for number in range(2, 4)]
    touch = Event("touch-pod", 4.4, target="j")  # an occasion at a time
    elsewhere = (Event("cordon", 4.5, target="n7"), Event("node", 4.5, target="n8", details=NODE.details))
    for worker in range(2):
        crash = Event("crash", on="patch Pod default/j-0 by submit #1", target=f"bind-worker:{worker}", amount=3)
        outcome = simulate(Script(worker, (NODE, job, touch, *elsewhere, late, *refused, crash)))
        assert outcome.violations == []
        assert outcome.pods["default/j-0"] == ("n7", "Running")


CARDS = profile("cards").config
CELLS = Event("node", target="n7", details={"cpu": 8, "memory": "16Gi", "cards": 2, "cells": 2})
WHOLE = {"pods": 2, "cpu": "2", "memory": "1Gi", "whole": 1}


def test_pods_whose_node_has_gone_have_no_shares_there() -> None:
    """What a job's cards amount to was looked up in the last row of no rows, and the cycle was lost."""
    gone = Event("bind-node-removed", on="bind default/j-1 #1", amount=1.5837)
    job = Event("job", 3.6, target="j", details=WHOLE | {"seconds": 0})
    for seed in range(4):
        assert simulate(Script(seed, (CELLS, job, gone), config=CARDS)).violations == []


@pytest.mark.parametrize("seconds", [0, 5])
def test_pods_keep_their_cpus_while_their_node_is_away(seconds: int) -> None:
    """The node agents forgot them, and died of those that ended meanwhile."""
    job = Event("job", 3.6, target="j", details=WHOLE | {"seconds": seconds})
    away = (Event("remove-node", 6.0, target="n7"), Event("restore-node", 12.0, target="n7"))
    for seed in range(4):
        assert simulate(Script(seed, (CELLS, job, *away), config=CARDS)).violations == []


def test_pod_without_requests_on_node_smaller_than_its_pods_waits() -> None:
    """backfill chooses the node, which has too little cpu; the bind is refused, and the queue counts the pod."""
    job = Event("job", details={"pods": 3, "cpu": "1", "memory": "1Gi", "seconds": 0}, target="j")
    shrunk = Event("shrink-node", 4.0, target="n7")
    loose = Event("pods", 6.0, target="loose", details={"pods": 1, "seconds": 0})
    outcome = simulate(Script(1, (NODE, job, shrunk, loose)))
    assert outcome.violations == []
    assert outcome.pods["default/loose-0"][0] == ""


def test_a_storm_in_which_hardly_an_eviction_is_answered_ends() -> None:
    """Who drained the node asked for everything again as long as any answer was lost, and all of them never came."""
    job = Event("job", details={"pods": 8, "cpu": "1", "memory": "1Gi", "seconds": 0}, target="j")
    drain = Event("drain", 4.0, target="n7", amount=5)
    outcome = simulate(Script(0, (NODE, job, drain), {"evict-lost": 0.95}), longest_s=20)
    assert outcome.violations == []
    assert outcome.virtual_s < 2000


@pytest.mark.parametrize("seed", range(4))
def test_a_bind_that_was_given_up_does_not_come_true_over_the_next_decision(seed: int) -> None:
    """It lay in the network for longer than anybody waited, and put the pod where nobody wanted it by then."""
    small = [Event("node", target=f"n{number}", details={"cpu": 2, "memory": "16Gi"}) for number in range(4)]
    job = Event("job", 3.6, target="j", details={"pods": 2, "cpu": "2", "memory": "2Gi", "seconds": 0})
    late = [Event("bind-delayed", on=f"bind default/j-{number} #1", amount=31.5 + number) for number in (0, 1)]
    again = [Event("bind-delayed", on=f"bind default/j-{number} #2", amount=5.0) for number in (0, 1)]
    away = [Event("cordon", 4.7, target=f"n{number}") for number in (0, 1)]
    outcome = simulate(Script(seed, (*small, job, *late, *again, *away), faults_end_s=40.0))
    assert outcome.violations == []
    assert all(node for node, _ in outcome.pods.values())


@pytest.mark.parametrize("seed", range(3))
def test_what_a_status_could_not_say_is_said_when_it_can_be(seed: int) -> None:
    """It was given up after five conflicts, and nobody looked again: a pod waited for good without a reason."""
    conflicts = [
        Event("status-conflict", on=f"status {what} by scheduler #{number}")
        for what in ("Pod default/j-0", "Pod default/j-1", "PodGroup default/j")
        for number in range(1, 11)
    ]
    assert simulate(Script(seed, (JOB, *conflicts))).violations == []


def test_cells_go_with_their_node_even_while_nobody_reports_them() -> None:
    """Agents that began while the node was away knew nothing of it, and left the CPUs of its pods taken for ever."""
    cells = Event("node", target="n11", details={"cpu": 8, "memory": "16Gi", "pods": 6, "cards": 2, "cells": 2})
    held = Event("job", 0.136, target="j17", details={"pods": 1, "cpu": "3", "memory": "1Gi", "seconds": 5, "whole": 1})
    job = Event("vcjob", 0.875, target="j3", details={"pods": 4, "cpu": "1", "memory": "1Gi", "seconds": 0, "whole": 1})
    crash = Event("crash", on="status Queue /default by scheduler #2", target="node-agents", amount=25.0)
    gone = Event("bind-node-removed", on="bind default/j3-worker-3 #1", amount=8.0)
    for seed in range(3):
        assert simulate(Script(seed, (cells, held, job, crash, gone))).violations == []


@pytest.mark.parametrize("seed", range(3))
def test_room_made_for_a_pod_of_the_other_scheduler_is_not_lost_to_what_replaces_its_victims(seed: int) -> None:
    """Volcano's had its turn first: the pods that were made anew had the room again, were evicted again, and so on."""
    node = Event("node", target="n7", details={"cpu": 16, "memory": "16Gi"})
    job = Event("vcjob", 4.471, target="j", details={"pods": 4, "cpu": "1", "memory": "1Gi", "seconds": 0, "min": 3})
    of_others = {"cpu": "3", "priority": "high", "scheduler": "default-scheduler", "seconds": 0}
    two = Event("pods", 3.206, target="two", details={"pods": 2, **of_others})
    three = Event("pods", 7.065, target="three", details={"pods": 3, **of_others})
    events = (node, Event("priority", target="high", amount=1000), two, job, three)
    outcome = simulate(Script(seed, events, config=profile("both").config))
    assert outcome.violations == []
    assert {name for name, (on, _) in outcome.pods.items() if on} >= {f"default/{of}" for of in ("two-0", "three-2")}


def test_the_first_snapshot_of_a_new_cache_is_no_news_to_the_cycle_that_asked_for_it() -> None:
    """It changes how volumes count; at the next news that changed nothing a cycle was due that nobody called for."""
    node = Event("node", target="n0", details={"cpu": 16, "memory": "32Gi"})
    patches = Event("shrink-node", 1.583, target="n0", amount=0.5), Event("restore-node", 3.961, target="n0")
    crash = Event("crash", on="patch Node /n0 by submit #1", target="cache")
    assert simulate(Script(3, (node, *patches, crash))).violations == []
