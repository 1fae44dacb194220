# SPDX-License-Identifier: Apache-2.0
"""A job of a trace, whatever its format, and the objects made of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pumice.cluster.controllers.flows import API_VERSION as FLOW_VERSION
from pumice.cluster.controllers.flows import THINK
from pumice.cluster.kubelets.pod_runs import DURATION
from pumice.core.objects.metadata import Object
from pumice.core.resources.amounts import CPU, MEMORY
from pumice.questions.measures.lives import USER
from pumice.runtime.arrivals import ARRIVAL, duration_text

GPU: Final = "nvidia.com/gpu"
NAMESPACE: Final = "default"
SHORTEST_S: Final = 1.0
"""Traces count in whole seconds, and a duration of 0 means "for ever" to a node agent."""


@dataclass(frozen=True, slots=True)
class TraceJob:
    """One job. `arrival_s`: seconds after the beginning; `duration_s`: from the start of a pod to its end.

    `pods`: counts and amounts (by resource, in Kubernetes' quantities); all of them must start together unless
    `gang` is smaller. `priority`: of a PriorityClass that is made for it, None: none. `ttl_s`: so long after its end it
    is deleted with its pods, None: never. `after`: the job whose end its user waits for, and thinks for `think_s` then,
    before this one is submitted; "": it comes at its arrival.
    """

    name: str
    arrival_s: float
    duration_s: float
    pods: tuple[tuple[int, Mapping[str, str]], ...]
    queue: str = "default"
    user: str = ""
    gang: int | None = None
    priority: int | None = None
    ttl_s: int | None = None
    after: str = ""
    think_s: float = 0.0

    @property
    def size(self) -> int:
        """Return the number of pods."""
        return sum(count for count, _ in self.pods)


@dataclass(slots=True)
class Left:
    """Jobs of a trace (or `what` it is) that were left out, by the reason."""

    out: dict[str, int] = field(default_factory=dict[str, int])
    what: str = "jobs"

    def note(self, why: str) -> None:
        """Count one more for this reason."""
        self.out[why] = self.out.get(why, 0) + 1


def objects_of(jobs: Iterable[TraceJob]) -> Iterator[Object]:
    """Yield the queues and priority classes that jobs name, and each as a Volcano Job with its arrival."""
    queues, priorities = {"default"}, set[int]()
    for job in jobs:
        if job.queue not in queues:
            queues.add(job.queue)
            yield queue_of(job.queue)
        if job.priority is not None and job.priority not in priorities:
            priorities.add(job.priority)
            yield priority_class_of(job.priority)
        yield volcano_job(job)


def linked_objects_of(jobs: Iterable[TraceJob]) -> Iterator[Object]:
    """Yield the objects of jobs, some of which are submitted only after the end of others (`after`, an earlier job).
    Jobs that follow each other become a JobFlow, which comes with its first job, and a JobTemplate each.
    """
    listed = list(jobs)
    roots = dict[str, str]()
    for job in listed:
        roots[job.name] = roots.get(job.after, job.name)
    sizes = Counter(roots.values())
    alone = {job.name for job in listed if sizes[roots[job.name]] == 1}
    for obj in objects_of(listed):
        if obj["kind"] != "Job" or obj["metadata"]["name"] in alone:
            yield obj
    members = dict[str, list[TraceJob]]()
    for job in listed:
        if job.name not in alone:
            members.setdefault(roots[job.name], []).append(job)
    for flow in members.values():
        yield from _flow(flow)


def _flow(jobs: Sequence[TraceJob]) -> Iterator[Object]:
    """Yield the templates of jobs, the first of which all others follow, and their JobFlow."""
    names = {job.name for job in jobs}
    for job in jobs:
        annotations = {THINK: duration_text(job.think_s)} if job.after in names and job.think_s else {}
        # A job that is deleted would be made again by its flow.
        spec = volcano_job(replace(job, ttl_s=None))["spec"]
        metadata = {"name": job.name, "namespace": NAMESPACE, "annotations": annotations}
        yield {"apiVersion": FLOW_VERSION, "kind": "JobTemplate", "metadata": metadata, "spec": spec}
    flows = [
        {"name": job.name, **({"dependsOn": {"targets": [job.after]}} if job.after in names else {})} for job in jobs
    ]
    arrival = {ARRIVAL: duration_text(jobs[0].arrival_s)}
    metadata = {"name": f"of-{jobs[0].name}", "namespace": NAMESPACE, "annotations": arrival}
    spec = {"flows": flows, "jobRetainPolicy": "retain"}
    yield {"apiVersion": FLOW_VERSION, "kind": "JobFlow", "metadata": metadata, "spec": spec}


def volcano_job(job: TraceJob) -> Object:
    """Return the manifest, a task for each shape of pod."""
    annotations = {ARRIVAL: duration_text(job.arrival_s)}
    spec: Object = {
        "schedulerName": "volcano",
        "queue": job.queue,
        "minAvailable": job.size if job.gang is None else job.gang,
        "tasks": [
            {"name": f"t{number}", "replicas": count, "template": _template(job, amounts)}
            for number, (count, amounts) in enumerate(job.pods)
        ],
    }
    if job.priority is not None:
        spec["priorityClassName"] = priority_name(job.priority)
    if job.ttl_s is not None:
        spec["ttlSecondsAfterFinished"] = job.ttl_s
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": job.name, "namespace": NAMESPACE, "annotations": annotations},
        "spec": spec,
    }


def _template(job: TraceJob, amounts: Mapping[str, str]) -> Object:
    annotations = {DURATION: duration_text(max(job.duration_s, SHORTEST_S))}
    if job.user:
        annotations[USER] = job.user
    limits = {name: amount for name, amount in amounts.items() if name not in (CPU, MEMORY)}
    resources: Object = {"requests": dict(amounts), **({"limits": limits} if limits else {})}
    return {
        "metadata": {"annotations": annotations},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "trace", "resources": resources}],
        },
    }


def queue_of(name: str) -> Object:
    """Return a queue of weight 1."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, "reclaimable": True},
    }


def priority_name(priority: int) -> str:
    """Return the name of the class of a priority; such names have no minus at their beginning and no plus at all."""
    return f"priority-{priority}" if priority >= 0 else f"priority-minus-{-priority}"


def priority_class_of(priority: int) -> Object:
    """Return a PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": priority_name(priority)},
        "value": priority,
    }


def node_of(name: str, amounts: Mapping[str, str]) -> Object:
    """Return a node that gives that away, ready."""
    quantities = {**amounts, "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {
            "allocatable": quantities,
            "capacity": dict(quantities),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
