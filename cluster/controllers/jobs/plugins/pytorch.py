"""Job plugin pytorch: the master, how many there are, the rank of each (source: Volcano's `plugins/pytorch`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.cluster.controllers.jobs.plugins.plugin import (
    host_of,
    task_named,
    tasks_of,
    with_more,
    with_port,
    with_spec,
)
from pumice.cluster.kube.go_flags import Flag, parsed_flags
from pumice.core.objects.metadata import Object

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
    """MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK; an open port; on request, workers that wait for their master."""

    def __init__(self, job: Object, arguments: Sequence[str]) -> None:
        self._flags = parsed_flags(arguments, _FLAGS)
        self._port = int(self._flags["port"])
        self._roles = (self._flags["master"], self._flags["worker"])
        self._world = sum(int(task.get("replicas") or 0) for task in tasks_of(job) if task["name"] in self._roles)
        master = task_named(job, str(self._flags["master"]))
        self._master = host_of(job, master, 0) if master is not None else ""

    def pod(self, pod: Object, task: Object, index: int) -> Object:
        """The index-th pod of the task, with what the plugin adds; the pod given is not changed."""
        if not self._master:
            return pod
        is_worker = task["name"] == self._flags["worker"]
        told = {"MASTER_ADDR": self._master, "MASTER_PORT": str(self._port), "WORLD_SIZE": str(self._world)}
        if task["name"] in self._roles:
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
        return with_spec(pod, initContainers=[*first, waiter])

    def _script(self) -> str:
        tries = -(-int(self._flags["wait-master-timeout"]) // _RETRY_S)
        return (
            f"for try in $(seq {tries}); do nc -z {self._master} {self._port} 2>/dev/null && exit 0; "
            f"echo 'the master does not answer yet'; sleep {_RETRY_S}; done; echo 'the master has not come'; exit 1"
        )

    def objects(self) -> Sequence[Object]:
        """What is created for the Job, and deleted when its pods are."""
        return ()
