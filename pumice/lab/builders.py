# SPDX-License-Identifier: Apache-2.0
"""Objects in a line: nodes, queues, gangs. Each is a plain manifest that may be changed before it is submitted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pumice.cluster.kubelets.pod_runs import DURATION
from pumice.core.objects.metadata import Object
from pumice.errors import InputError
from pumice.load.traces.jobs import objects_of
from pumice.load.traces.table import read_rows
from pumice.runtime.arrivals import ARRIVAL

Quantity = str | int | float

GPU: Final = "nvidia.com/gpu"


def nodes(
    count: int,
    *,
    cpu: Quantity = 8,
    memory: Quantity = "32Gi",
    gpu: Quantity = 0,
    pods: int = 110,
    name: str = "node",
    labels: Mapping[str, str] | None = None,
    extra: Mapping[str, Quantity] | None = None,
) -> list[Object]:
    """Return `count` ready nodes `name-0`, `name-1`, …; `extra`: further resources by name."""
    _check(count, 0, "nodes")
    width = len(str(max(count - 1, 0)))
    amounts = _amounts(cpu, memory, gpu, {**(extra or {}), "pods": pods})
    return [_node(f"{name}-{number:0{width}}", amounts, labels or {}) for number in range(count)]


def _node(name: str, amounts: Mapping[str, str], labels: Mapping[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "spec": {},
        "status": {
            "allocatable": dict(amounts),
            "capacity": dict(amounts),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def queue(name: str, *, weight: int = 1, parent: str | None = None, reclaimable: bool = True, **amounts: Any) -> Object:
    """Return a queue. `amounts`: capability, deserved or guarantee, each a mapping of resource -> quantity."""
    spec: Object = {"weight": weight, "reclaimable": reclaimable}
    if parent is not None:
        spec["parent"] = parent
    for what, amount in amounts.items():
        plain = {resource: str(value) for resource, value in amount.items()}
        spec[what] = {"resource": plain} if what == "guarantee" else plain
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def priority_class(name: str, value: int) -> Object:
    """Return a PriorityClass, for `gang(priority=name)`."""
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}


def gang(
    name: str,
    pods: int,
    *,
    cpu: Quantity = 1,
    memory: Quantity | None = None,
    gpu: Quantity = 0,
    duration: str | None = None,
    min_available: int | None = None,
    queue: str = "default",
    priority: str | None = None,
    arrival: str | None = None,
    namespace: str = "default",
    extra: Mapping[str, Quantity] | None = None,
) -> Object:
    """Return a Volcano Job of so many pods that start together, or `min_available` of them.

    `duration` (`90s`, `1h30m`; None: as the cluster has it) is how long a pod runs, `arrival` when the job comes, after
    the beginning. Raises InputError for less than one pod.
    """
    _check(pods, 1, f"pods of {name}")
    amounts = _amounts(cpu, memory, gpu, extra or {})
    limits = {resource: amount for resource, amount in amounts.items() if resource not in ("cpu", "memory")}
    template: Object = {
        "metadata": {"annotations": {} if duration is None else {DURATION: duration}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "work", "resources": {"requests": amounts, "limits": limits}}],
        },
    }
    spec: Object = {
        "schedulerName": "volcano",
        "queue": queue,
        "minAvailable": pods if min_available is None else min_available,
        "tasks": [{"name": "worker", "replicas": pods, "template": template}],
        **({} if priority is None else {"priorityClassName": priority}),
    }
    metadata: Object = {"name": name, "namespace": namespace}
    if arrival is not None:
        metadata["annotations"] = {ARRIVAL: arrival}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}


def trace(rows: Iterable[Mapping[str, Any]]) -> list[Object]:
    """Return jobs that come at their times, and the queues and priority classes that they name: a row for each job,
    with the columns of a table of jobs (docs/reference/traces.md): `arrival` and `duration` in seconds, `pods`, `cpu`,
    `gpu`, `queue` and the rest. Raises InputError, which names the row and the column. `pumice.read` reads the same
    from files.
    """
    return list(objects_of(read_rows(rows, "rows")))


def _check(count: object, least: int, what: str) -> None:
    if not isinstance(count, int) or count < least:
        raise InputError(f"expected a number of {what} from {least} on, was {count!r}")


def _amounts(cpu: Quantity, memory: Quantity | None, gpu: Quantity, extra: Mapping[str, Quantity]) -> dict[str, str]:
    found = {"cpu": str(cpu)}
    if memory is not None:
        found["memory"] = str(memory)
    if gpu:
        found[GPU] = str(gpu)
    return {**found, **{resource: str(amount) for resource, amount in extra.items()}}
