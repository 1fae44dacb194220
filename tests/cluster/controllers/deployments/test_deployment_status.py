"""When a Deployment is available, and since when."""

from typing import Any

import pytest

from pumice.cluster.controllers.deployments import deployment_status, timed_out_at
from pumice.core.objects.metadata import Object


def deployment(replicas: int = 4, strategy: Object | None = None, **status: Any) -> Object:
    spec = {"replicas": replicas, **({"strategy": strategy} if strategy else {})}
    return {"metadata": {"name": "d", "generation": 3}, "spec": spec, "status": status}


def replica_set(replicas: int, ready: int) -> Object:
    status = {"replicas": replicas, "readyReplicas": ready, "availableReplicas": ready}
    return {"metadata": {"name": "d-1"}, "spec": {"replicas": replicas}, "status": status}


def status_of(given: Object, only: Object | None, now: float) -> Object:
    return deployment_status(given, only, [] if only is None else [only], now)


def rolling(most: object) -> Object:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": most}}


@pytest.mark.parametrize(
    ("strategy", "ready", "available"),
    [
        (None, 4, "True"),
        (None, 3, "True"),
        (None, 2, "False"),
        ({"type": "Recreate"}, 3, "False"),
        (rolling(2), 2, "True"),
        (rolling(9), 0, "True"),
        (rolling("70%"), 2, "True"),
        (rolling("70%"), 1, "False"),
        (rolling("x%"), 3, "False"),
    ],
)
def test_enough_ready_pods_make_it_available(strategy: Object | None, ready: int, available: str) -> None:
    conditions = status_of(deployment(4, strategy), replica_set(4, ready), 0.0)["conditions"]
    assert conditions[0]["status"] == available


def test_without_a_replica_set_it_progresses() -> None:
    status = status_of(deployment(), None, 0.0)
    assert status["observedGeneration"] == 3
    assert [(one["type"], one["status"], one["reason"]) for one in status["conditions"]] == [
        ("Available", "False", "MinimumReplicasUnavailable"),
        ("Progressing", "True", "ReplicaSetUpdated"),
    ]


def test_times_change_with_what_they_are_the_times_of() -> None:
    first = status_of(deployment(), replica_set(4, 3), 0.0)
    second = status_of(deployment(**first), replica_set(4, 4), 60.0)
    third = status_of(deployment(**second), replica_set(4, 4), 120.0)
    available, progressing = second["conditions"]
    assert available == first["conditions"][0]
    assert progressing["reason"] == "NewReplicaSetAvailable"
    assert (progressing["lastTransitionTime"], progressing["lastUpdateTime"]) == (
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:01:00Z",
    )
    assert third == second


def test_no_progress_for_too_long_is_said() -> None:
    stuck = replica_set(4, 1)
    first = status_of(deployment(), stuck, 0.0)
    assert timed_out_at(deployment(**first), stuck) == 600.0
    before = status_of(deployment(**first), stuck, 599.0)
    assert before["conditions"][1]["status"] == "True"
    after = status_of(deployment(**before), stuck, 600.0)
    assert (after["conditions"][1]["status"], after["conditions"][1]["reason"]) == ("False", "ProgressDeadlineExceeded")
    assert status_of(deployment(**after), stuck, 900.0) == after
