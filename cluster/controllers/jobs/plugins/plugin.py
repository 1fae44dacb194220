# SPDX-License-Identifier: Apache-2.0
"""Interface of a Job's plugins, and code that several share (source: Volcano's `controllers/job/plugins/interface`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pumice.cluster.controllers.jobs.pods import pod_name
from pumice.cluster.controllers.pods_of import reference
from pumice.core.objects.metadata import Object, section


class JobPlugin(Protocol):
    """A plugin for one Job, with the arguments that the Job gives it. Pure."""

    def pod(self, pod: Object, task: Object, index: int) -> Object:
        """Return the index-th pod of the task with the plugin's additions; the given pod does not change."""
        ...

    def objects(self) -> Sequence[Object]:
        """Return the objects that are created for the Job, and deleted when its pods are."""
        ...


def tasks_of(job: Object) -> list[Object]:
    """Return the tasks of a Job's spec."""
    return job["spec"].get("tasks") or []


def task_named(job: Object, name: str) -> Object | None:
    """Return the task of that name, if it exists."""
    return next((task for task in tasks_of(job) if task["name"] == name), None)


def host_of(job: Object, task: Object, index: int) -> str:
    """Return the name under which other pods of the Job find the index-th pod of a task."""
    spec = section(section(task, "template"), "spec")
    name = job["metadata"]["name"]
    return f"{spec.get('hostname') or pod_name(name, task['name'], index)}.{spec.get('subdomain') or name}"


def hosts_of(job: Object, task: Object) -> list[str]:
    """Return the hosts of all pods of a task; those with a hostname of their own have only one."""
    count = int(task.get("replicas") or 0)
    if section(section(task, "template"), "spec").get("hostname"):
        # All its pods have that hostname, so one name stands for all (GenerateHosts in plugins/svc/svc.go).
        count = min(count, 1)
    return [host_of(job, task, index) for index in range(count)]


def owned(job: Object, kind: str, name: str, api_version: str = "v1") -> Object:
    """Return the beginning of an object that its Job owns."""
    meta = {"name": name, "namespace": job["metadata"]["namespace"], "ownerReferences": [reference(job)]}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta}


def with_spec(pod: Object, **changes: Any) -> Object:
    """Return the pod with these fields of its spec."""
    return {**pod, "spec": {**pod["spec"], **changes}}


def with_more(pod: Object, field: str, more: Sequence[Object], *, first: bool = True) -> Object:
    """Add `env`, `ports` or `volumeMounts` to every container, init containers included."""
    groups = ("containers", "initContainers") if first else ("containers",)
    changed = {
        group: [{**each, field: [*(each.get(field) or ()), *more]} for each in pod["spec"][group]]
        for group in groups
        if pod["spec"].get(group)
    }
    return with_spec(pod, **changed)


def int32(number: int) -> int:
    """Return what Go's conversion to 32 bits leaves of a number: plugins put their flags so into fields of ports."""
    return (number + 2**31) % 2**32 - 2**31


def with_port(container: Object, name: str, port: int) -> Object:
    """Return the container with that port open."""
    ports: list[Object] = container.get("ports") or []
    number = int32(port)
    if any(each.get("containerPort") == number for each in ports):
        return container
    return {**container, "ports": [*ports, {"name": name, "containerPort": number}]}
