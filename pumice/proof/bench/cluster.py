# SPDX-License-Identifier: Apache-2.0
"""The clusters of the measurements, as Kubernetes objects: the same nodes, queues and gangs at any size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pumice.core.objects.metadata import Object
from pumice.units import format_moment

EPOCH: Final = 1_577_836_800  # 2020-01-01T00:00:00Z, when job 0 was created
NOW: Final = 1_795_226_400.0  # the clock of every measured cycle, long after the last job was created
NAMESPACE: Final = "default"
QUEUES: Final = ("q0", "q1", "q2", "q3")
SHAPES: Final = (("1", "2Gi"), ("2", "4Gi"), ("500m", "1Gi"), ("4", "8Gi"))
"""(cpu, memory) of every pod of job j: entry j mod 4."""

STOCK: Final = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
configurations:
- name: pumice
  arguments:
    percentageOfNodesToFind: 100
"""
"""Volcano's stock configuration, with every node examined."""


def nodes(count: int) -> Iterator[Object]:
    """Yield nodes n00000 and on: cpu 32, memory 128Gi, pods 110, in three zones."""
    quantities = {"cpu": "32", "memory": "128Gi", "pods": "110"}
    for index in range(count):
        name = f"n{index:05d}"
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "zone": f"z{index % 3}"}},
            "spec": {},
            "status": {
                "allocatable": quantities,
                "capacity": quantities,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }


def queues(count: int = len(QUEUES)) -> Iterator[Object]:
    """Return q0, q1 and so on, with the weights 1 to 4 in turn."""
    for index in range(count):
        name, weight = f"q{index}", 1 + index % len(QUEUES)
        yield {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": name, "creationTimestamp": format_moment(EPOCH)},
            "spec": {"weight": weight},
            "status": {"state": "Open"},
        }


def pod_group(job: int, gang: int, phase: str, queue_count: int = len(QUEUES)) -> Object:
    """Return job j's PodGroup, created j seconds after the first one's, in queue j mod the number of queues."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": f"j{job:05d}",
            "namespace": NAMESPACE,
            "uid": f"pg-{job:05d}",
            "creationTimestamp": format_moment(EPOCH + job),
        },
        "spec": {"minMember": gang, "queue": f"q{job % queue_count}"},
        "status": {"phase": phase},
    }


def pod(job: int, index: int, node: str = "") -> Object:
    """Return pod k of job j: pending, or running on a node."""
    cpu, memory = SHAPES[job % len(SHAPES)]
    created = format_moment(EPOCH + job)
    spec: Object = {
        "schedulerName": "volcano",
        "containers": [{"name": "c", "image": "work", "resources": {"requests": {"cpu": cpu, "memory": memory}}}],
    }
    status: Object = {"phase": "Pending"}
    if node:
        spec["nodeName"] = node
        status = {"phase": "Running", "startTime": created}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"j{job:05d}-worker-{index}",
            "namespace": NAMESPACE,
            "uid": f"pod-{job:05d}-{index:03d}",
            "annotations": {"scheduling.k8s.io/group-name": f"j{job:05d}", "volcano.sh/task-spec": "worker"},
            "creationTimestamp": created,
        },
        "spec": spec,
        "status": status,
    }


def pending_jobs(first: int, pods: int, gang: int) -> Iterator[Object]:
    """Return waiting gangs: pods / gang of them, numbered from `first`."""
    for job in range(first, first + jobs_of(pods, gang)):
        yield pod_group(job, gang, "Pending")
        for index in range(gang):
            yield pod(job, index)


def running_jobs(
    pods: int, gang: int, node_count: int, *, first: int = 0, queue_count: int = len(QUEUES)
) -> Iterator[Object]:
    """Return running gangs: the k-th pod of job j on node (j·gang + k) mod N."""
    for job in range(first, first + jobs_of(pods, gang)):
        yield pod_group(job, gang, "Running", queue_count)
        for index in range(gang):
            yield pod(job, index, f"n{(job * gang + index) % node_count:05d}")


def jobs_of(pods: int, gang: int) -> int:
    """Return the number of whole gangs that the pods make."""
    return pods // gang
