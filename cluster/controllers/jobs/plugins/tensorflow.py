"""Job plugin tensorflow: TF_CONFIG says who is who (source: Volcano's `plugins/tensorflow`)."""

from __future__ import annotations

from collections.abc import Sequence
from json import dumps
from typing import Final

from pumice.cluster.controllers.jobs.plugins.plugin import host_of, tasks_of, with_more
from pumice.cluster.kube.go_flags import Flag, parsed_flags
from pumice.core.objects.metadata import Object

ROLES: Final = ("ps", "worker", "chief", "evaluator")
_FLAGS: Final[dict[str, Flag]] = {**{role: role for role in ROLES}, "port": 2222}


class TensorflowPlugin:
    """A Job of one pod needs none."""

    def __init__(self, job: Object, arguments: Sequence[str]) -> None:
        flags = parsed_flags(arguments, _FLAGS)
        tasks = tasks_of(job)
        self._alone = len(tasks) == 1 and tasks[0].get("replicas") == 1
        # of a name that stands for two roles the first one counts
        self._roles = {flags[role]: role for role in reversed(ROLES)}
        hosts = {
            self._roles[task["name"]]: [
                f"{host_of(job, task, index)}:{flags['port']}" for index in range(int(task.get("replicas") or 0))
            ]
            for task in tasks
            if task["name"] in self._roles
        }
        self._cluster = {role: hosts[role] for role in ROLES if hosts.get(role)}

    def pod(self, pod: Object, task: Object, index: int) -> Object:
        """The index-th pod of the task, with what the plugin adds; the pod given is not changed."""
        if self._alone:
            return pod
        role = self._roles.get(task["name"], task["name"])
        config = {"cluster": self._cluster, "task": {"type": role, "index": index}}
        return with_more(
            pod, "env", [{"name": "TF_CONFIG", "value": dumps(config, separators=(",", ":"))}], first=False
        )

    def objects(self) -> Sequence[Object]:
        """What is created for the Job, and deleted when its pods are."""
        return ()
