"""Queues, PodGroups, nodes and HyperNodes as they are read: defaults, odd fields, and what is left as it was."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from pumice.core.errors import QuantityError
from pumice.core.objects.hyper_node import read_hyper_node
from pumice.core.objects.node import oversubscription, read_node, renewed_node
from pumice.core.objects.pod_group import read_pod_group, renewed_pod_group
from pumice.core.objects.queue import is_counted, read_queue
from pumice.core.resources import Resource
from tests.kit import Object, node, pod_group, queue
from tests.kit.hyper_nodes import hyper_node

EMPTY: list[Object] = [{}, {"metadata": None, "spec": None, "status": None}, {"metadata": {}, "spec": {}, "status": {}}]

# --- Queues


@pytest.mark.parametrize("obj", EMPTY)
def test_queue_without_fields_is_read_with_defaults(obj: Object) -> None:
    found = read_queue(obj)
    assert (found.name, found.weight, found.priority, found.parent, found.state) == ("", 0, 0, "", "")
    assert (found.capability, found.deserved, found.guarantee) == (None, None, None)
    assert (found.reclaimable, found.is_open, found.created) == (True, False, 0.0)
    assert (found.allocated, found.annotations) == ({}, {})


@pytest.mark.parametrize(("said", "reclaimable"), [(None, True), (True, True), (False, False)])
def test_queue_is_reclaimable_unless_it_says_not(said: bool | None, reclaimable: bool) -> None:
    assert read_queue({"spec": {"reclaimable": said}}).reclaimable is reclaimable


@pytest.mark.parametrize(
    ("guarantee", "expected"),
    [
        (None, None),
        ({}, None),
        ({"resource": None}, None),
        ({"resource": {}}, None),
        ({"resource": {"cpu": "2"}}, Resource(2000.0)),
    ],
)
def test_guarantee_of_a_queue_lies_in_its_resource(guarantee: object, expected: Resource | None) -> None:
    assert read_queue({"spec": {"guarantee": guarantee}}).guarantee == expected


def test_queue_is_read_as_written_and_left_alone() -> None:
    lists = {"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": "2"}
    made = queue("q", weight=3, capability=lists, deserved=lists, guarantee=lists, parent="root", priority=5)
    before = deepcopy(made)
    one, other = read_queue(made), read_queue(deepcopy(made))
    assert made == before
    expected = Resource(1500.0, 2.0**30, {"nvidia.com/gpu": 2000.0})
    assert one.capability == one.deserved == one.guarantee == expected == other.capability
    assert one.capability is not one.deserved  # a change of one is none of the other
    assert (one.weight, one.parent, one.priority, one.is_open) == (3, "root", 5, True)
    assert is_counted(one, other)


@pytest.mark.parametrize("name", ["capability", "deserved"])
def test_queue_with_a_malformed_quantity_is_refused(name: str) -> None:
    with pytest.raises(QuantityError):
        read_queue({"spec": {name: {"cpu": "two"}}})


@pytest.mark.parametrize(
    ("change", "counted"),
    [
        ({"status": {"state": "Open", "running": 3, "allocated": {"cpu": "1"}}}, True),
        ({"status": {"state": "Closed"}}, False),
        ({"spec": {"weight": 2}}, False),
        ({"metadata": {"name": "q", "annotations": {"a": "b"}}}, False),
    ],
)
def test_queue_with_other_counts_alone_is_counted(change: Object, counted: bool) -> None:
    made = queue("q")
    assert is_counted(read_queue(made), read_queue({**made, **change})) is counted


# --- PodGroups


@pytest.mark.parametrize("obj", EMPTY)
def test_pod_group_without_fields_is_read_with_defaults(obj: Object) -> None:
    found = read_pod_group(obj)
    assert (found.key, found.uid, found.queue, found.phase) == ("default/", "", "default", "")
    assert (found.min_member, found.min_task_member, found.min_task_total, found.min_resources) == (0, {}, 0, None)
    assert (found.preemptable, found.revocable_zone) == (False, "")  # a pod may be preempted, a job may not
    assert (found.running, found.succeeded, found.failed, found.conditions) == (0, 0, 0, ())
    assert read_pod_group(obj, "other").queue == "other"


def test_pod_group_without_resources_differs_from_one_with_none() -> None:
    assert read_pod_group({"spec": {"minResources": {}}}).min_resources == Resource()
    made = pod_group("g", min_resources={"cpu": "1", "example.com/a": "2"}, min_task_member={"a": 2, "b": 3})
    before = deepcopy(made)
    found = read_pod_group(made, ignored=["example.com/a"])
    assert (found.min_resources, found.min_task_total) == (Resource(1000.0), 5)
    assert made == before


@pytest.mark.parametrize(
    ("change", "renewed"),
    [
        ({"status": {"phase": "Running", "running": 2, "conditions": [{"type": "Scheduled"}]}}, True),
        ({"status": None}, True),
        ({"spec": {"minMember": 2, "queue": "default"}}, False),
        ({"metadata": {"name": "g", "labels": {"a": "b"}}}, False),
    ],
)
def test_pod_group_with_another_status_alone_is_renewed(change: Object, renewed: bool) -> None:
    made = pod_group("g")
    known, after = read_pod_group(made), {**made, **change}
    found = renewed_pod_group(known, after)
    assert (found is not None) is renewed
    assert known.phase == "Pending"
    if found is not None:
        again = read_pod_group(after)
        assert (found.phase, found.running, found.conditions) == (again.phase, again.running, again.conditions)
        assert (found.key, found.min_member, found.pod_group) == (known.key, known.min_member, after)


# --- Nodes


@pytest.mark.parametrize("obj", EMPTY)
def test_node_without_fields_is_read_with_defaults(obj: Object) -> None:
    found = read_node(obj)
    assert (found.name, found.labels, found.annotations, found.taints, found.images) == ("", {}, {}, (), ())
    assert (found.unschedulable, found.oversubscribed, found.offline_job_evicting) == (False, False, False)
    assert found.allocatable == found.capacity == Resource()
    assert (found.max_pods, found.revocable_zone) == (0, "")


@pytest.mark.parametrize(
    ("cpu", "memory", "expected"),
    [
        (None, None, Resource()),
        ("500", "1024", Resource(500.0, 1024.0)),
        ("", "much", Resource()),
        ("0.5", "1e3", Resource(0.5, 1000.0)),
        (" 500", "0x1p4", Resource(0.0, 16.0)),
    ],
)
def test_oversubscription_is_a_number_of_millicores_and_bytes(
    cpu: str | None, memory: str | None, expected: Resource
) -> None:
    said = {"volcano.sh/oversubscription-cpu": cpu, "volcano.sh/oversubscription-memory": memory}
    annotations = {name: value for name, value in said.items() if value is not None}
    assert oversubscription(annotations) == expected
    found = read_node(node("n", cpu="2", memory="1Ki", annotations=annotations))
    for amounts in (found.allocatable, found.capacity):
        assert (amounts.milli_cpu, amounts.memory) == (2000.0 + expected.milli_cpu, 1024.0 + expected.memory)


def test_node_has_what_volumes_say_and_not_what_is_ignored() -> None:
    name = "attachable-volumes-csi-d"
    made = node("n", gpus=2, pods="7", extra={name: "3"})
    before = deepcopy(made)
    found = read_node(made, {name: 5.0}, ["nvidia.com/gpu"])
    assert made == before
    for amounts in (found.allocatable, found.capacity):
        assert amounts.scalars == {"pods": 7.0, name: 5.0}
    assert found.max_pods == 7
    assert (read_node(made).allocatable.scalars or {})["nvidia.com/gpu"] == 2000.0


@pytest.mark.parametrize(("said", "evicts"), [("true", True), ("1", True), ("yes", False), ("", False)])
def test_node_that_evicts_offline_jobs_says_so_as_go_reads_it(said: str, evicts: bool) -> None:
    found = read_node(
        node("n", annotations={"volcano.sh/offline-job-evicting": said}, labels={"volcano.sh/oversubscription": said})
    )
    assert (found.offline_job_evicting, found.oversubscribed) == (evicts, evicts)


@pytest.mark.parametrize(
    ("part", "change", "renewed"),
    [
        ("status", {"conditions": [{"type": "Ready", "lastHeartbeatTime": "now"}]}, True),
        ("metadata", {"resourceVersion": "9"}, True),
        ("status", {"allocatable": {"cpu": "1"}}, False),
        ("status", {"capacity": {"cpu": "1"}}, False),
        ("status", {"images": [{"names": ["a"]}]}, False),
        ("spec", {"unschedulable": True}, False),
        ("metadata", {"labels": {"a": "b"}}, False),
        ("metadata", {"uid": "another"}, False),
    ],
)
def test_node_after_a_heartbeat_is_renewed(part: str, change: Object, renewed: bool) -> None:
    made = node("n")
    known, after = read_node(made), {**made, part: {**made.get(part, {}), **change}}
    found = renewed_node(known, after)
    assert (found is not None) is renewed
    assert known.node is made
    assert found is None or (found.node is after and found.allocatable == known.allocatable)


# --- HyperNodes


@pytest.mark.parametrize("obj", EMPTY)
def test_hyper_node_without_fields_is_read_with_defaults(obj: Object) -> None:
    found = read_hyper_node(obj)
    assert (found.name, found.tier, found.tier_name, found.children, found.selectors) == ("", 0, "", (), ())
    assert found.length == 0


def test_hyper_node_members_are_read_by_their_type() -> None:
    exact: dict[str, Any] = {"exactMatch": {"name": "x"}}
    members: list[Object] = [
        {"type": "HyperNode", "selector": exact},
        {"type": "HyperNode", "selector": {"regexMatch": {"pattern": ".*"}}},  # children are named exactly
        {"type": "HyperNode", "selector": None},
        {"type": "Node", "selector": exact},
        {"type": "Node", "selector": {"regexMatch": {"pattern": "n-.*"}}},
        {"type": "Node"},
        {"type": "Rack", "selector": exact},
        {},
    ]
    found = read_hyper_node({"metadata": {"name": "s"}, "spec": {"tier": 2, "members": members}})
    assert found.children == ("x",)
    assert found.selectors == (exact, {"regexMatch": {"pattern": "n-.*"}}, {})


@pytest.mark.parametrize(("said", "length"), [("9", 9), ("0", 2), ("-3", 2), ("x", 2), ("", 2)])
def test_hyper_node_under_a_pseudonym_says_how_long_its_name_was(said: str, length: int) -> None:
    made = hyper_node("s0", 1)
    made["metadata"]["annotations"] = {"pumice.dev/name-length": said}
    assert read_hyper_node(made).length == length


def test_hyper_nodes_of_equal_objects_are_equal() -> None:
    made = hyper_node("s0", 1, nodes=["n0", "n1"], children=["s1"], tier_name="rack")
    before = deepcopy(made)
    assert read_hyper_node(made) == read_hyper_node(deepcopy(made))
    assert read_hyper_node(made) != read_hyper_node(hyper_node("s0", 1, nodes=["n0"], children=["s1"]))
    assert made == before
