"""The controllers: each watches the api and writes to it, and but for the config watcher to nobody else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from actors.controllers.configuration.watcher import ConfigWatcher
from actors.controllers.disruptions.controller import DisruptionController
from actors.controllers.events.controller import PodEvents
from actors.controllers.groups.controller import PodGroupController
from actors.controllers.jobs.controller import JobController
from actors.controllers.queues.controller import QueueController
from actors.controllers.volumes.controller import VolumeController
from actors.controllers.workloads.controller import WorkloadController
from actors.system import ports
from actors.system.settings import controlling, serving
from actors.system.wiring import Role, always, plainly

if TYPE_CHECKING:
    from actors.system.settings import SystemSettings
    from actors.system.wiring import Build, Wiring


def _config_watcher(wiring: Wiring, name: str) -> ConfigWatcher:
    return ConfigWatcher(*wiring.own(name), **wiring.ports(name), check=wiring.source.check)


def _pod_events(wiring: Wiring, name: str) -> PodEvents:
    return PodEvents(*wiring.own(name), **wiring.ports(name), scheduler=wiring.settings.scheduler)


def _workload_controller(wiring: Wiring, name: str) -> WorkloadController:
    return WorkloadController(*wiring.own(name), **wiring.ports(name), scheduler=wiring.settings.scheduler)


def _controller(
    name: str,
    build: Build,
    wanted: Callable[[SystemSettings], bool] = always,
    *,
    crashes: bool = True,
    box: str = "controllers",
) -> Role:
    more: dict[str, Any] = {"crashes": (name,)} if crashes else {}
    return Role(
        name=name, port=ports.PokePort, sends={"api": "api-server"}, build=build, wanted=wanted, box=box, **more
    )


JOB_CONTROLLER: Final = _controller("job-controller", plainly(JobController), controlling)
POD_GROUP_CONTROLLER: Final = _controller("pod-group-controller", plainly(PodGroupController), controlling)
QUEUE_CONTROLLER: Final = _controller("queue-controller", plainly(QueueController), controlling)
VOLUME_CONTROLLER: Final = _controller("volume-controller", plainly(VolumeController))
DISRUPTION_CONTROLLER: Final = _controller(
    "disruption-controller", plainly(DisruptionController), lambda settings: settings.budgets
)

# Storms have no Deployments, no gateway and no ConfigMap: who works for these has nothing to lose in a crash there.
WORKLOAD_CONTROLLER: Final = _controller("workload-controller", _workload_controller, controlling, crashes=False)
CONFIG_WATCHER: Final = Role(
    name="config-watcher",
    port=ports.PokePort,
    sends={"api": "api-server", "runner": "session-runner"},
    build=_config_watcher,
    wanted=lambda settings: settings.follows_cluster,
    box="config watcher",
)
POD_EVENTS: Final = _controller("pod-events", _pod_events, serving, crashes=False, box="node agents")
