"""Archives of clusters and exports of other schedulers, in the layouts that their projects document or write."""

from __future__ import annotations

import io
import json
import os
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from pumice.core.objects.metadata import Object
from pumice.errors import InputError
from pumice.load.manifests import Loaded, load


def read(path: Path) -> Loaded:
    return load([str(path)], io.StringIO())


def named(found: Loaded) -> set[tuple[str, str]]:
    return {(obj["kind"], obj["metadata"]["name"]) for obj in found.objects}


def pod(name: str, **metadata: Any) -> Object:
    spec = {"containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "a", **metadata}, "spec": spec}


def node(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": "4"}}}


def packed(path: Path, files: dict[str, str], mode: str = "w:gz") -> Path:
    opened: Any = tarfile.open  # its overloads want the mode as a literal
    with opened(path, mode) as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return path


def backup(preferred: str = "v1-preferredversion") -> dict[str, str]:
    """A velero backup of format 1.1: each object under its resource, and again under its version."""
    of_pod, of_node = json.dumps(pod("p", uid="1", resourceVersion="7")), json.dumps(node("node"))
    odd = json.dumps(
        {"apiVersion": "velero.io/v1", "kind": "Restore", "metadata": {"name": "r", "namespace": "velero"}}
    )
    return {
        "metadata/version": "1.1.0\n",
        "resources/pods/namespaces/a/p.json": of_pod,
        f"resources/pods/{preferred}/namespaces/a/p.json": of_pod,
        "resources/nodes/cluster/n.json": of_node,
        f"resources/nodes/{preferred}/cluster/n.json": of_node,
        "resources/horizontalpodautoscalers.autoscaling/v2beta1/namespaces/a/h.json": "{}",
        "resources/restores.velero.io/namespaces/velero/r.json": odd,
    }


# --- velero


@pytest.mark.parametrize("mode", ["w:gz", "w"])
def test_a_velero_backup_gives_each_object_once(tmp_path: Path, mode: str) -> None:
    found = read(packed(tmp_path / "backup1234.tar.gz", backup(), mode))
    assert not found.problems
    assert named(found) == {("Pod", "p"), ("Node", "node")}
    assert len(found.objects) == 2
    left = {line.partition(".gz: ")[2] for line in found.skipped}
    assert left == {
        "1 files left out: about the backup itself",
        "3 files left out: other versions of objects",
        "1 documents left out: velero.io/v1 Restore is not a kind that Pumice knows",
    }


def test_an_unpacked_velero_backup_reads_alike(tmp_path: Path) -> None:
    for name, text in backup().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "resources/horizontalpodautoscalers.autoscaling/v2beta1/namespaces/a/h.json").unlink()
    assert named(read(tmp_path)) == {("Pod", "p"), ("Node", "node")}


# --- must-gather


def gathered() -> dict[str, str]:
    """As `oc adm inspect` writes: lists below a group, single objects below a resource, pods again in folders."""
    listed = {"apiVersion": "v1", "kind": "PodList", "items": [pod("p"), pod("q")]}
    top = "must-gather.local.42/quay-io-release-sha256-1/"
    files = {
        "cluster-scoped-resources/core/nodes/n.yaml": yaml.safe_dump(node("node")),
        "cluster-scoped-resources/config.openshift.io/infrastructures.yaml": yaml.safe_dump(
            {"apiVersion": "config.openshift.io/v1", "kind": "Infrastructure", "metadata": {"name": "cluster"}}
        ),
        "namespaces/a/core/pods.yaml": yaml.safe_dump(listed),
        "namespaces/a/pods/p/p.yaml": yaml.safe_dump(pod("p")),
        "namespaces/a/pods/p/main/main/logs/current.log": "hello\n",
        "namespaces/a/core/events.yaml": "---\n",
        "etcd_info/endpoint_health.json": '[{"health": true}]',
        "event-filter.html": "<html>",
    }
    return {top + name: text for name, text in files.items()}


@pytest.mark.parametrize("form", ["folder", "folder above", "tar"])
def test_a_must_gather_gives_its_objects(tmp_path: Path, form: str) -> None:
    for name, text in gathered().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    path = tmp_path / "must-gather.local.42" if form == "folder" else tmp_path
    if form == "tar":
        path = packed(tmp_path / "must-gather.tgz", gathered())
    found = read(path)
    assert not found.problems
    assert named(found) == {("Pod", "p"), ("Pod", "q"), ("Node", "node")}
    left = {line.partition(f"{path}: ")[2] for line in found.skipped}
    assert left == {
        "3 files left out: logs and data of other tools",
        "1 documents left out: config.openshift.io/v1 Infrastructure is not a kind that Pumice knows",
    }


def test_a_folder_of_manifests_is_no_must_gather(tmp_path: Path) -> None:
    (tmp_path / "namespaces").mkdir()
    (tmp_path / "namespaces" / "a.yaml").write_text("- not an object\n")
    assert len(read(tmp_path).problems) == 1


# --- KAI, kube-scheduler-simulator


def bare(obj: Object) -> Object:
    """An item as Go's typed lists write it: without its type."""
    return {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}


def snapshot() -> Object:
    """A snapshot as KAI's plugin writes it."""
    kai: Object = pod("p", annotations={"pod-group-name": "g", "gpu-fraction": "0.5"})
    kai["spec"]["schedulerName"] = "kai-scheduler"
    amounts = {"gpu": {"quota": 2.5, "overQuotaWeight": 3, "limit": -1}, "cpu": {"quota": -1, "limit": 1234567}}
    return {
        "config": {"actions": "allocate"},
        "schedulerParams": {"schedulerName": "kai-scheduler"},
        "rawObjects": {
            "pods": [bare(kai), bare(pod("other"))],
            "nodes": [bare(node("node"))],
            "queues": [
                {"metadata": {"name": "top"}, "spec": {"resources": amounts, "priority": 7}},
                {"metadata": {"name": "team"}, "spec": {"parentQueue": "top"}},
            ],
            "podGroups": [
                {
                    "metadata": {"name": "g", "namespace": "a"},
                    "spec": {
                        "queue": "team",
                        "subGroups": [{"name": "x", "minMember": 2}, {"name": "y", "minMember": 1}],
                    },
                }
            ],
            "bindRequests": [{"metadata": {"name": "b"}}],
            "priorityClasses": [{"metadata": {"name": "train"}, "value": 50}],
            "topologies": None,
        },
    }


def test_a_snapshot_of_kai_becomes_volcanos_objects(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.gzip"  # as KAI's page names the ZIP
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("snapshot.json", json.dumps(snapshot()))
    found = read(path)
    assert not found.problems
    by = {(obj["kind"], obj["metadata"]["name"]): obj for obj in found.objects}
    assert by["Pod", "p"]["spec"]["schedulerName"] == "volcano"
    assert by["Pod", "p"]["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "g"
    assert "schedulerName" not in by["Pod", "other"]["spec"]
    assert by["Queue", "top"]["spec"] == {
        "parent": "root",
        "weight": 3,
        "reclaimable": True,
        "priority": 7,
        "deserved": {"nvidia.com/gpu": "2.5"},
        "capability": {"cpu": "1234567m"},
    }
    assert by["Queue", "team"]["spec"]["parent"] == "top"
    assert by["PodGroup", "g"]["spec"] == {"minMember": 3, "queue": "team"}
    assert by["PriorityClass", "train"]["value"] == 50
    said = " ".join(found.skipped)
    for why in ("1 parts left out: bindRequests", "gpu-fraction of a pod", "subGroups of a PodGroup", "config has no"):
        assert why in said


def test_an_export_of_the_simulator_is_read(tmp_path: Path) -> None:
    export = {
        "pods": [bare(pod("p"))],
        "nodes": [bare(node("node"))],
        "pvs": [],
        "pvcs": [{"metadata": {"name": "c", "namespace": "a"}, "spec": {"accessModes": ["ReadWriteOnce"]}}],
        "storageClasses": [{"metadata": {"name": "s"}, "provisioner": "x"}],
        "priorityClasses": [],
        "namespaces": [{"metadata": {"name": "a"}}],
        "schedulerConfig": {"kind": "KubeSchedulerConfiguration", "apiVersion": "kubescheduler.config.k8s.io/v1"},
    }
    (tmp_path / "export.json").write_text(json.dumps(export))
    found = read(tmp_path / "export.json")
    assert not found.problems
    wanted = {("Pod", "p"), ("Node", "node"), ("PersistentVolumeClaim", "c"), ("StorageClass", "s"), ("Namespace", "a")}
    assert named(found) == wanted
    assert [line.rpartition(": ")[2] for line in found.skipped] == ["schedulerConfig has no counterpart here"]


# --- damage


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    path = packed(tmp_path / "b.tar", backup(), "w")
    path.write_bytes(path.read_bytes()[:1300])
    with pytest.raises(InputError, match=r"b\.tar: not a whole tar archive"):
        read(path)
    whole = tmp_path / "s.zip"
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("snapshot.json", json.dumps(snapshot()))
    whole.write_bytes(whole.read_bytes()[:-40])
    with pytest.raises(InputError, match=r"s\.zip: not a whole zip archive"):
        read(whole)


def test_too_many_bytes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pumice.load.archives.MOST_BYTES", 300)
    with pytest.raises(InputError, match="longer than 300 bytes"):
        read(packed(tmp_path / "b.tar.gz", backup()))


def test_a_pipe_is_no_archive(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError):
        raise read(tmp_path / "pipe").problems[0]
