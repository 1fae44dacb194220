"""Kubernetes objects of a storm, from the few words that an event says about them."""

from __future__ import annotations

from typing import Final

from pumice.core.objects.metadata import Object
from pumice.proof.storm.script.claims import claimed, classes, offers, own_claims
from pumice.proof.storm.script.events import Event
from pumice.proof.storm.script.shares import asking, geometries, labels, limits, notes, policy, quantities, reports

NAMESPACE: Final = "default"
GPU: Final = "nvidia.com/gpu"
JOB: Final = "job"
ASKED: Final = {"cpu": "1", "memory": "1Gi"}
"""What a pod of a job asks for unless it says something else."""


def objects_of(event: Event) -> list[Object]:
    """What an event hands in: a node, a queue, a priority class, a budget, or a job with its pods."""
    details = event.details
    match event.what:
        case "node":
            return [node(event.target, details), *offers(event.target, details), *reports(event.target, details)]
        case "claims":
            return list(classes(NAMESPACE))
        case "geometries":
            return [geometries()]
        case "queue":
            return [queue(event.target, details)]
        case "priority":
            return [priority(event.target, int(event.amount))]
        case "vcjob":
            return [*own_claims(NAMESPACE, details), vcjob(event.target, details)]
        case "budget":
            return [budget(event.target, int(event.amount))]
        case "pods":
            loose = pods(event.target, details, range(int(details["pods"])), grouped=False)
            return [*own_claims(NAMESPACE, details), *loose]
        case "job":
            members = pods(event.target, details, range(int(details["pods"])))
            return [*own_claims(NAMESPACE, details), pod_group(event.target, details), *members]
        case _:
            return []


def node(name: str, details: Object) -> Object:
    """cpu, memory, pods, gpus."""
    there = {"cpu": str(details["cpu"]), "memory": str(details["memory"]), "pods": str(details.get("pods", 110))}
    there |= quantities(details)
    if details.get("gpus"):
        there[GPU] = str(details["gpus"])
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name} | labels(details),
            **({"annotations": said} if (said := notes(name, details)) else {}),
        },
        "spec": {},
        "status": {
            "allocatable": there,
            "capacity": there,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def queue(name: str, details: Object) -> Object:
    """weight, capability."""
    spec: Object = {"weight": details.get("weight", 1), "reclaimable": True}
    if details.get("capability"):
        spec["capability"] = details["capability"]
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def priority(name: str, value: int) -> Object:
    """A priority class."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def budget(job: str, least: int) -> Object:
    """So many pods of a job are to stay healthy."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"{job}-budget", "namespace": NAMESPACE},
        "spec": {"minAvailable": least, "selector": {"matchLabels": {JOB: job}}},
    }


def pod_group(name: str, details: Object) -> Object:
    """min, queue, priority."""
    spec: Object = {"minMember": int(details.get("min") or details["pods"]), "queue": details.get("queue", "default")}
    if details.get("priority"):
        spec["priorityClassName"] = details["priority"]
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def pods(job: str, details: Object, numbers: range, *, grouped: bool = True) -> list[Object]:
    """Pods job-0 and on of a job, which share all but their names; without a group each is left to get its own.

    cpu, memory (neither: best effort), gpus, port, seconds (0: it never ends), priority, scheduler.
    """
    marks = {JOB: job} | asking(details)
    notes = {"pumice.dev/duration": f"{details['seconds']}s" if details.get("seconds") else "0"} | policy(details)
    if grouped:
        notes |= {"scheduling.k8s.io/group-name": job, "volcano.sh/task-spec": "worker"}
    spec = {"schedulerName": details.get("scheduler", "volcano"), **_pod_spec(ASKED | details if grouped else details)}
    named = {"namespace": NAMESPACE, "labels": marks, "annotations": notes}
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{job}-{number}", **named}, "spec": spec}
        for number in numbers
    ]


def _pod_spec(details: Object) -> Object:
    requests: dict[str, str] = {name: str(details[name]) for name in ("cpu", "memory") if name in details}
    resources: Object = {"requests": requests}
    if details.get("gpus"):
        requests[GPU] = str(details["gpus"])
        resources["limits"] = {GPU: str(details["gpus"])}
    if shares := limits(details):
        resources["limits"] = resources.get("limits", {}) | shares
        requests |= shares
    if details.get("whole"):
        resources["limits"] = resources.get("limits", {}) | requests
    container: Object = {"name": "c", "image": "work", "resources": resources}
    if details.get("port"):
        container["ports"] = [{"containerPort": int(details["port"]), "hostPort": int(details["port"])}]
    spec: Object = {"containers": [container], "terminationGracePeriodSeconds": int(details.get("grace", 1))}
    if details.get("priority"):
        spec["priorityClassName"] = details["priority"]
    spec |= claimed(details)
    if details.get("claim"):
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": details["claim"]}}]
    return spec


def vcjob(name: str, details: Object) -> Object:
    """A Volcano Job of one task; its controller makes the PodGroup and the pods."""
    notes = {"pumice.dev/duration": f"{details['seconds']}s" if details.get("seconds") else "0"} | policy(details)
    metadata = {"labels": {JOB: name} | asking(details), "annotations": notes}
    template = {"metadata": metadata, "spec": {**_pod_spec(ASKED | details), "restartPolicy": "OnFailure"}}
    replicas = int(details["pods"])
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "minAvailable": int(details.get("min", replicas)),
            "schedulerName": "volcano",
            "queue": details.get("queue", "default"),
            "tasks": [{"name": "worker", "replicas": replicas, "template": template}],
        },
    }
