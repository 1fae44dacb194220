"""What hurt real users, as storms of a few events."""

from __future__ import annotations

from typing import Any

from pumice.proof.storm.script.events import Event, Script
from pumice.proof.storm.simulation import StormOutcome, simulate


def storm(*events: Event, seed: int = 1, end_s: float = 12.0) -> StormOutcome:
    outcome = simulate(Script(seed=seed, events=events, faults_end_s=end_s))
    assert outcome.violations == []
    return outcome


def node(name: str, cpu: int, *, at: float = 0.0) -> Event:
    return Event("node", at, target=name, details={"cpu": cpu, "memory": "16Gi"})


def job(name: str, pods: int, *, at: float = 0.1, **details: Any) -> Event:
    return Event("job", at, target=name, details={"pods": pods, "cpu": "1", "memory": "1Gi", **details})


def on_nodes(outcome: StormOutcome, name: str) -> list[str]:
    return [node for key, (node, _) in outcome.pods.items() if key.startswith(f"default/{name}-") and node]


def running(outcome: StormOutcome, name: str) -> int:
    pods = outcome.pods.items()
    return sum(1 for key, (_, phase) in pods if key.startswith(f"default/{name}-") and phase == "Running")


def test_a_gang_that_grows_is_not_started_in_part() -> None:
    """Volcano #6010: a cycle on a PodGroup read before minMember rose bound some of the new pods."""
    for seed in range(10):
        outcome = storm(
            node("n0", 3), job("g", 2), Event("scale-up", round(2.5 + seed / 10, 1), target="g", amount=2),
            Event("watch-broken", on="watch Node+Queue #5"), seed=seed,
        )  # fmt: skip
        assert len(on_nodes(outcome, "g")) == 2


def test_a_failed_bind_is_tried_again_though_the_group_runs() -> None:
    """Volcano #4383: after a failed bind the pod stayed pending while its PodGroup said Running."""
    faults = [Event("bind-refused", on=f"bind default/g-1 #{number}") for number in range(1, 5)]
    outcome = storm(node("n0", 8), job("g", 3), *faults)
    assert (running(outcome, "g"), outcome.groups["default/g"]) == (3, "Running")


def test_a_group_does_not_say_running_while_a_pod_of_it_is_pending() -> None:
    """Volcano #4383: nobody bound the pod again, and the phase hid it."""
    refused = Event("bind-refused", on="bind default/g-1 #1")
    outcome = storm(node("n0", 8), job("g", 3), refused, Event("cordon", 1.2, target="n0"))
    assert (running(outcome, "g"), outcome.groups["default/g"]) == (2, "Unknown")


def test_one_failed_bind_does_not_lose_what_became_of_the_others() -> None:
    """Volcano #2865: one failed bind of a batch dropped the success events of the rest."""
    faults = [Event("bind-lost", on="bind default/g-0 #1"), Event("bind-unanswered", on="bind default/g-3 #1")]
    outcome = storm(node("n0", 8), job("g", 6), *faults)
    assert running(outcome, "g") == 6
    assert outcome.virtual_s < 60  # one bind waited 30 s for its answer; lost outcomes would be given up after 90 s


def test_an_update_of_a_pod_on_its_way_keeps_its_room_taken() -> None:
    """Volcano #1857: an update of an assumed pod made the cache forget the assumption, and the room was given twice."""
    touches = [Event("touch-pod", round(0.7 + number / 10, 1), target="g", amount=number) for number in range(20)]
    faults = [Event("bind-delayed", on=f"bind default/g-{number} #1", amount=3.0) for number in range(4)]
    outcome = storm(node("n0", 4), job("g", 4), *touches, *faults, job("h", 2, at=1.0))
    assert (running(outcome, "g"), on_nodes(outcome, "h")) == (4, [])


def test_one_bad_volume_blocks_nobody_else() -> None:
    """Volcano #2843: a pod whose claim does not exist stopped all others."""
    outcome = storm(node("n0", 8), job("bad", 1, claim="nowhere"), job("good", 3))
    assert (on_nodes(outcome, "bad"), running(outcome, "good")) == ([], 3)


def test_a_pod_whose_bind_failed_is_scheduled_again() -> None:
    """YuniKorn PRs 1041 and 1062: a pod was not scheduled again after a bind error."""
    refused = [Event("bind-refused", on=f"bind default/g-0 #{number}") for number in range(1, 4)]
    outcome = storm(node("n0", 2), job("g", 1), *refused)
    assert outcome.pods["default/g-0"] == ("n0", "Running")
    assert [fault.what for fault in outcome.struck] == ["bind-refused"] * 3


def test_a_pod_whose_bind_failed_goes_to_another_node_when_the_first_will_not_have_it() -> None:
    """YuniKorn PRs 1041 and 1062: after a bind error the pod kept its allocation on the node."""
    refused = Event("bind-refused", on="bind default/g-0 #1")
    outcome = storm(
        node("n0", 2), job("g", 1, at=0.45), refused, Event("cordon", 0.7, target="n0"), node("n1", 2, at=3)
    )
    assert outcome.pods["default/g-0"] == ("n1", "Running")
    assert outcome.struck == [refused]


def test_a_pod_whose_node_vanished_under_its_bind_is_made_anew_and_goes_to_another_one() -> None:
    """YuniKorn PRs 1041 and 1062, with the node gone between decision and bind, and the next bind refused."""
    gone = Event("bind-node-removed", on="bind default/g-worker-0 #1")
    again = Event("bind-refused", on="bind default/g-worker-0 #2")
    alone = Event("vcjob", 0.1, target="g", details={"pods": 1, "cpu": "1", "memory": "1Gi"})
    outcome = storm(node("n0", 2), node("n1", 2), alone, gone, again, end_s=90.0)
    assert outcome.pods["default/g-worker-0"] == ("n1", "Running")
    assert [fault.what for fault in outcome.struck] == ["bind-node-removed", "bind-refused"]
