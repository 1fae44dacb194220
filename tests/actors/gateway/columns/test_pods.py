"""Pods: STATUS, READY and RESTARTS as the containers have them (cases after kubernetes' own printers)."""

from typing import Any

import pytest

from pumice.actors.gateway.columns import printer_of, row

NOW = 1000.0


def cells(pod: dict[str, Any]) -> list[Any]:
    made: list[Any] = row(printer_of("Pod"), pod, NOW)["cells"]
    return made


def pod(status: dict[str, Any], *, spec: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    default = {"containers": [{"name": "main"}, {"name": "second"}]}
    return {"metadata": {"name": "p", **metadata}, "spec": spec or default, "status": status}


RUNNING: dict[str, Any] = {"ready": True, "restartCount": 0, "state": {"running": {}}}
DONE: dict[str, Any] = {"restartCount": 0, "state": {"terminated": {"reason": "Completed", "exitCode": 0}}}
READY = {"type": "Ready", "status": "True"}
SIDECAR = {
    "containers": [{"name": "main"}],
    "initContainers": [{"name": "first"}, {"name": "side", "restartPolicy": "Always"}],
}


@pytest.mark.parametrize(
    ("status", "ready", "told"),
    [
        ({"phase": "Pending"}, "0/2", "Pending"),
        ({"phase": "Failed", "reason": "Evicted"}, "0/2", "Evicted"),
        (
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            "0/2",
            "SchedulingGated",
        ),
        ({"phase": "Running", "containerStatuses": [RUNNING, RUNNING]}, "2/2", "Running"),
        (
            {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]},
            "0/2",
            "ImagePullBackOff",
        ),
        ({"phase": "Succeeded", "containerStatuses": [DONE, DONE]}, "0/2", "Completed"),
        ({"phase": "Running", "containerStatuses": [DONE, RUNNING]}, "1/2", "NotReady"),
        ({"phase": "Running", "containerStatuses": [DONE, RUNNING], "conditions": [READY]}, "1/2", "Running"),
        (
            {"phase": "Failed", "containerStatuses": [DONE, {"state": {"terminated": {"exitCode": 3}}}]},
            "0/2",
            "ExitCode:3",
        ),
        ({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"signal": 9}}}]}, "0/2", "Signal:9"),
    ],
)
def test_the_containers_decide_the_status(status: dict[str, Any], ready: str, told: str) -> None:
    assert cells(pod(status))[1:3] == [ready, told]


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ({"waiting": {}}, "Init:0/2"),
        ({"waiting": {"reason": "PodInitializing"}}, "Init:0/2"),
        ({"waiting": {"reason": "ErrImagePull"}}, "Init:ErrImagePull"),
        ({"terminated": {"exitCode": 2}}, "Init:ExitCode:2"),
        ({"terminated": {"exitCode": 2, "signal": 6}}, "Init:Signal:6"),
        ({"terminated": {"exitCode": 2, "reason": "Error"}}, "Init:Error"),
    ],
)
def test_the_first_init_container_not_done_decides_while_starting(state: dict[str, Any], told: str) -> None:
    status = {"phase": "Pending", "initContainerStatuses": [{"name": "first", "state": state}]}
    assert cells(pod(status, spec=SIDECAR))[1:3] == ["0/2", told]


def test_a_sidecar_counts_as_a_container() -> None:
    started: dict[str, Any] = {
        "name": "side",
        "started": True,
        "ready": True,
        "restartCount": 2,
        "state": {"running": {}},
    }
    first = {"name": "first", "restartCount": 5, "state": {"terminated": {"exitCode": 0}}}
    status = {"phase": "Running", "initContainerStatuses": [first, started], "containerStatuses": [RUNNING]}
    assert cells(pod(status, spec=SIDECAR))[1:4] == ["2/2", "Running", "2"]


def test_restarts_say_when_the_last_was() -> None:
    ended = {"terminated": {"finishedAt": "1970-01-01T00:15:40Z"}}
    status = {"phase": "Running", "containerStatuses": [RUNNING | {"restartCount": 3, "lastState": ended}]}
    assert cells(pod(status))[3] == "3 (60s ago)"


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ({"phase": "Running"}, "Terminating"),
        ({"phase": "Succeeded"}, "Succeeded"),
        ({"phase": "Running", "reason": "NodeLost"}, "Unknown"),
    ],
)
def test_a_pod_on_its_way_out_says_so_unless_it_has_ended(status: dict[str, Any], told: str) -> None:
    assert cells(pod(status, deletionTimestamp="1970-01-01T00:00:00Z"))[2] == told


def test_wide_cells_are_always_there() -> None:
    assert cells(pod({"phase": "Pending"}))[4:] == ["<unknown>", "<none>", "<none>", "<none>", "<none>"]
    spec = {"nodeName": "n1", "readinessGates": [{"conditionType": "Ready"}, {"conditionType": "Other"}]}
    status = {"podIPs": [{"ip": "10.0.0.1"}], "nominatedNodeName": "n2", "conditions": [READY]}
    made = cells(pod(status, spec=spec, creationTimestamp="1970-01-01T00:00:00Z"))
    assert made[4:] == ["16m", "10.0.0.1", "n1", "n2", "1/2"]


def test_a_pod_that_has_ended_is_marked() -> None:
    made = row(printer_of("Pod"), pod({"phase": "Failed"}), NOW)
    assert [one["reason"] for one in made["conditions"]] == ["Failed"]
    assert "conditions" not in row(printer_of("Pod"), pod({"phase": "Running"}), NOW)
