"""Pods into tasks: status, requests, priorities, and what makes two pods one template."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple

from pumice.core.life.task import TaskStatus
from pumice.core.objects.pod import (
    PREEMPTABLE,
    QUEUE_ALLOCATION_GATE,
    REVOCABLE_ZONE,
    TemplateTable,
    pod_index,
    pod_state,
    read_state,
    read_task,
    stranger_of,
)
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


STATUSES = st.fixed_dictionaries(
    {},
    optional={
        "phase": st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown", ""]),
        "startTime": st.sampled_from([None, "2026-01-01T00:00:05Z"]),
        "nominatedNodeName": st.sampled_from(["", "n1"]),
        "conditions": st.lists(
            st.fixed_dictionaries(
                {"type": st.sampled_from(["PodScheduled", "DisruptionTarget", "Ready"])},
                optional={
                    "status": st.sampled_from(["True", "False", "Unknown"]),
                    "reason": st.sampled_from(["Unschedulable", "PreemptionByScheduler", None]),
                    "message": st.just("why"),
                    "lastTransitionTime": st.just("2026-01-01T00:00:09Z"),
                },
            ),
            max_size=2,
        ),
        "resourceClaimStatuses": st.just([{"name": "c", "resourceClaimName": "p-c"}, {"name": "d"}]),
    },
)


@given(STATUSES, STATUSES, st.booleans(), st.booleans())
def test_state_of_a_task_is_read_as_the_whole_task_is(before: Any, after: Any, placed: bool, deleting: bool) -> None:
    table, made = TemplateTable(Dimensions()), pod("p", group="j")
    task = read_task({**made, "status": before}, 3, table)
    made["status"] = after
    if placed:
        made["spec"]["nodeName"] = "n0"
    if deleting:
        made["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:09Z"
    copied = deepcopy(made)
    found = read_state(task, made)
    assert astuple(found) == astuple(read_task(made, 3, table))
    assert made == copied
    assert found.asks_as(task)
    assert astuple(read_state(found, {**made, "status": before}))[:-9] == astuple(task)[:-9]


@pytest.mark.parametrize("obj", [{}, {"metadata": None, "spec": None, "status": None}, {"metadata": {}, "spec": {}}])
def test_pod_without_fields_is_read_with_defaults(obj: dict[str, Any]) -> None:
    task = read_task(obj, 0, TemplateTable(Dimensions()))
    assert (task.namespace, task.name, task.key, task.uid, task.job, task.role) == (
        "default",
        "",
        "default/",
        "default/",
        "",
        "",
    )
    assert (task.priority, task.pod_priority, task.created, task.index) == (1, None, 0.0, None)
    assert (task.preemptable, task.revocable_zone, task.gated, task.condition) == (True, "", False, None)
    assert task.template.best_effort


@pytest.mark.parametrize(
    ("condition", "expected", "at"),
    [
        ({"status": "True", "lastTransitionTime": "1970-01-01T00:00:07Z"}, None, 7.0),
        ({"status": "True"}, None, 0.0),
        ({"status": "False", "reason": "Unschedulable"}, ("Unschedulable", ""), 0.0),
        ({"status": "False"}, ("", ""), 0.0),
        ({"status": "Unknown", "reason": "x"}, None, 0.0),
    ],
)
def test_condition_of_a_pod_says_why_or_since_when(condition: Any, expected: Any, at: float) -> None:
    other = {"type": "Ready", "status": "False", "reason": "other"}
    state = pod_state({"status": {"conditions": [other, {"type": "PodScheduled", **condition}]}})
    assert (state[5], state[6]) == (expected, at)


@pytest.mark.parametrize(
    ("annotations", "labels", "preemptable", "zone"),
    [
        ({}, {}, True, ""),
        ({PREEMPTABLE: "false"}, {PREEMPTABLE: "true"}, False, ""),
        ({PREEMPTABLE: "true"}, {}, True, "*"),
        ({PREEMPTABLE: "yes"}, {}, False, ""),  # not a word of Go's
        ({}, {PREEMPTABLE: "false"}, False, ""),
        ({}, {PREEMPTABLE: "true"}, True, ""),  # the zone is read from annotations alone
        ({REVOCABLE_ZONE: "*"}, {}, True, "*"),
        ({REVOCABLE_ZONE: "z1", PREEMPTABLE: "true"}, {}, True, ""),  # only the wildcard is supported
    ],
)
def test_pod_says_whether_it_may_be_preempted(
    annotations: dict[str, str], labels: dict[str, str], preemptable: bool, zone: str
) -> None:
    task = read_task(pod("p", annotations=annotations, labels=labels), 0, TemplateTable(Dimensions()))
    assert (task.preemptable, task.revocable_zone) == (preemptable, zone)


@pytest.mark.parametrize(
    ("said", "priority"),
    [
        ("2147483647", 2**31 - 1),
        ("2147483648", 7),
        ("-2147483648", -(2**31)),
        ("1_0", 7),
        (" 1", 7),
        ("", 7),
        ("+3", 3),
    ],
)
def test_priority_in_an_annotation_has_32_bits(said: str, priority: int) -> None:
    made = pod("p", priority=7, annotations={"volcano.sh/task-priority": said})
    task = read_task(made, 0, TemplateTable(Dimensions()))
    assert (task.priority, task.pod_priority) == (priority, 7)


@pytest.mark.parametrize(
    ("scheduler", "node", "job", "stranger"),
    [
        ("volcano", None, "default/j", ""),
        ("default-scheduler", None, "default/j", ""),
        ("", None, "default/j", ""),
        ("other", None, "", "default/j"),
        ("other", "n0", "default/j", ""),
    ],
)
def test_pod_of_another_scheduler_is_in_no_job_before_it_has_a_node(
    scheduler: str, node: str | None, job: str, stranger: str
) -> None:
    task = read_task(pod("p", group="j", scheduler=scheduler, node=node), 0, TemplateTable(Dimensions()))
    assert (task.job, stranger_of(task)) == (job, stranger)


@pytest.mark.parametrize(
    ("gates", "gated", "only_volcano"),
    [
        ([], False, False),
        ([QUEUE_ALLOCATION_GATE], True, True),
        (["other"], True, False),
        ([QUEUE_ALLOCATION_GATE, "other"], True, False),
    ],
)
def test_pod_with_gates_is_gated(gates: list[str], gated: bool, only_volcano: bool) -> None:
    made = pod("p")
    made["spec"]["schedulingGates"] = [{"name": name} for name in gates]
    task = read_task(made, 0, TemplateTable(Dimensions()))
    assert (task.gated, task.only_volcano_gate) == (gated, only_volcano)
