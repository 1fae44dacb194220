"""Admission of queues and PodGroups."""

from typing import Any

import pytest

from pumice.cluster.api.admission.queues import validate_update
from pumice.cluster.controllers.queues import QueueMachine
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster, fields
from tests.kit.jobs import vcjob
from tests.kit.pod_groups import pod_group
from tests.kit.queues import queue


def bare(name: str, **spec: Any) -> Object:
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


# --- queues


def test_a_queues_defaults(cluster: Cluster) -> None:
    stored = cluster.create(bare("q"))
    assert stored["spec"] == {"weight": 1, "reclaimable": True, "dequeueStrategy": "traverse", "parent": "root"}
    assert stored["status"] == {"state": "Open"}


def test_the_systems_queues_are_there(cluster: Cluster) -> None:
    root, default = cluster.get("Queue", "root", ""), cluster.get("Queue", "default", "")
    assert (root["spec"]["reclaimable"], "parent" in root["spec"]) == (False, False)
    assert (default["spec"]["reclaimable"], default["spec"]["parent"]) == (True, "root")


def test_a_queue_can_be_born_closed_but_not_in_between(cluster: Cluster) -> None:
    assert cluster.create(queue("q", state="Closed"))["status"] == {"state": "Closed"}
    assert fields(cluster.refused(queue("p", state="Closing"))) == ["status.state"]


def test_a_hierarchy_starts_at_the_root(cluster: Cluster) -> None:
    given = queue("q", annotations={"volcano.sh/hierarchy": "a/b", "volcano.sh/hierarchy-weights": "1/2"})
    annotations = cluster.create(given)["metadata"]["annotations"]
    assert annotations == {"volcano.sh/hierarchy": "root/a/b", "volcano.sh/hierarchy-weights": "1/1/2"}


@pytest.mark.parametrize(
    ("path", "weights", "field"),
    [
        ("root/a", "1", "volcano.sh/hierarchy"),
        ("root/a", "1/x", "volcano.sh/hierarchy-weights"),
        ("root/a", "1/0", "volcano.sh/hierarchy-weights"),
        ("root/a", "1/ 2", "volcano.sh/hierarchy-weights"),
        ("root/a", "1/1e400", "volcano.sh/hierarchy-weights"),
        ("root/sci", "1/1", "volcano.sh/hierarchy"),
    ],
)
def test_hierarchies(cluster: Cluster, path: str, weights: str, field: str) -> None:
    cluster.create(
        queue("dev", annotations={"volcano.sh/hierarchy": "root/sci/dev", "volcano.sh/hierarchy-weights": "1/1/1"})
    )
    given = queue("q", annotations={"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights})
    assert fields(cluster.refused(given)) == [f"metadata.annotations[{field}]"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"weight": 65536}, "spec.weight"),
        ({"weight": -1}, "spec.weight"),
        ({"weight": 1.5}, "spec.weight"),
        ({"priority": -1}, "spec.priority"),
        ({"dequeueStrategy": "lifo"}, "spec.dequeueStrategy"),
        ({"capability": {"cpu": "-1"}}, "spec.capability[cpu]"),
        ({"capability": {"cpu": "lots"}}, "spec.capability[cpu]"),
        ({"capability": {"cpu": "1"}, "deserved": {"cpu": "2"}}, "spec.deserved[cpu]"),
        ({"guarantee": {"resource": {"cpu": "2"}}}, "spec.deserved[cpu]"),
        ({"guarantee": {"resource": {"cpu": "2"}}, "deserved": {"cpu": "1"}}, "spec.deserved[cpu]"),
        ({"parent": "q"}, "spec.parent"),
        ({"parent": "nobody"}, "spec.parent"),
        ({"reclaimable": "yes"}, "spec.reclaimable"),
    ],
)
def test_each_rule_names_its_field(cluster: Cluster, spec: Object, field: str) -> None:
    assert fields(cluster.refused(bare("q", **spec))) == [field]


def test_a_tree_is_five_deep(cluster: Cluster) -> None:
    parent = "root"
    for level in range(5):
        cluster.create(bare(f"q{level}", parent=parent))
        parent = f"q{level}"
    assert fields(cluster.refused(bare("q5", parent="q4"))) == ["spec.parent"]


def test_a_queue_with_pods_becomes_no_parent(cluster: Cluster) -> None:
    cluster.create(bare("busy"))
    cluster.status("Queue", "busy", {"allocated": {"pods": "3"}}, "")
    assert fields(cluster.refused(bare("q", parent="busy"))) == ["spec.parent"]


def test_no_child_may_more_than_its_ancestors(cluster: Cluster) -> None:
    cluster.create(bare("top", capability={"cpu": "10"}))
    cluster.create(bare("middle", parent="top"))
    assert fields(cluster.refused(bare("low", parent="middle", capability={"cpu": "11"}))) == ["spec.capability[cpu]"]
    cluster.create(bare("low", parent="middle", capability={"cpu": "10"}))
    assert fields(cluster.patch("Queue", "top", {"spec": {"capability": {"cpu": "9"}}}, "")) == ["spec.capability[cpu]"]
    assert isinstance(cluster.patch("Queue", "top", {"spec": {"capability": {"cpu": "12"}}}, ""), Accepted)


def test_children_together_deserve_no_more_than_their_parent(cluster: Cluster) -> None:
    cluster.create(bare("top", deserved={"cpu": "10"}))
    cluster.create(bare("a", parent="top", deserved={"cpu": "6"}))
    assert fields(cluster.refused(bare("b", parent="top", deserved={"cpu": "5"}))) == ["spec.deserved"]
    cluster.create(bare("b", parent="top", deserved={"cpu": "4"}))
    assert fields(cluster.patch("Queue", "top", {"spec": {"deserved": {"cpu": "9"}}}, "")) == ["spec.deserved"]


def test_the_roots_amounts_are_fixed(cluster: Cluster) -> None:
    assert fields(cluster.patch("Queue", "root", {"spec": {"capability": {"cpu": "1"}}}, "")) == ["spec.capability"]
    assert isinstance(cluster.patch("Queue", "root", {"spec": {"weight": 2}}, ""), Accepted)


# --- PodGroups


def test_a_pod_groups_defaults(cluster: Cluster) -> None:
    given = pod_group("g")
    given["spec"] = {"networkTopology": {}, "subGroupPolicy": [{"name": "a"}]}
    del given["status"]
    stored = cluster.create(given)
    assert stored["spec"] == {
        "queue": "default",
        "networkTopology": {"mode": "hard"},
        "subGroupPolicy": [{"name": "a", "subGroupSize": 1, "minSubGroups": 0}],
    }
    assert stored["status"] == {"phase": "Pending"}


def test_a_namespace_can_name_the_queue(cluster: Cluster) -> None:
    cluster.create(queue("team"))
    annotations = {"scheduling.volcano.sh/queue-name": "team"}
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns", "annotations": annotations}})
    assert cluster.create(pod_group("g", namespace="ns"))["spec"]["queue"] == "team"
    assert cluster.create(pod_group("g"))["spec"]["queue"] == "default"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"queue": "nowhere"}, "spec.queue"),
        ({"minMember": -1}, "spec.minMember"),
        ({"minTaskMember": {"a": -1}}, "spec.minTaskMember[a]"),
        ({"minResources": {"cpu": "-1"}}, "spec.minResources[cpu]"),
        ({"networkTopology": {"mode": "firm"}}, "spec.networkTopology.mode"),
        ({"networkTopology": {"highestTierAllowed": 1, "highestTierName": "t"}}, "spec.networkTopology"),
        ({"subGroupPolicy": [{"subGroupSize": 0}]}, "spec.subGroupPolicy[0].subGroupSize"),
        ({"minMember": "all"}, "spec.minMember"),
    ],
)
def test_pod_groups(cluster: Cluster, spec: Object, field: str) -> None:
    given = pod_group("g")
    given["spec"] |= spec
    assert fields(cluster.refused(given)) == [field]


def test_a_closed_queue_takes_no_new_group_and_keeps_the_old(cluster: Cluster) -> None:
    cluster.create(queue("q"))
    cluster.create(pod_group("old", queue="q"))
    cluster.status("Queue", "q", {"state": "Closing"}, "")
    reply = cluster.refused(pod_group("new", queue="q"))
    assert "queue `q` status is `Closing`" in reply.message
    assert isinstance(cluster.patch("PodGroup", "old", {"spec": {"minMember": 2}}), Accepted)


@pytest.mark.parametrize("state", ["Closing", "Unknown"])
def test_queue_that_is_closing_is_changed_by_nobody(cluster: Cluster, state: str) -> None:
    """Volcano's webhook judges the state of a changed queue as that of a new one; the status itself may change."""
    cluster.create(queue("q"))
    cluster.status("Queue", "q", {"state": state}, "")
    refused = cluster.patch("Queue", "q", {"spec": {"weight": 2}}, "")
    assert isinstance(refused, Refused)
    assert f'status.state: Unsupported value: "{state}"' in refused.message
    cluster.status("Queue", "q", {"state": "Closed"}, "")
    assert isinstance(cluster.patch("Queue", "q", {"spec": {"weight": 2}}, ""), Accepted)


def test_pod_group_that_is_changed_is_not_judged_again(cluster: Cluster) -> None:
    """Volcano's webhook is asked when a PodGroup is created; its definition always counts."""
    cluster.create(queue("q"))
    cluster.create(pod_group("g", queue="q"))
    assert isinstance(cluster.patch("PodGroup", "g", {"spec": {"queue": "nowhere"}}), Accepted)
    assert isinstance(cluster.patch("PodGroup", "g", {"spec": {"minMember": -1}}), Refused)


def test_queue_without_a_state_takes_nothing_until_its_controller_opens_it(cluster: Cluster) -> None:
    cluster.create(queue("q"))
    cluster.status("Queue", "q", {"state": ""}, "")
    for given in (pod_group("g", queue="q"), vcjob("j", queue="q")):
        assert "to queue with state `Open`, queue `q` status is ``" in cluster.refused(given).message
    opening = Cluster(QueueMachine())
    opening.create(queue("q"))
    opening.status("Queue", "q", {"state": ""}, "")
    opening.settle()
    opening.create(pod_group("g", queue="q"))


def test_root_may_write_its_amounts_in_another_way(cluster: Cluster) -> None:
    lookup, before = cluster.store.registry.lookup, cluster.get("Queue", "root", "")
    before["spec"]["capability"] = {"cpu": "1"}
    for amount, refused in (("1000m", []), ("2", ["spec.capability"]), ("-1", ["spec.capability[cpu]"])):
        after: Object = {**before, "spec": {**before["spec"], "capability": {"cpu": amount}}}
        assert [cause.field for cause in validate_update(before, after, lookup)] == refused
