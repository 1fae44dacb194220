"""The builders make what a manifest of the same content decodes to."""

import json

import yaml

from tests.kit import gang, job_task, node, node_affinity, nodes, pod, priority_class, queue, taint, toleration, vcjob


def test_a_node_has_room_and_a_host_name() -> None:
    built = node("n0", cpu="8", memory="16Gi", gpus=2, labels={"zone": "a"}, taints=[taint("gpu")])
    assert built["status"]["allocatable"] == {"cpu": "8", "memory": "16Gi", "nvidia.com/gpu": "2", "pods": "110"}
    assert built["metadata"]["labels"] == {"kubernetes.io/hostname": "n0", "zone": "a"}
    assert built["spec"] == {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}


def test_equal_nodes_share_nothing() -> None:
    first, second = nodes(2)
    first["status"]["allocatable"]["cpu"] = "1"
    assert second["status"]["allocatable"]["cpu"] == "8"
    assert first["status"]["capacity"]["cpu"] == "8"


def test_a_gang_is_a_group_and_its_pods() -> None:
    group, *members = gang("j", queue="q", pods=3, cpu="500m", nodes=["n0"])
    assert group["spec"] == {"minMember": 3, "queue": "q"}
    assert [member["metadata"]["name"] for member in members] == ["j-0", "j-1", "j-2"]
    assert {member["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for member in members} == {"j"}
    assert [member["status"]["phase"] for member in members] == ["Running", "Pending", "Pending"]
    assert members[0]["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "500m", "memory": "1Gi"}}


def test_uids_differ_between_namespaces() -> None:
    assert pod("p", namespace="a")["metadata"]["uid"] != pod("p", namespace="b")["metadata"]["uid"]


def test_a_best_effort_pod_asks_for_nothing() -> None:
    assert "resources" not in pod("p", cpu=None, memory=None)["spec"]["containers"][0]


def test_a_job_needs_all_its_replicas_unless_told() -> None:
    tasks = [job_task("ps", replicas=2), job_task("worker", replicas=4, depends_on=["ps"], duration="3s")]
    assert vcjob("j", *tasks)["spec"]["minAvailable"] == 6
    assert vcjob("j", *tasks, min_available=1)["spec"]["minAvailable"] == 1
    assert tasks[1]["dependsOn"] == {"name": ["ps"]}
    assert tasks[1]["template"]["metadata"]["annotations"] == {"pumice.dev/duration": "3s"}


def test_affinity_is_required_or_preferred() -> None:
    required = node_affinity("zone", "a", "b")["nodeAffinity"]
    assert list(required) == ["requiredDuringSchedulingIgnoredDuringExecution"]
    preferred = node_affinity("zone", "a", weight=5)["nodeAffinity"]
    assert preferred["preferredDuringSchedulingIgnoredDuringExecution"][0]["weight"] == 5


def test_every_object_is_plain_data() -> None:
    for built in (
        node("n0"),
        queue("q", weight=2, capability={"cpu": "4"}, guarantee={"cpu": "1"}),
        priority_class("high", 1000, default=True),
        vcjob("j"),
        *gang("g", pods=2, tolerations=[toleration()], host_ports=[80], affinity=node_affinity("zone", "a")),
    ):
        assert json.loads(json.dumps(built)) == built
        assert yaml.safe_load(yaml.safe_dump(built)) == built
