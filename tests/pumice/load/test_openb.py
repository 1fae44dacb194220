"""The openb trace: GPUs as a scalar, card models as affinity, everything Pending."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from pumice.errors import InputError
from pumice.load.openb import pod_group_of, read_openb
from tests.kit import source

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\nn1,32000,131072,0,\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "p0,12000,16384,1,1000,,LS,Running,0,12537496,0\n"
    "p1,6000,12288,8,1000,V100M16|V100M32,LS,Succeeded,60,12902960,427061\n"
    "p2,100,1,1,460,,BE,Failed,61,62,\n"
    "p3,100,1,0,0,,BE,Pending,61,62,\n"
)
TRACES = source.SHARED / "traces" / "openb"


def read(tmp_path: Path, nodes: str = NODES, pods: str = PODS) -> list[dict[str, Any]]:
    """The objects of two files with that content."""
    (tmp_path / "n.csv").write_text(nodes)
    (tmp_path / "p.csv").write_text(pods)
    return list(read_openb(f"openb:{tmp_path / 'n.csv'},{tmp_path / 'p.csv'}"))


def requests(pod: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = pod["spec"]["containers"][0]["resources"]["requests"]
    return found


def test_nodes(tmp_path: Path) -> None:
    first, second = read(tmp_path)[:2]
    assert first["status"]["allocatable"]["alibabacloud.com/gpu-milli"] == "2000"
    assert first["status"]["allocatable"]["cpu"] == "64000m"
    assert first["metadata"]["labels"]["alibabacloud.com/gpu-card-model"] == "P100"
    assert "alibabacloud.com/gpu-milli" not in second["status"]["allocatable"]


def test_pods(tmp_path: Path) -> None:
    pods = read(tmp_path)[2:]
    assert [requests(pod).get("alibabacloud.com/gpu-milli") for pod in pods] == ["1000", "8000", "460", None]
    assert {pod["status"]["phase"] for pod in pods} == {"Pending"}
    assert {pod["spec"]["schedulerName"] for pod in pods} == {"volcano"}
    assert pods[1]["metadata"]["creationTimestamp"] == "2020-01-01T00:01:00Z"
    required = pods[1]["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (expression,) = required["nodeSelectorTerms"][0]["matchExpressions"]
    assert expression == {"key": "alibabacloud.com/gpu-card-model", "operator": "In", "values": ["V100M16", "V100M32"]}
    assert "affinity" not in pods[0]["spec"]


def test_a_group_of_its_own(tmp_path: Path) -> None:
    pod, group = pod_group_of(read(tmp_path)[2])
    assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == group["metadata"]["name"]
    assert group["spec"]["minResources"]["alibabacloud.com/gpu-milli"] == "1000"
    assert group["spec"]["minMember"] == 1


def test_gzipped_files_without_times(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text(NODES)
    short = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,12000,16384,1,1000\np1,1,1,0,0\n"
    (tmp_path / "p.csv.gz").write_bytes(gzip.compress(short.encode()))
    pods = list(read_openb(f"openb:{tmp_path / 'n.csv'},{tmp_path / 'p.csv.gz'}"))[2:]
    created = [pod["metadata"]["creationTimestamp"] for pod in pods]
    assert created == sorted(created)
    assert len(set(created)) == 2


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ("sn,cpu_milli,memory_mib,gpu,model\nn0,64000,lots,2,P100\n", r"n\.csv:2: memory_mib: expected a number"),
        (
            "sn,cpu_milli,memory_mib,gpu,model\nn0,-1,5,2,P100\n",
            r"n\.csv:2: cpu_milli: expected a number ≥ 0, was '-1'",
        ),
        ("sn,cpu_milli\nn0,1\n", r"n\.csv:1: expected the columns memory_mib, gpu, model"),
    ],
)
def test_a_bad_cell_is_named_by_file_line_and_column(tmp_path: Path, nodes: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read(tmp_path, nodes)


def test_two_files_are_needed() -> None:
    with pytest.raises(InputError, match=r"expected openb:NODES\.csv,PODS\.csv"):
        list(read_openb("openb:one.csv"))


@pytest.mark.skipif(not TRACES.is_dir(), reason="the traces are not beside the repository")
def test_the_trace_itself() -> None:
    objects = list(read_openb(f"openb:{TRACES}/openb_node_list_gpu_node.csv,{TRACES}/openb_pod_list_default.csv"))
    nodes = [obj for obj in objects if obj["kind"] == "Node"]
    assert (len(nodes), len(objects) - len(nodes)) == (1213, 8152)
    gpus = sum(int(node["status"]["allocatable"].get("alibabacloud.com/gpu-milli", 0)) for node in nodes)
    assert gpus == 6_212_000
    demand = sum(int(requests(pod).get("alibabacloud.com/gpu-milli", 0)) for pod in objects[1213:])
    assert demand == pytest.approx(6_086_800, abs=50)
