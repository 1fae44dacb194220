"""Pods into tasks: status, requests, priorities, and what makes two pods one template."""

from __future__ import annotations

from typing import Any, cast

import pytest

from pumice.core.life.task import TaskStatus
from pumice.core.objects.pod import TemplateTable, pod_index, pod_state, read_task
from pumice.core.objects.pod_template import nonzero_request, pod_request
from pumice.core.state.dimensions import Dimensions
from tests.kit.pods import pod


@pytest.mark.parametrize(
    ("phase", "node", "deleting", "expected"),
    [
        ("Pending", "", False, TaskStatus.PENDING),
        ("Pending", "n", False, TaskStatus.BOUND),
        ("Pending", "n", True, TaskStatus.RELEASING),
        ("Running", "n", False, TaskStatus.RUNNING),
        ("Running", "n", True, TaskStatus.RELEASING),
        ("Succeeded", "n", False, TaskStatus.SUCCEEDED),
        ("Failed", "n", True, TaskStatus.FAILED),
        ("", "", False, TaskStatus.UNKNOWN),
    ],
)
def test_status(phase: str, node: str, deleting: bool, expected: TaskStatus) -> None:
    obj = {
        "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {},
        "spec": {"nodeName": node},
        "status": {"phase": phase},
    }
    assert pod_state(obj)[0] is expected


def container(cpu: str, memory: str = "0", **more: Any) -> dict[str, Any]:
    return {"resources": {"requests": {"cpu": cpu, "memory": memory}}, **more}


def test_init_containers_count_at_their_peak_and_sidecars_all_along() -> None:
    spec = {
        "containers": [container("1"), container("500m")],
        "initContainers": [container("200m", restartPolicy="Always"), container("3"), container("2")],
        "overhead": {"cpu": "100m"},
    }
    # containers and sidecar: 1.7; init peak: 3 + the sidecar that runs already; overhead on top
    assert pod_request(spec).milli_cpu == 3300.0
    assert (pod_request(spec).scalars or {})["pods"] == 1.0


def test_pod_level_requests_replace_the_sum() -> None:
    spec = {"containers": [container("1", "1Gi")], "resources": {"requests": {"cpu": "4"}}}
    request = pod_request(spec)
    assert (request.milli_cpu, request.memory) == (4000.0, 2.0**30)


def test_scorers_assume_something_for_containers_that_ask_for_nothing() -> None:
    assert nonzero_request({"containers": [{}, container("1", "1Gi")]}) == (1100.0, 200.0 * 2**20 + 2.0**30)


def test_what_differs_between_the_pods_of_a_role_does_not_split_their_template() -> None:
    table = TemplateTable(Dimensions())
    first, second = pod("a", group="j"), pod("b", group="j", node="n0", labels={"index": "1"})
    first["spec"]["containers"][0]["env"] = [{"name": "VC_TASK_INDEX", "value": "0"}]
    assert table.intern(first["spec"]) is table.intern(second["spec"])
    assert table.intern(pod("c", cpu="2")["spec"]) is not table.intern(first["spec"])


def test_what_the_pods_of_a_job_repeat_is_kept_once() -> None:
    table = TemplateTable(Dimensions())
    first, second, other = (
        read_task(pod(name, group="j", labels={"role": role}), 0, table)
        for name, role in [("a", "x"), ("b", "x"), ("c", "y")]
    )
    assert first.labels is second.labels
    assert (first.labels, other.labels) == ({"role": "x"}, {"role": "y"})
    assert first.job is second.job
    assert table.texts({"a": cast("Any", object())}).keys() == {"a"}  # what has no bytes stays as it is


def test_what_says_nothing_does_not_split_a_template() -> None:
    table, said = TemplateTable(Dimensions()), pod("a", cpu="1")["spec"]
    empty: dict[str, Any] = {
        **said,
        "tolerations": [],
        "nodeSelector": None,
        "initContainers": [],
        "hostNetwork": False,
    }
    empty["containers"] = [{**each, "ports": []} for each in said["containers"]]
    template = table.intern(said)
    assert table.intern(empty) is template
    assert table.intern({**said, "hostNetwork": True}).number == template.number + 1


def test_priority_is_1_then_the_specs_then_the_annotations() -> None:
    table = TemplateTable(Dimensions())

    def priority(**how: Any) -> int:
        return read_task(pod("p", **how), 0, table).priority

    assert priority() == 1
    assert priority(priority=7) == 7
    assert priority(priority=7, annotations={"volcano.sh/task-priority": "-3"}) == -3
    assert priority(priority=7, annotations={"volcano.sh/task-priority": "high"}) == 7


@pytest.mark.parametrize(("name", "index"), [("job-task-12", 12), ("job-12", None), ("a-b-c", None), ("a-b--1", 1)])
def test_the_index_is_the_last_of_at_least_three_parts(name: str, index: int | None) -> None:
    assert pod_index(name) == index


def test_pod_level_requests_count_for_scorers_too() -> None:
    spec: dict[str, Any] = {"containers": [{}], "resources": {"requests": {"cpu": "2"}}, "overhead": {"memory": "1Mi"}}
    assert nonzero_request(spec) == (2000.0, 201.0 * 2**20)
