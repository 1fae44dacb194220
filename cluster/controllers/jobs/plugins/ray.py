"""Job plugin ray: a head with its Service, and workers that join it (source: Volcano's `plugins/ray`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.cluster.controllers import job_keys as keys
from pumice.cluster.controllers.jobs.plugins.plugin import host_of, owned, task_named, with_port, with_spec
from pumice.cluster.kube.go_flags import Flag, parsed_flags
from pumice.core.objects.metadata import Object

_FLAGS: Final[dict[str, Flag]] = {
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
    """The commands of the containers that are named for it are its own."""

    def __init__(self, job: Object, arguments: Sequence[str]) -> None:
        self._job = job
        self._flags = parsed_flags(arguments, _FLAGS)
        self._ports = {name: int(self._flags[flag]) for name, flag in _PORTS.items()}
        head = task_named(job, str(self._flags["head"]))
        self._head = host_of(job, head, 0) if head is not None else ""

    def trouble(self) -> str:
        """Why no pod can be made; empty: it can."""
        return "" if self._head else f"job {self._job['metadata']['name']} doesn't have head task {self._flags['head']}"

    def pod(self, pod: Object, task: Object, index: int) -> Object:
        """The index-th pod of the task, with what the plugin adds; the pod given is not changed."""
        del index
        containers = [self._container(each, task["name"]) for each in pod["spec"].get("containers") or ()]
        return with_spec(pod, containers=containers)

    def _container(self, container: Object, task: str) -> Object:
        if task == self._flags["head"] and container.get("name") == self._flags["headContainer"]:
            for name, port in self._ports.items():
                container = with_port(container, name, port)
            gcs, dashboard, client = self._ports.values()
            start = f"--head --block --dashboard-host=0.0.0.0 --port={gcs} --dashboard-port={dashboard}"
            container = {**container, "command": ["sh", "-c", f"ray start {start} --ray-client-server-port={client}"]}
        if task == self._flags["worker"] and container.get("name") == self._flags["workerContainer"]:
            start = f"ray start --block --address={self._head}:{self._ports['gcs']}"
            container = {**container, "command": ["sh", "-c", start]}
        return container

    def objects(self) -> Sequence[Object]:
        """What is created for the Job, and deleted when its pods are."""
        meta = self._job["metadata"]
        selector = {
            keys.JOB_NAME: meta["name"],
            keys.JOB_NAMESPACE: meta["namespace"],
            keys.TASK_SPEC: self._flags["head"],
        }
        ports = [
            {"name": name, "port": port, "targetPort": name, "protocol": "TCP"} for name, port in self._ports.items()
        ]
        service = owned(self._job, "Service", f"{meta['name']}-head-svc")
        return [{**service, "spec": {"selector": selector, "ports": ports}}]
