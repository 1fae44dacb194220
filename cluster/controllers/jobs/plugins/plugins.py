"""All plugins of Jobs by name, in the order in which they see a pod: hcclrank reads what others told it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from pumice.cluster.controllers.jobs.plugins.env import EnvPlugin
from pumice.cluster.controllers.jobs.plugins.hcclrank import HcclrankPlugin
from pumice.cluster.controllers.jobs.plugins.mpi import MpiPlugin
from pumice.cluster.controllers.jobs.plugins.plugin import JobPlugin
from pumice.cluster.controllers.jobs.plugins.pytorch import PytorchPlugin
from pumice.cluster.controllers.jobs.plugins.ray import RayPlugin
from pumice.cluster.controllers.jobs.plugins.ssh import SshPlugin
from pumice.cluster.controllers.jobs.plugins.svc import SvcPlugin
from pumice.cluster.controllers.jobs.plugins.tensorflow import TensorflowPlugin
from pumice.core.objects.metadata import Object, section

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
    """Of a Job, by name; names that nobody knows were refused when it came."""
    wanted = section(job["spec"], "plugins")
    return {name: make(job, wanted[name] or ()) for name, make in PLUGINS.items() if name in wanted}


def controlled(job: Object) -> dict[str, str]:
    """What a Job's status names."""
    return {f"plugin-{name}": name for name in section(job["spec"], "plugins") if name not in UNLISTED}


def trouble_of(job: Object) -> str:
    """Why a plugin cannot make the Job's pods; empty: nothing is wrong."""
    plugin = plugins_of(job).get("ray") if "ray" in section(job["spec"], "plugins") else None
    return plugin.trouble() if isinstance(plugin, RayPlugin) else ""
