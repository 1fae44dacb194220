"""A dump goes on from where its cluster was, in every shell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from pumice.core.objects.metadata import Object
from tests.pumice.cli.terminal import pumice

if TYPE_CHECKING:
    from pathlib import Path

PLACE = {"cpu": "2", "memory": "16Gi", "pods": "110"}
QUEUE = "scheduling.volcano.sh/v1beta1"


def node(name: str = "n0") -> Object:
    status = {"allocatable": dict(PLACE), "capacity": dict(PLACE), "conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def group(name: str, phase: str) -> Object:
    spec = {"minMember": 1, "queue": "default"}
    return {
        "apiVersion": QUEUE,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"phase": phase},
    }


def pod(name: str, of: str, phase: str, on: str = "", **meta: Any) -> Object:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "2"}}}
    spec: Object = {"schedulerName": "volcano", "containers": [container], **({"nodeName": on} if on else {})}
    metadata = {"name": name, "annotations": {"scheduling.k8s.io/group-name": of}, **meta}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}}


def written(tmp_path: Path, *objects: Object) -> Path:
    file = tmp_path / "dump.yaml"
    file.write_text(yaml.safe_dump_all(objects), "utf-8")
    return file


ENDED = (
    node(),
    group("g", "Running"),
    pod("g-0", "g", "Succeeded", "n0"),
    pod("g-1", "g", "Failed", "n0"),
    group("h", "Pending"),
    pod("h-0", "h", "Pending"),
)


def test_ended_pods_stay_ended_and_hold_nothing(tmp_path: Path) -> None:
    run = ["-f", written(tmp_path, *ENDED), "--time", "virtual", "--until", "idle", "--db", tmp_path / "x.db"]
    said = pumice("run", *run, "-o", "json")
    assert said.json["pods"] == {"bound": 3, "running": 0, "succeeded": 2, "failed": 1, "pending": 0}
    assert said.json["seconds"] < 10


def test_the_future_of_a_dump_knows_what_has_ended(tmp_path: Path) -> None:
    found = pumice("whatif", "-f", written(tmp_path, *ENDED), "--until-starts", "default/h", "-o", "json")
    assert found.json["starts_s"] == 0.0


def test_pods_that_terminate_go_and_make_room(tmp_path: Path) -> None:
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30, "uid": "u-1"}
    file = written(tmp_path, node(), group("g", "Running"), pod("g-0", "g", "Running", "n0", **going),
        group("h", "Pending"), pod("h-0", "h", "Pending"))  # fmt: skip
    run = ["-f", file, "--time", "virtual", "--until", "idle", "--db", tmp_path / "x.db"]
    assert pumice("run", *run, "-o", "json").json["pods"]["succeeded"] == 1
    assert pumice("whatif", "-f", file, "--until-starts", "default/h", "-o", "json").json["starts_s"] <= 31


def test_what_a_job_has_is_not_made_again(tmp_path: Path) -> None:
    """The pods of a dump come after their Job there; the controller that is at work must not make them before."""
    template = {"spec": {"containers": [{"name": "c", "image": "x"}], "restartPolicy": "Never"}}
    meta = {"name": "j", "uid": "12345678-1234-1234-1234-123456789abc", "resourceVersion": "5"}
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": meta,
        "spec": {
            "minAvailable": 1,
            "schedulerName": "volcano",
            "queue": "default",
            "tasks": [{"name": "w", "replicas": 1, "template": template}],
        },
        "status": {"state": {"phase": "Running"}, "running": 1, "minAvailable": 1, "version": 1},
    }
    owner = {"apiVersion": job["apiVersion"], "kind": "Job", "name": "j", "uid": meta["uid"], "controller": True}
    marks = {"volcano.sh/job-name": "j", "volcano.sh/task-spec": "w", "volcano.sh/job-version": "1"}
    there = pod("j-w-0", f"j-{meta['uid']}", "Running", "n0", uid="u-0", ownerReferences=[owner], labels=marks)
    there["metadata"]["annotations"] |= marks | {"pumice.dev/duration": "3s", "volcano.sh/task-index": "0"}
    pg = group(f"j-{meta['uid']}", "Running")
    pg["metadata"] |= {"ownerReferences": [owner], "uid": "u-g"}
    file = written(tmp_path, node(), job, pg, there)
    run = ["-f", file, "--time", "virtual", "--until", "idle", "--db", tmp_path / "x.db"]
    said = pumice("run", *run, "-o", "json").json
    assert said["jobs"]["default/j"]["phase"] == "Completed"
    assert said["pods"]["succeeded"] == 1


def test_a_recorded_tree_of_queues_is_forked_whole(tmp_path: Path) -> None:
    queues = [
        {"apiVersion": QUEUE, "kind": "Queue", "metadata": {"name": name}, "spec": {"parent": parent}}
        for name, parent in (("top", "root"), ("team", "top"))
    ]
    requests = {"requests": {"cpu": "2"}}
    template = {
        "metadata": {"annotations": {"pumice.dev/duration": "10m"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "b", "resources": requests}]},
    }
    jobs = [
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": name},
            "spec": {"queue": "team", "tasks": [{"name": "w", "replicas": 1, "template": template}]},
        }
        for name in ("a", "b")
    ]
    db = tmp_path / "m.db"
    pumice("run", "-f", written(tmp_path, node(), *queues, *jobs), "--time", "virtual", "--until", "60s", "--db", db)
    assert list(pumice("eta", "--db", db, "-o", "json").json.keys() - {"schema"}) == ["default/b"]
    found = pumice("whatif", "--db", db, "--add-nodes", "1:like=n0", "-o", "json")
    assert found.json["jobs"]["default/b"]["code"] == "StartsEarlier"
    assert "left out" not in found.err


def test_a_change_of_a_recorded_object_is_judged_as_a_change(tmp_path: Path) -> None:
    closed = {"apiVersion": QUEUE, "kind": "Queue", "metadata": {"name": "old"}, "spec": {"weight": 1}}
    there = group("g", "Pending") | {"spec": {"minMember": 1, "queue": "old"}}  # no new one may name a closed queue
    file = written(tmp_path, node(), closed | {"status": {"state": "Closed"}}, there)
    for change in ("queue/old:spec.weight=3", "podgroup/default/g:spec.minMember=2"):
        found = pumice("whatif", "-f", file, "--set", change, "--horizon", "10s", "-o", "json")
        assert found.code == 0, found.err
    assert pumice("whatif", "-f", file, "--set", "queue/old:spec.weight=70000", "--horizon", "10s").code == 2


def test_an_object_that_is_given_twice_counts_once(tmp_path: Path) -> None:
    old, new = (pod("p", "g", "Pending", uid="u", resourceVersion=version) for version in ("9", "10"))
    new["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1"
    file = written(tmp_path, node(), node(), new, group("g", "Inqueue"), old, old)
    found = pumice("decide", "-f", file, "-o", "json")
    assert found.code == 0
    assert found.json["cycles"][0]["binds"] == {"default/p": "n0"}
    assert found.json["queues"]["default"]["request_milli_cpu"] == 1000


def test_two_authors_of_one_object_are_told(tmp_path: Path) -> None:
    one, other = (node("n0") | {"spec": {"unschedulable": closed}} for closed in (True, False))
    found = pumice("decide", "-f", written(tmp_path, one, other))
    assert found.code == 2
    assert "was already given" in found.err


def test_every_command_assumes_the_queues_of_volcano(tmp_path: Path) -> None:
    file = written(tmp_path, node(), group("g", "Pending"), pod("p", "g", "Pending"))
    assert pumice("decide", "-f", file, "-o", "json").json["cycles"][0]["binds"] == {"default/p": "n0"}
    assert "would" in pumice("explain", "-f", file, "podgroup", "g").out
    assert "default" in pumice("queue", "-f", file, "-o", "json").json["queues"]
    assert pumice("whatif", "-f", file, "--until-starts", "default/g", "-o", "json").json["starts_s"] == 0.0
