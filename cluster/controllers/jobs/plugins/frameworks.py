# SPDX-License-Identifier: Apache-2.0
"""Job plugins that tell pods of a framework about each other: pytorch, tensorflow, ray and hcclrank (Ascend).

Source: Volcano's `plugins/pytorch`, `plugins/ray`, `plugins/hcclrank`, `plugins/tensorflow`.
"""

from __future__ import annotations

from collections.abc import Sequence
from json import dumps
from typing import Final

from pumice.cluster.controllers import job_keys as keys
from pumice.cluster.controllers.jobs.plugins.plugin import (
    host_of,
    int32,
    owned,
    task_named,
    tasks_of,
    with_more,
    with_port,
    with_spec,
)
from pumice.cluster.kube.go_flags import Flag, parsed_flags
from pumice.core.objects.metadata import Object, text_map

# --- ray

_RAY_FLAGS: Final[dict[str, Flag]] = {
    "head": "head",
    "headContainer": "head",
    "worker": "worker",
    "workerContainer": "worker",
    "port": 6379,
    "dashboardPort": 8265,
    "clientPort": 10001,
}
_PORTS: Final = {"gcs": "port", "dashboard": "dashboardPort", "client-server": "clientPort"}
"""Names of ports, and the arguments that say them."""


class RayPlugin:
    """The plugin ray. It sets the commands of the containers that are named for it."""

    def __init__(self, job: Object, arguments: Sequence[str]) -> None:
        self._job = job
        self._flags = parsed_flags(arguments, _RAY_FLAGS)
        self._ports = {name: int(self._flags[flag]) for name, flag in _PORTS.items()}
        head = task_named(job, str(self._flags["head"]))
        self._head = host_of(job, head, 0) if head is not None else ""

    def trouble(self) -> str:
        """Return why pods cannot be made; empty without a problem."""
        # ray.go's OnPodCreate gives an error then, so the Job has no pods; the other frameworks make pods without
        # roles.
        return "" if self._head else f"job {self._job['metadata']['name']} doesn't have head task {self._flags['head']}"

    def pod(self, pod: Object, task: Object, index: int) -> Object:
        """Return the index-th pod of the task with the plugin's additions; the given pod does not change."""
        containers = [self._container(each, task["name"]) for each in pod["spec"].get("containers") or ()]
        return with_spec(pod, containers=containers)

    def _container(self, container: Object, task: str) -> Object:
        if task == self._flags["head"] and container.get("name") == self._flags["headContainer"]:
            for name, port in self._ports.items():
                # A port counts as open by its number: under another name, the Service below does not find it
                # (openHeadContainerPort).
                container = with_port(container, name, port)
            gcs, dashboard, client = self._ports.values()
            start = f"--head --block --dashboard-host=0.0.0.0 --port={gcs} --dashboard-port={dashboard}"
            # The container's own args stay, and count for nothing: behind `sh -c TEXT` they are $0, $1 and so on.
            container = {**container, "command": ["sh", "-c", f"ray start {start} --ray-client-server-port={client}"]}
        if task == self._flags["worker"] and container.get("name") == self._flags["workerContainer"]:
            start = f"ray start --block --address={self._head}:{self._ports['gcs']}"
            container = {**container, "command": ["sh", "-c", start]}
        return container

    def objects(self) -> Sequence[Object]:
        """Return the objects that are created for the Job, and deleted when its pods are."""
        meta = self._job["metadata"]
        selector = {
            keys.JOB_NAME: meta["name"],
            keys.JOB_NAMESPACE: meta["namespace"],
            keys.TASK_SPEC: self._flags["head"],
        }
        ports = [
            {"name": name, "port": int32(port), "targetPort": name, "protocol": "TCP"}
            for name, port in self._ports.items()
        ]
        service = owned(self._job, "Service", f"{meta['name']}-head-svc")
        return [{**service, "spec": {"selector": selector, "ports": ports}}]


# --- hcclrank

RANK: Final = "hccl/rankIndex"
_HCCLRANK_FLAGS: Final[dict[str, Flag]] = {"master": "master", "worker": "worker"}


class HcclrankPlugin:
    """Rank of each pod: the variable RANK of its containers, otherwise masters first."""

    def __init__(self, job: Object, arguments: Sequence[str]) -> None:
        self._flags = parsed_flags(arguments, _HCCLRANK_FLAGS)
        master = task_named(job, str(self._flags["master"]))
        self._masters = int(master.get("replicas") or 0) if master is not None else 0

    def pod(self, pod: Object, task: Object, index: int) -> Object:
        """Return the index-th pod of the task with the plugin's additions; the given pod does not change."""
        annotations = text_map(pod["metadata"].get("annotations"))
        # RANK is of the plugin pytorch, one a pod, or of the template: then all pods of the task have one rank.
        rank = annotations.get(RANK) or _told(pod) or self._rank(task["name"], index)
        if not rank:
            return pod
        return {**pod, "metadata": {**pod["metadata"], "annotations": {**annotations, RANK: rank}}}

    def _rank(self, task: str, index: int) -> str:
        if task == self._flags["master"]:
            return str(index)
        # hcclrank.go counts the masters by replicas, not by pods that exist: ranks do not move when a master is
        # missing.
        return str(self._masters + index) if task == self._flags["worker"] else ""

    def objects(self) -> Sequence[Object]:
        """Return the objects that are created for the Job, and deleted when its pods are."""
        return ()


def _told(pod: Object) -> str:
    for container in pod["spec"].get("containers") or ():
        for each in container.get("env") or ():
            if each.get("name") == "RANK":
                return str(each.get("value") or "")
    return ""


# --- tensorflow

ROLES: Final = ("ps", "worker", "chief", "evaluator")
TYPES: Final = ("chief", "worker", "ps", "evaluator")
_TENSORFLOW_FLAGS: Final[dict[str, Flag]] = {**{role: role for role in ROLES}, "port": 2222}


class TensorflowPlugin:
    """The plugin tensorflow. A Job of one pod needs no addition."""

    def __init__(self, job: Object, arguments: Sequence[str]) -> None:
        flags = parsed_flags(arguments, _TENSORFLOW_FLAGS)
        tasks = tasks_of(job)
        self._alone = len(tasks) == 1 and tasks[0].get("replicas") == 1
        # Of a name that stands for two roles the first one counts: in the list of hosts by one order, for the pod's own
        # type by another (plugins/distributed-framework/tensorflow/tensorflow.go).
        self._roles = {flags[role]: role for role in reversed(ROLES)}
        self._types = {flags[role]: role for role in reversed(TYPES)}
        hosts = {
            self._roles[task["name"]]: [
                f"{host_of(job, task, index)}:{flags['port']}" for index in range(int(task.get("replicas") or 0))
            ]
            for task in tasks
            if task["name"] in self._roles
        }
        self._cluster = {role: hosts[role] for role in ROLES if hosts.get(role)}

    def pod(self, pod: Object, task: Object, index: int) -> Object:
        """Return the index-th pod of the task with the plugin's additions; the given pod does not change."""
        if self._alone:
            return pod
        # A task without a role is of a type of its own name (getTaskType).
        role = self._types.get(task["name"], task["name"])
        config = {"cluster": self._cluster, "task": {"type": role, "index": index}}
        return with_more(
            pod, "env", [{"name": "TF_CONFIG", "value": dumps(config, separators=(",", ":"))}], first=False
        )

    def objects(self) -> Sequence[Object]:
        """Return the objects that are created for the Job, and deleted when its pods are."""
        return ()


WAITER: Final = "wait-for-master"
_FLAGS: Final[dict[str, Flag]] = {
    "master": "master",
    "worker": "worker",
    "port": 23456,
    "wait-master-enabled": False,
    "wait-master-timeout": 300,
    "wait-master-image": "busybox:1.36.1",
}
_RETRY_S: Final = 2


class PytorchPlugin:
    """The plugin pytorch: MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK; an open port; on request, workers that wait
    for their master.
    """

    def __init__(self, job: Object, arguments: Sequence[str]) -> None:
        self._flags = parsed_flags(arguments, _FLAGS)
        self._port = int(self._flags["port"])
        self._roles = (self._flags["master"], self._flags["worker"])
        # getTotalReplicas: pods of tasks in neither role have no rank, so they are not of the world.
        self._world = sum(int(task.get("replicas") or 0) for task in tasks_of(job) if task["name"] in self._roles)
        master = task_named(job, str(self._flags["master"]))
        self._master = host_of(job, master, 0) if master is not None else ""

    def pod(self, pod: Object, task: Object, index: int) -> Object:
        """Return the index-th pod of the task with the plugin's additions; the given pod does not change."""
        # pytorch.go only writes to its log that there is no master: the pods are made as they are.
        if not self._master:
            return pod
        is_worker = task["name"] == self._flags["worker"]
        told = {"MASTER_ADDR": self._master, "MASTER_PORT": str(self._port), "WORLD_SIZE": str(self._world)}
        if task["name"] in self._roles:
            # Every master is of rank 0, and the first worker of rank 1: with two masters the ranks clash (pytorch.go).
            told["RANK"] = str(index + 1 if is_worker else 0)
        opened = [with_port(each, "pytorchjob-port", self._port) for each in pod["spec"].get("containers") or ()]
        pod = with_spec(pod, containers=opened)
        pod = with_more(pod, "env", [{"name": name, "value": value} for name, value in told.items()], first=False)
        return self._waiting(pod) if is_worker and self._flags["wait-master-enabled"] else pod

    def _waiting(self, pod: Object) -> Object:
        first: list[Object] = pod["spec"].get("initContainers") or []
        if any(each.get("name") == WAITER for each in first):
            return pod
        command = ["sh", "-c", self._script()]
        waiter = {"name": WAITER, "image": self._flags["wait-master-image"], "command": command}
        # Behind the template's own, as pytorch.go appends it: these run also while there is no master yet.
        return with_spec(pod, initContainers=[*first, waiter])

    def _script(self) -> str:
        tries = -(-int(self._flags["wait-master-timeout"]) // _RETRY_S)
        return (
            f"for try in $(seq {tries}); do nc -z {self._master} {self._port} 2>/dev/null && exit 0; "
            f"echo 'the master does not answer yet'; sleep {_RETRY_S}; done; echo 'the master has not come'; exit 1"
        )

    def objects(self) -> Sequence[Object]:
        """Return the objects that are created for the Job, and deleted when its pods are."""
        return ()
