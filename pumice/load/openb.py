# SPDX-License-Identifier: Apache-2.0
"""The openb trace (a heterogeneous GPU cluster) as Nodes and Pods: `openb:NODES.csv,PODS.csv`, each plain or gzipped.

Nodes: sn, cpu_milli, memory_mib, gpu, model. Pods: name, cpu_milli, memory_mib, num_gpu, gpu_milli and, in most
files, gpu_spec and creation_time. A GPU is 1000 units of the scalar `alibabacloud.com/gpu-milli`; a pod's gpu_spec
("A|B") becomes required node affinity on the label with the card model. Every pod is Pending, whatever the trace says
became of it, and once it runs it stays; with `,times` at the end, each comes at its creation_time and runs as long as
it did.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pumice.cluster.kubelets.pod_runs import DURATION
from pumice.core.objects.metadata import Object
from pumice.errors import InputError
from pumice.load.source import read_text
from pumice.load.traces.jobs import SHORTEST_S
from pumice.runtime.arrivals import ARRIVAL, duration_text
from pumice.units import format_moment

PREFIX: Final = "openb:"
TIMES: Final = "times"
GPU: Final = "alibabacloud.com/gpu-milli"
MODEL: Final = "alibabacloud.com/gpu-card-model"
NAMESPACE: Final = "default"
NODE_PODS: Final = "110"
NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
START: Final = 1_577_836_800  # 2020-01-01T00:00:00Z: second 0 of the trace

Row = dict[str, str]

QUEUE: Final[Object] = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "default"},
    "spec": {"weight": 1},
    "status": {"state": "Open"},
}
"""Of all pods of the trace."""


def read_openb(argument: str) -> Iterator[Object]:
    """Yield nodes, then pods, in the order of the files. InputError names file, line and column of the problem."""
    nodes, pods, times = _named(argument)
    for row in rows_of(nodes, NODE_COLUMNS):
        yield _node(row)
    for row in rows_of(pods, POD_COLUMNS):
        yield _in_its_time(_pod(row), row) if times else _pod(row)


def _named(argument: str) -> tuple[Path, Path, bool]:
    """Return nodes, pods, and whether pods come and end at their recorded times."""
    names = argument.removeprefix(PREFIX).split(",")
    if not 2 <= len(names) <= 3 or names[2:] not in ([], [TIMES]):
        raise InputError(f"expected {PREFIX}NODES.csv,PODS.csv or {PREFIX}NODES.csv,PODS.csv,{TIMES}", source=argument)
    return Path(names[0]), Path(names[1]), len(names) == 3


def _in_its_time(pod: Object, cells: OpenbRow) -> Object:
    """Return the pod as it came, for as long as it ran: from scheduled_time (else creation_time) to deletion_time."""
    created = cells.number("creation_time")
    began = cells.number("scheduled_time") if cells.text("scheduled_time") else created
    annotations = {
        ARRIVAL: duration_text(created),
        DURATION: duration_text(max(cells.number("deletion_time") - began, SHORTEST_S)),
    }
    metadata = {name: value for name, value in pod["metadata"].items() if name != "creationTimestamp"}
    return {**pod, "metadata": {**metadata, "annotations": annotations}}


def pod_group_of(pod: Object) -> tuple[Object, Object]:
    """Return the pod tied to a PodGroup of its own, and that PodGroup, as the PodGroup controller would make it."""
    metadata, spec = pod["metadata"], pod["spec"]
    name = f"podgroup-{metadata['name']}"
    annotations: Object = {**(metadata.get("annotations") or {}), "scheduling.k8s.io/group-name": name}
    group: Object = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": {
            "minMember": 1,
            "queue": "default",
            "minResources": dict(spec["containers"][0]["resources"]["requests"]),
        },
        "status": {"phase": "Pending"},
    }
    return {**pod, "metadata": {**metadata, "annotations": annotations}}, group


class OpenbRow:
    """One row of a CSV file, and its place."""

    def __init__(self, row: Row, path: Path, line: int) -> None:
        self.row = row
        self.path = path
        self.line = line

    def text(self, column: str) -> str:
        """Return a column's text, "" without one."""
        return self.row.get(column) or ""

    def number(self, column: str) -> int:
        """Return a column's whole number. Raises InputError for another text or a negative number."""
        text = self.text(column)
        try:
            value = int(float(text))
        except ValueError:
            value = -1
        if value < 0:
            problem = f"expected a number ≥ 0, was {text!r}"
            raise InputError(problem, source=str(self.path), line=self.line, path=column)
        return value


def rows_of(path: Path, columns: tuple[str, ...]) -> Iterator[OpenbRow]:
    """Yield the rows of a CSV file that has at least these columns. Raises InputError."""
    reader = csv.DictReader(read_text(path).splitlines())
    missing = [column for column in columns if column not in (reader.fieldnames or ())]
    if missing:
        raise InputError(f"expected the columns {', '.join(missing)}", source=str(path), line=1)
    for row in reader:
        yield OpenbRow(row, path, reader.line_num)


def _node(cells: OpenbRow) -> Object:
    name, model = cells.text("sn"), cells.text("model")
    quantities = {
        "cpu": f"{cells.number('cpu_milli')}m",
        "memory": f"{cells.number('memory_mib')}Mi",
        "pods": NODE_PODS,
    }
    gpus = cells.number("gpu")
    if gpus:
        quantities[GPU] = str(1000 * gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **({MODEL: model} if model else {})}},
        "spec": {},
        "status": ready_with(quantities),
    }


def ready_with(amounts: dict[str, str]) -> Object:
    """Return the status of a node that is ready and has so much."""
    return {"allocatable": amounts, "capacity": dict(amounts), "conditions": [{"type": "Ready", "status": "True"}]}


def _pod(cells: OpenbRow) -> Object:
    name = cells.text("name")
    requests = {"cpu": f"{cells.number('cpu_milli')}m", "memory": f"{cells.number('memory_mib')}Mi"}
    gpu = cells.number("num_gpu") * cells.number("gpu_milli")
    if gpu:
        requests[GPU] = str(gpu)
    created = cells.number("creation_time") if cells.text("creation_time") else cells.line
    container = {"name": "main", "image": "openb", "resources": {"requests": requests, "limits": _limits(requests)}}
    pod = pod_of_trace(name, created, container, {"pumice.dev/duration": "0"})
    models = [model for model in cells.text("gpu_spec").split("|") if model]
    if models:
        pod["spec"]["affinity"] = _affinity(models)
    return pod


def pod_of_trace(name: str, created_s: int, container: Object, annotations: dict[str, str]) -> Object:
    """Return a pod that came so long after the start of the trace."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "creationTimestamp": format_moment(START + created_s),
            "annotations": annotations,
        },
        "spec": {"schedulerName": "volcano", "containers": [container], "restartPolicy": "Never"},
        "status": {"phase": "Pending"},
    }


def _limits(requests: Row) -> Row:
    """Return the limits: extended resources cannot be overcommitted, so their limit is their request."""
    return {GPU: requests[GPU]} if GPU in requests else {}


def _affinity(models: list[str]) -> Object:
    term = {"matchExpressions": [{"key": MODEL, "operator": "In", "values": models}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
