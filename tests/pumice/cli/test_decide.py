"""`pumice decide`: objects in, decisions and reasons out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.kit.pod_groups import pod_group
from tests.kit.pods import pod
from tests.kit.queues import queue
from tests.kit.storage import claim, csi_node, storage_class
from tests.pumice.cli.terminal import Said, pumice

IN_ZONE_B = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}
LOCAL_STORAGE: list[dict[str, Any]] = [
    csi_node("n1", "kubernetes.io/no-provisioner"),
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "there"},
        "spec": {
            "storageClassName": "local",
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "nodeAffinity": {"required": {"nodeSelectorTerms": [IN_ZONE_B]}},
        },
    },
    {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {
            "storageClassName": "local",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    },
]
GANG = [pod_group("g", min_member=2), pod("g-0", group="g"), pod("g-1", group="g")]


@pytest.fixture
def decide(tmp_path: Path) -> Any:
    """Decide about objects, with further arguments."""

    def run(objects: list[dict[str, Any]], *arguments: object, dump: Any = yaml.safe_dump_all) -> Said:
        file = tmp_path / "objects.yaml"
        file.write_text(dump(objects))
        return pumice("decide", "-f", file, "-o", "json", *arguments)

    return run


def test_a_gang_is_bound_whole(decide: Any) -> None:
    said = decide([node("n0"), queue("default"), *GANG])
    (outcome,) = said.json["cycles"]
    assert said.code == 0
    assert outcome["binds"] == {"default/g-0": "n0", "default/g-1": "n0"}
    assert outcome["phases"] == {"default/g": "Inqueue"}
    allocated = {"cpu": "2", "memory": "2Gi", "pods": "2"}
    assert outcome["queueAllocated"] == {"default": allocated, "root": allocated}  # with those below
    assert said.json["pending"] == {}
    assert said.json["queues"]["default"]["weight"] == 1


def test_in_the_next_cycle_the_bound_pods_run(decide: Any) -> None:
    first, second = decide([node("n0"), queue("default"), *GANG], "--cycles", 2).json["cycles"]
    assert first["taskStatus"] == {"default/g": {"Binding": 2}}
    assert second["taskStatus"] == {"default/g": {"Running": 2}}
    assert (second["binds"], second["phases"]) == ({}, {"default/g": "Running"})


def test_a_pod_whose_volume_is_yet_to_be_bound_says_where_it_goes(decide: Any, tmp_path: Path) -> None:
    waiting = pod("g-0", group="g")
    waiting["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    there = node("n1", labels={"zone": "b"})
    (outcome,) = decide([node("n0"), there, queue("default"), pod_group("g"), waiting, *LOCAL_STORAGE]).json["cycles"]
    assert outcome["binds"] == {}
    assert outcome["awaitingVolumes"] == {"default/g-0": "n1"}
    table = pumice("decide", "-f", tmp_path / "objects.yaml", "-o", "table").out
    assert "once its volumes are bound" in " ".join(table.split())


def test_a_gang_that_does_not_fit_waits_and_every_task_has_a_reason(decide: Any) -> None:
    said = decide([node("n0", cpu="1"), queue("default"), *GANG])
    assert said.code == 0
    assert said.json["cycles"][0]["binds"] == {}
    assert set(said.json["pending"]) == {"default/g-0", "default/g-1"}
    assert all(why["reason"] and why["message"] for why in said.json["pending"].values())


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ([pod("p", group="gone")], "PodGroupNotFound"),
        ([pod("p", group="g"), pod_group("g", queue="nowhere")], "QueueMissing"),
    ],
)
def test_pods_that_no_session_sees_have_a_reason_too(decide: Any, objects: list[dict[str, Any]], reason: str) -> None:
    said = decide([node("n0"), queue("default"), *objects])
    assert said.json["pending"]["default/p"]["reason"] == reason


def test_what_a_manifest_by_hand_leaves_out_is_filled_in(decide: Any) -> None:
    hollow = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "default"}}
    said = decide([node("n0"), hollow, pod_group("g"), bare(pod("g-0", group="g"))])
    assert said.json["cycles"][0]["binds"] == {"default/g-0": "n0"}


def test_a_kubectl_dump_from_stdin() -> None:
    dump = {"apiVersion": "v1", "kind": "List", "items": [node("n0"), queue("default"), *GANG]}
    said = pumice("decide", "-f", "-", "-o", "json", stdin=json.dumps(dump))
    assert len(said.json["cycles"][0]["binds"]) == 2


def test_other_actions_and_another_moment(decide: Any) -> None:
    objects = [node("n0"), queue("default"), *GANG]
    assert decide(objects, "--actions", "enqueue", "--now", "2030-01-01T00:00:00Z").json["cycles"][0]["binds"] == {}
    said = decide(objects, "--actions", "enqueue,alocate")
    assert (said.code, said.out) == (2, "")
    assert "unknown action 'alocate'" in said.err
    assert "--now" in decide(objects, "--now", "tomorrow").err


def test_a_bad_quantity_is_named_and_the_rest_goes_on(decide: Any) -> None:
    said = decide([node("n0"), queue("default"), *GANG, pod("odd", group="g", cpu="1x")])
    assert said.code == 2
    assert len(said.json["cycles"][0]["binds"]) == 2
    assert "Pod default/odd" in said.err
    assert "'1x'" in said.err


ODD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "odd", "namespace": "default"}}


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"spec": {"containers": "abc"}}, "spec.containers"),
        ({"spec": ["a"]}, "spec"),
        ({"metadata": {"name": "odd", "namespace": "default", "creationTimestamp": "yesterday"}}, "creationTimestamp"),
    ],
)
def test_an_object_out_of_shape_is_named_and_the_rest_goes_on(decide: Any, fields: Any, place: str) -> None:
    said = decide([node("n0"), queue("default"), *GANG, {**ODD, **fields}])
    assert said.code == 2
    assert len(said.json["cycles"][0]["binds"]) == 2
    assert "Pod" in said.err
    assert place in said.err


def test_amounts_of_a_dump_may_be_numbers(decide: Any) -> None:
    wanting = pod("g-0", group="g")
    wanting["spec"]["containers"][0]["resources"]["requests"] = {"cpu": 1, "memory": 1024}
    assert wanting["metadata"]["uid"]
    said = decide([node("n0"), queue("default"), pod_group("g", min_member=1), wanting])
    assert (said.code, said.json["cycles"][0]["binds"]) == (0, {"default/g-0": "n0"})


def test_a_bad_configuration_is_named_by_path(decide: Any, tmp_path: Path) -> None:
    conf = tmp_path / "scheduler.conf"
    conf.write_text('actions: "allocate"\ntiers:\n- plugins:\n  - name: gangg\n')
    said = decide([node("n0")], "--config", conf)
    assert (said.code, said.out) == (2, "")
    assert "tiers[0].plugins[0]" in said.err
    assert "gang" in said.err
    assert decide([node("n0")], "--config", conf, "--lenient").code == 0


def test_a_recorded_cycle_decided_again_comes_out_the_same(tmp_path: Path) -> None:
    db = tmp_path / "p.db"
    cycles = pumice("run", "--db", db, "--time", "virtual", "--until", "idle", "-o", "json").json["cycles"]
    bound: dict[str, str] = {}
    for number in range(1, cycles + 1):
        recorded = pumice("journal", db, "--cycle", number, "-o", "json").json["decisions"]
        decided = pumice("decide", "--db", db, "--cycle", number, "-o", "json").json["cycles"][0]
        assert decided["binds"] == {f"{one['namespace']}/{one['name']}": one["node"] for one in recorded}
        bound |= decided["binds"]
    assert len(bound) == 6
    assert pumice("decide", "--db", db, "--cycle", 99).code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--db", "x.db"),
        ("--cycle", "1"),
        ("-f", "nowhere.yaml"),
        ("-f", "openb:x"),
        ("--cycles", "0"),
        ("--nope",),
    ],
)
def test_usage_errors(arguments: tuple[str, ...]) -> None:
    said = pumice("decide", *arguments)
    assert (said.code, said.out) == (2, "")
    assert said.err
    assert "Traceback" not in said.err


def test_thousands_of_objects_in_one_file(decide: Any) -> None:
    pods = [bare(pod(f"p{index}", group="g")) for index in range(3_000)]
    said = decide([node("n0", cpu="5"), queue("default"), pod_group("g"), *pods], dump=json_list)
    assert len(said.json["cycles"][0]["binds"]) + len(said.json["pending"]) == 3_000


def bare(obj: dict[str, Any]) -> dict[str, Any]:
    """As a person writes it: no uid, no status."""
    del obj["status"], obj["metadata"]["uid"]
    return obj


def json_list(objects: list[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def test_a_table_for_a_person(decide: Any) -> None:
    away = pod("away", group="gone")
    out = decide([node("n0"), queue("default"), *GANG, pod_group("idle"), away], "-o", "table").out
    assert "2 bound: n0 ×2" in out
    assert "PodGroup default/gone is not among the objects" in " ".join(out.replace("│", " ").split())
    assert "1 more PodGroup: nothing to decide" in out


def test_node_metrics_reach_the_usage_plugin_as_per_cent(decide: Any) -> None:
    metrics = {"apiVersion": "metrics.k8s.io/v1beta1", "kind": "NodeMetrics", "metadata": {"name": "n0"}}
    assert decide([node("n0"), queue("default"), {**metrics, "usage": {"cpu": "1"}}, *GANG]).code == 0


def test_an_argument_of_the_wrong_type_is_said_on_stderr(decide: Any, tmp_path: Path) -> None:
    conf = tmp_path / "scheduler.conf"
    arguments = "    arguments:\n      leastrequested.weight: abc\n"
    conf.write_text(f'actions: "allocate"\ntiers:\n- plugins:\n  - name: nodeorder\n{arguments}')
    said = decide([node("n0"), queue("root"), queue("default")], "--config", conf)
    (line,) = [line for line in said.err.splitlines() if line.startswith("warning: ")]
    assert said.code == 0
    assert "tiers[0].plugins[0].arguments[leastrequested.weight]: expected an integer, was 'abc'" in line


def test_without_nodes_that_is_the_reason(decide: Any) -> None:
    message = decide([queue("default"), *GANG]).json["pending"]["default/g-0"]["message"]
    assert "there are no nodes" in message
    assert "overused" not in message


@pytest.mark.parametrize(
    ("minimum", "told"),
    [
        (None, "no node is that large: a pod asks 64 cpu, the largest node that would do has 8; "),
        ({"cpu": "64"}, "overcommit does not admit it: asks 64 cpu, all nodes together have 10 cpu ("),
    ],
)
def test_a_pod_larger_than_every_node_is_told_so(decide: Any, minimum: dict[str, str] | None, told: str) -> None:
    group = pod_group("g", min_member=1)
    if minimum:
        group["spec"]["minResources"] = minimum
    objects = [node("n0", cpu="8"), node("n1", cpu="2"), queue("default"), group, pod("g-0", group="g", cpu="64")]
    said = decide(objects).json
    assert said["pending"]["default/g-0"]["message"].startswith(told)
    assert told not in str(said["cycles"])  # conditions keep Volcano's words


def test_volumes_are_counted_whole(decide: Any) -> None:
    asking = pod("g-0", group="g")
    asking["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    there = [node("n0"), queue("default"), storage_class("some"), claim("c", cls="some")]
    volumes, found = "attachable-volumes-csi-csi.example.com", decide([*there, pod_group("g", min_member=1), asking])
    assert f"a pod asks 1 {volumes}, the largest node that would do has 0; " in str(found.json["pending"])


def test_a_pod_that_is_promised_room_is_told_where(decide: Any) -> None:
    """Four tasks of which two fit now, and two when a pod that is leaving has left."""
    leaving = pod("old", group="old", node="n0", cpu="2")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    gang = [pod_group("j", min_member=4, phase="Inqueue"), *(pod(f"j-{i}", group="j") for i in range(4))]
    said = decide([node("n0", cpu="4"), queue("default"), pod_group("old", phase="Running"), leaving, *gang])
    (outcome,) = said.json["cycles"]
    assert set(outcome["pipelined"]) == {"default/j-2", "default/j-3"}
    for name, why in said.json["pending"].items():
        told = outcome["podConditions"][name]
        assert (why["reason"], why["alias"]) == ("Promised", told["reason"])
        assert told["message"] in why["message"]
    assert {why["alias"] for why in said.json["pending"].values()} == {"Schedulable", "Unschedulable"}


def test_a_gang_of_another_scheduler_waits_for_it(decide: Any) -> None:
    strangers = [pod(name, group="g") for name in ("g-0", "g-1")]
    for each in strangers:
        each["spec"]["schedulerName"] = "kube-foo"
    said = decide([node("n", cpu="8"), queue("default"), pod_group("g", min_member=2), *strangers])
    assert not said.json["cycles"][0]["binds"]
    assert {why["reason"] for why in said.json["pending"].values()} == {"NoScheduler"}
    assert "kube-foo: 2; no scheduler of that name runs here" in said.err


def test_gang_in_a_pipe_is_one_line_with_each_reason_once(decide: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)  # workers of pytest-xdist have it
    there = [node("n0", cpu="3"), node("n1", cpu="3"), queue("default")]
    waiting = gang("j", pods=6, min_member=2, cpu="2", annotations={"volcano.sh/task-spec": "w"})
    said = decide([*there, *waiting], "-o", "table")
    (row,) = [line for line in said.out.splitlines() if line.startswith("default/j ")]
    assert "2 bound: n0, n1, 4 pending  there was room when the cycle opened; jobs before it took it; 0/2 nodes" in row
    assert row.count("there was room") == 1
    assert "predicated failed" not in row
