# SPDX-License-Identifier: Apache-2.0
"""Roles of controllers and node agents: each watches the api and writes to it, and, except for the config watcher,
sends to no other actor; that of Jobs also informs the metrics.

Their machines stand in `pumice.cluster.kernel.roster`; what one of them owns, says its machine; what it accepts and
sends, and how it stops, `pumice.actors.runtime.reconciler`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from pumice.actors.reconcilers.config_watcher import ConfigWatcher
from pumice.actors.reconcilers.job_controller import JobController
from pumice.actors.runtime.clock import VirtualClock
from pumice.actors.runtime.reconciler import Reconciler
from pumice.actors.system import ports
from pumice.actors.system.settings import controlling, playing, running_nodes, serving
from pumice.actors.system.wiring import Role, always
from pumice.cluster.controllers.family import FamilyMachine
from pumice.cluster.controllers.unserved import LEFT, UNSERVED, UnservedMachine
from pumice.cluster.kernel import roster
from pumice.core.objects.parts import POD_OF_OTHERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.actors.system.settings import SystemSettings
    from pumice.actors.system.wiring import Wiring
    from pumice.cluster.kernel.roster import MachineGroup
    from pumice.cluster.machine import Machine

    Machines = Callable[[Wiring], Sequence[Machine]]

REST_S: Final = 0.05
"""A client that creates pods one by one waits for what is done about each: Events about many are written together."""


def _config_watcher(wiring: Wiring, name: str) -> ConfigWatcher:
    followed = wiring.settings.followed
    assert followed is not None, "there is a watcher where something is followed"
    return ConfigWatcher(*wiring.own(name), **wiring.ports(name), followed=followed, check=wiring.source.check)


def _controller(
    name: str,
    machines: Machines,
    wanted: Callable[[SystemSettings], bool] = always,
    *,
    crashes: bool = True,
    box: str = "controllers",
    waits_for: Callable[[SystemSettings], Sequence[str]] = lambda _: (),
    gathers: bool = False,
) -> Role:
    """Return a shell around machines; `waits_for`: see `Reconciler`. `gathers`: on the real clock it rests
    between looks.
    """

    def build(wiring: Wiring, name: str) -> Reconciler:
        # Read when the actor is built: the settings are those of this system, and roles are made once for all.
        first = waits_for(wiring.settings)
        # On virtual time a rest would move the clock, and nothing comes meanwhile.
        rest_s = REST_S if gathers and not isinstance(wiring.context.clock, VirtualClock) else 0.0
        given, own = wiring.ports(name), wiring.own(name)
        return Reconciler(*own, **given, machines=machines(wiring), waits_for=first, rest_s=rest_s)

    more: dict[str, Any] = {"crashes": (name,)} if crashes else {}
    return Role(
        name=name,
        port=ports.PokePort,
        sends={"api": "api-server"},
        build=build,
        wanted=wanted,
        box=box,
        hosts=True,
        **more,
    )


def _host_of(
    name: str,
    group: MachineGroup,
    wanted: Callable[[SystemSettings], bool],
    *,
    crashes: bool = True,
    gathers: bool = False,
    **more: str,
) -> Role:
    """Return an actor that hosts a group of the roster."""
    return _controller(
        name,
        lambda wiring: group.machines(wiring.surroundings),
        wanted,
        crashes=crashes,
        gathers=gathers,
        waits_for=lambda _: group.waits_for,
        **more,
    )


def _job_controller(wiring: Wiring, name: str) -> JobController:
    rule = roster.job_rule(wiring.surroundings)
    # One rule for both: `take_waits` returns what this very rule has noted in the machine's steps.
    machine = FamilyMachine(rule, wiring.surroundings.unpack)
    return JobController(*wiring.own(name), **wiring.ports(name), machines=[machine], take_waits=rule.take_waits)


NODE_AGENTS: Final = _host_of("node-agents", roster.KUBELETS, running_nodes, box="node agents")
JOB_CONTROLLER: Final = Role(
    name="job-controller",
    port=ports.PokePort,
    sends={"api": "api-server", "metrics": "metrics"},
    build=_job_controller,
    wanted=controlling,
    crashes=("job-controller",),
    box="controllers",
    hosts=True,
)
POD_GROUP_CONTROLLER: Final = _host_of("pod-group-controller", roster.POD_GROUPS, controlling)
QUEUE_CONTROLLER: Final = _host_of("queue-controller", roster.QUEUES, controlling)
VOLUME_CONTROLLER: Final = _host_of("volume-controller", roster.VOLUMES, playing)
DISRUPTION_CONTROLLER: Final = _host_of("disruption-controller", roster.BUDGETS, lambda settings: settings.budgets)


def _left(settings: SystemSettings) -> tuple[str, ...]:
    """Return kinds of controllers that neither run nor can come: those of another system would come over HTTP."""
    return () if controlling(settings) or serving(settings) else LEFT


# Storms have no Deployments, no gateway and no ConfigMap: their actors have nothing to lose in a crash there. A
# cluster without workloads is none of its business.
WORKLOAD_CONTROLLER: Final = _controller(
    "workload-controller",
    lambda wiring: [
        *roster.families(*roster.workload_rules()),
        *roster.families(*(roster.flow_rules(wiring.source.fixes) if wiring.settings.controllers else ())),
        UnservedMachine(scheduler=wiring.settings.scheduler, left=_left(wiring.settings)),
    ],
    playing,
    crashes=False,
    gathers=True,
    waits_for=lambda settings: (*roster.WORKLOADS.waits_for, *UNSERVED, *_left(settings), POD_OF_OTHERS),
)
CONFIG_WATCHER: Final = Role(
    name="config-watcher",
    port=ports.PokePort,
    sends={"api": "api-server", "runner": "session-runner"},
    build=_config_watcher,
    # A mirror takes configurations over itself, in their place between the cycles (`Observed.configure`).
    wanted=lambda settings: settings.followed is not None and settings.mirror is None,
    box="config watcher",
    hosts=True,
)
POD_EVENTS: Final = _host_of(
    "pod-events",
    roster.SERVED,
    lambda settings: serving(settings) and playing(settings),
    crashes=False,
    gathers=True,
    box="node agents",
)
