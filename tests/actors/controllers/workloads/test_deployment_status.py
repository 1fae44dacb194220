"""When a Deployment is available, and since when."""

from typing import Any

import pytest

from actors.controllers.workloads.deployment_status import deployment_status


def deployment(replicas: int = 4, strategy: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    spec = {"replicas": replicas, **({"strategy": strategy} if strategy else {})}
    return {"metadata": {"name": "d", "generation": 3}, "spec": spec, "status": status}


def replica_set(replicas: int, ready: int) -> dict[str, Any]:
    return {"status": {"replicas": replicas, "readyReplicas": ready}}


def rolling(most: object) -> dict[str, Any]:
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
def test_enough_ready_pods_make_it_available(strategy: dict[str, Any] | None, ready: int, available: str) -> None:
    conditions = deployment_status(deployment(4, strategy), replica_set(4, ready), 0.0)["conditions"]
    assert conditions[0]["status"] == available


def test_without_a_replica_set_it_progresses() -> None:
    status = deployment_status(deployment(), None, 0.0)
    assert status["observedGeneration"] == 3
    assert [(one["type"], one["status"], one["reason"]) for one in status["conditions"]] == [
        ("Available", "False", "MinimumReplicasUnavailable"),
        ("Progressing", "True", "ReplicaSetUpdated"),
    ]


def test_times_change_with_what_they_are_the_times_of() -> None:
    first = deployment_status(deployment(), replica_set(4, 3), 0.0)
    second = deployment_status(deployment(**first), replica_set(4, 4), 60.0)
    third = deployment_status(deployment(**second), replica_set(4, 4), 120.0)
    available, progressing = second["conditions"]
    assert available == first["conditions"][0]
    assert progressing["reason"] == "NewReplicaSetAvailable"
    assert (progressing["lastTransitionTime"], progressing["lastUpdateTime"]) == (
        "1970-01-01T00:00:00Z",
        "1970-01-01T00:01:00Z",
    )
    assert third == second
