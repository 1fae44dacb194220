"""Job plugin mpi: the master knows its workers, and all have a port for ssh (source: Volcano's `plugins/mpi`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.cluster.controllers.jobs.plugins.plugin import hosts_of, task_named, with_more, with_port, with_spec
from pumice.cluster.kube.go_flags import Flag, parsed_flags
from pumice.core.objects.metadata import Object

_FLAGS: Final[dict[str, Flag]] = {"master": "master", "worker": "worker", "port": 22}


class MpiPlugin:
    """MPI_HOST on the master; nothing on it where there is no task of workers."""

    def __init__(self, job: Object, arguments: Sequence[str]) -> None:
        self._flags = parsed_flags(arguments, _FLAGS)
        workers = task_named(job, str(self._flags["worker"]))
        self._hosts = ",".join(hosts_of(job, workers)) if workers is not None else None

    def pod(self, pod: Object, task: Object, index: int) -> Object:
        """The index-th pod of the task, with what the plugin adds; the pod given is not changed."""
        del index
        is_master = task["name"] == self._flags["master"]
        if is_master and self._hosts is None:
            return pod
        opened = {
            group: [with_port(each, "mpijob-port", int(self._flags["port"])) for each in pod["spec"][group]]
            for group in ("initContainers", "containers")
            if pod["spec"].get(group)
        }
        pod = with_spec(pod, **opened)
        return with_more(pod, "env", [{"name": "MPI_HOST", "value": self._hosts}]) if is_master else pod

    def objects(self) -> Sequence[Object]:
        """What is created for the Job, and deleted when its pods are."""
        return ()
