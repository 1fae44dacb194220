# SPDX-License-Identifier: Apache-2.0
"""All plugins of Jobs by name, in the order in which they change a pod: hcclrank reads what other plugins wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from pumice.cluster.controllers.jobs.plugins.frameworks import (
    HcclrankPlugin,
    PytorchPlugin,
    RayPlugin,
    TensorflowPlugin,
)
from pumice.cluster.controllers.jobs.plugins.plugin import (
    JobPlugin,
    hosts_of,
    task_named,
    with_more,
    with_port,
    with_spec,
)
from pumice.cluster.controllers.jobs.plugins.ssh import SshPlugin
from pumice.cluster.controllers.jobs.plugins.svc import SvcPlugin
from pumice.cluster.kube.go_flags import Flag, parsed_flags
from pumice.core.objects.metadata import Object, section

# --- mpi
# Source: Volcano's `plugins/mpi`.

_FLAGS: Final[dict[str, Flag]] = {"master": "master", "worker": "worker", "port": 22}


class MpiPlugin:
    """The plugin mpi: MPI_HOST on the master, without a task of workers no addition to it."""

    def __init__(self, job: Object, arguments: Sequence[str]) -> None:
        self._flags = parsed_flags(arguments, _FLAGS)
        workers = task_named(job, str(self._flags["worker"]))
        self._hosts = ",".join(hosts_of(job, workers)) if workers is not None else None

    def pod(self, pod: Object, task: Object, index: int) -> Object:
        """Return the index-th pod of the task with the plugin's additions; the given pod does not change."""
        is_master = task["name"] == self._flags["master"]
        # mpi.go returns before the loop that opens ports, so that a master without workers lacks its port too.
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
        """Return the objects that are created for the Job, and deleted when its pods are."""
        return ()


# --- env
# Source: Volcano's `plugins/env`.

_NAMES: Final = ("VK_TASK_INDEX", "VC_TASK_INDEX")


class EnvPlugin:
    """The plugin env: VK_TASK_INDEX and VC_TASK_INDEX."""

    def __init__(self, job: Object, arguments: Sequence[str]) -> None:
        pass

    def pod(self, pod: Object, task: Object, index: int) -> Object:
        """Return the index-th pod of the task with the plugin's additions; the given pod does not change."""
        return with_more(pod, "env", [{"name": name, "value": str(index)} for name in _NAMES])

    def objects(self) -> Sequence[Object]:
        """Return the objects that are created for the Job, and deleted when its pods are."""
        return ()


PLUGINS: Final[dict[str, Callable[[Object, Sequence[str]], JobPlugin]]] = {
    "env": EnvPlugin,
    "svc": SvcPlugin,
    "ssh": SshPlugin,
    "tensorflow": TensorflowPlugin,
    "mpi": MpiPlugin,
    "pytorch": PytorchPlugin,
    "ray": RayPlugin,
    "hcclrank": HcclrankPlugin,
}
UNLISTED: Final = ("hcclrank",)
"""Plugins that a Job's status does not name, as in Volcano."""


def plugins_of(job: Object) -> dict[str, JobPlugin]:
    """Return plugins of a Job, by name; unknown names were refused at its creation."""
    wanted = section(job["spec"], "plugins")
    # In the order of PLUGINS: Volcano ranges over a Go map, so there hcclrank finds pytorch's RANK by chance only.
    return {name: make(job, wanted[name] or ()) for name, make in PLUGINS.items() if name in wanted}


def controlled(job: Object) -> dict[str, str]:
    """Return the entries that name these plugins' objects in a Job's status."""
    return {f"plugin-{name}": name for name in section(job["spec"], "plugins") if name not in UNLISTED}


def trouble_of(job: Object) -> str:
    """Return why a plugin cannot make the Job's pods; empty without a problem."""
    plugin = plugins_of(job).get("ray") if "ray" in section(job["spec"], "plugins") else None
    return plugin.trouble() if isinstance(plugin, RayPlugin) else ""
