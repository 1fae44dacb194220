"""A dump of a cluster goes on under `run`: its pods stay where they are, with their owners, age and status."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pumice.cluster.api.names import uid_of
from pumice.core.objects.metadata import Object
from pumice.load.manifests import still_running
from tests.kit.nodes import node
from tests.kit.pods import pod
from tests.pumice.cli.terminal import Said, pumice

CONTAINERS: Object = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}
TEMPLATE: Object = {"metadata": {"labels": {"app": "web"}}, "spec": {**CONTAINERS, "schedulerName": "volcano"}}
AGE = "2020-05-05T05:05:05Z"


def came(obj: Object, uid: str, *owners: Object, phase: str = "") -> Object:
    """As `kubectl get -o yaml` shows it."""
    meta = {**obj["metadata"], "uid": uid, "creationTimestamp": AGE, "resourceVersion": "7", "namespace": "default"}
    references = [
        {"apiVersion": each["apiVersion"], "kind": each["kind"], "name": each["metadata"]["name"], "controller": True}
        | {"uid": each["metadata"]["uid"]}
        for each in owners
    ]
    whole = {**obj, "metadata": {**meta, **({"ownerReferences": references} if references else {})}}
    return {**whole, "status": {"phase": phase}} if phase else whole


def dump() -> list[Object]:
    selector = {"matchLabels": {"app": "web"}}
    meta = {"name": "web"}
    spec = {"replicas": 1, "selector": selector, "template": TEMPLATE}
    web = came({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}, "uid-of-web")
    marked = {**TEMPLATE, "metadata": {"labels": {"app": "web", "pod-template-hash": "6d5f"}}}
    name = {"name": "web-6d5f", "labels": marked["metadata"]["labels"]}
    of_set = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": name, "spec": {**spec, "template": marked}}
    replica_set = came(of_set, "uid-of-set", web)
    labels = {"app": "web", "pod-template-hash": "6d5f"}
    running = came(pod("web-6d5f-abc", node="n0", labels=labels), "uid-of-pod", replica_set, phase="Running")
    ended = came(pod("old", node="n0"), uid_of(0, 12), phase="Succeeded")
    return [node("n0"), web, replica_set, running, ended, pod("new", cpu="1")]


def run(tmp_path: Path, *arguments: object) -> Said:
    file = tmp_path / "dump.yaml"
    file.write_text(yaml.safe_dump_all(dump()))
    where = ("-f", file, "--db", tmp_path / "run.db", "--time", "virtual", "-o", "json")
    return pumice("run", *where, *arguments)


def test_running_pods_go_on_and_ended_ones_stay_ended(tmp_path: Path) -> None:
    said = run(tmp_path, "--until", "100s")
    assert said.code == 0, said.err
    pods = said.json["pods"]
    assert (pods["running"], pods["succeeded"], pods["pending"]) == (1, 2, 0)  # web; old and new
    story = pumice("journal", tmp_path / "run.db", "--about", "default/web-6d5f-abc", "-o", "json").out
    assert "Succeeded" not in story


@pytest.mark.parametrize(("given", "running"), [("0", 2), ("1h", 2), ("30s", 1)])
def test_how_long_others_run_is_said_once_for_all(tmp_path: Path, given: str, running: int) -> None:
    said = run(tmp_path, "--until", "100s", "--default-duration", given)
    assert said.json["pods"]["running"] == running


def test_no_duration_is_refused(tmp_path: Path) -> None:
    said = run(tmp_path, "--default-duration", "soon")
    assert said.code == 2
    assert "--default-duration" in said.err


def test_a_pod_that_says_how_long_it_runs_is_left_alone() -> None:
    says = pod("p", node="n0", phase="Running", duration="9s")
    waits = pod("q", phase="Pending")
    quiet = pod("r", node="n0", phase="Running")
    after = still_running([says, waits, quiet])
    assert after[:2] == [says, waits]
    assert after[2]["metadata"]["annotations"]["pumice.dev/duration"] == "0"
    assert "annotations" not in quiet["metadata"] or "pumice.dev/duration" not in quiet["metadata"]["annotations"]
