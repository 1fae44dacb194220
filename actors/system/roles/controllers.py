"""The controllers: each watches the api and writes to it, and but for the config watcher to nobody else; that of Jobs
tells the metrics how long it took.

What one of them owns, says its machine; what it accepts and sends, and how it stops, `actors.runtime.reconciler`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Final

from pumice.actors.controllers.batch.rule import JobRule
from pumice.actors.controllers.configuration.watcher import ConfigWatcher
from pumice.actors.controllers.crons.dialects import KUBERNETES, VOLCANO
from pumice.actors.controllers.crons.rule import CronRule
from pumice.actors.controllers.daemons.rule import DaemonSetRule
from pumice.actors.controllers.devices.machine import DeviceMachine
from pumice.actors.controllers.disruptions.machine import BUDGET, DisruptionMachine
from pumice.actors.controllers.endpoints.machine import EndpointsMachine
from pumice.actors.controllers.events.machine import PodEventsMachine
from pumice.actors.controllers.family import FamilyMachine
from pumice.actors.controllers.flows.rule import JobFlowRule, JobTemplateRule
from pumice.actors.controllers.groups.machine import PodGroupMachine
from pumice.actors.controllers.jobs.controller import JobController
from pumice.actors.controllers.jobs.machine import JobMachine
from pumice.actors.controllers.namespaces.machine import NamespaceMachine
from pumice.actors.controllers.nodes.machine import NodeTaintsMachine
from pumice.actors.controllers.queues.machine import QueueMachine
from pumice.actors.controllers.quotas.machine import QUOTA, QuotaMachine
from pumice.actors.controllers.replication.rule import REPLICA_SETS, REPLICATION_CONTROLLERS, ReplicationRule
from pumice.actors.controllers.rule import OwnerRule
from pumice.actors.controllers.stateful.rule import StatefulSetRule
from pumice.actors.controllers.unserved.kinds import LEFT, UNSERVED
from pumice.actors.controllers.unserved.machine import UnservedMachine
from pumice.actors.controllers.volumes.drivers import DriversMachine
from pumice.actors.controllers.volumes.machine import VolumeMachine
from pumice.actors.controllers.volumes.pod_claims import PodClaimsMachine
from pumice.actors.controllers.workloads.rule import DeploymentRule
from pumice.actors.runtime.reconciler import Reconciler
from pumice.actors.system import ports
from pumice.actors.system.settings import controlling, playing, serving
from pumice.actors.system.wiring import Role, always
from pumice.core.objects.parts import POD_OF_OTHERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.actors.runtime.reconciler import Machine
    from pumice.actors.system.settings import SystemSettings
    from pumice.actors.system.wiring import Wiring

    Machines = Callable[[Wiring], Sequence[Machine]]


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
) -> Role:
    """A shell around machines; `waits_for`: see `Reconciler`."""

    def build(wiring: Wiring, name: str) -> Reconciler:
        first = waits_for(wiring.settings)
        return Reconciler(*wiring.own(name), **wiring.ports(name), machines=machines(wiring), waits_for=first)

    more: dict[str, Any] = {"crashes": (name,)} if crashes else {}
    return Role(
        name=name, port=ports.PokePort, sends={"api": "api-server"}, build=build, wanted=wanted, box=box, **more
    )


def _job_controller(wiring: Wiring, name: str) -> JobController:
    machine = JobMachine(wiring.context.objects.unpack, aloud=serving(wiring.settings), fixes=wiring.source.fixes)
    return JobController(*wiring.own(name), **wiring.ports(name), machine=machine)


JOB_CONTROLLER: Final = Role(
    name="job-controller",
    port=ports.PokePort,
    sends={"api": "api-server", "metrics": "metrics"},
    build=_job_controller,
    wanted=controlling,
    crashes=("job-controller",),
    box="controllers",
)
POD_GROUP_CONTROLLER: Final = _controller("pod-group-controller", lambda _: [PodGroupMachine()], controlling)
QUEUE_CONTROLLER: Final = _controller(
    "queue-controller", lambda wiring: [QueueMachine(wiring.context.objects.unpack)], controlling
)
# Taints of nodes change seldom: an actor of their own would have a watch for nothing else.
VOLUME_CONTROLLER: Final = _controller(
    "volume-controller",
    lambda wiring: [
        *(PodClaimsMachine(), VolumeMachine(), DriversMachine(), DeviceMachine()),
        NodeTaintsMachine(agents=wiring.settings.agents),
    ],
    playing,
)
BUDGETS: Final = (BUDGET, QUOTA)
# Most clusters have no budget and no quota: to look at every change of every pod would be a twentieth of all that the
# system does.
DISRUPTION_CONTROLLER: Final = _controller(
    "disruption-controller",
    lambda _: budget_machines(),
    lambda settings: settings.budgets,
    waits_for=lambda _: BUDGETS,
)


def deployment_rules() -> list[OwnerRule]:
    """What looks after Deployments and their ReplicaSets."""
    return [DeploymentRule(), ReplicationRule(REPLICA_SETS)]


def workload_machines() -> list[Machine]:
    """What looks after Kubernetes' own kinds that make pods."""
    rules: list[OwnerRule] = [
        *deployment_rules(), JobRule(), CronRule(KUBERNETES), StatefulSetRule(), DaemonSetRule(),
        ReplicationRule(REPLICATION_CONTROLLERS),
    ]  # fmt: skip
    return [FamilyMachine(rule) for rule in rules]


def flow_machines(fixes: Callable[[], Collection[str]] = tuple) -> list[Machine]:
    """What makes Jobs of Volcano's CronJobs and JobFlows; `fixes`: the defects of Volcano that are mended now."""
    rules: list[OwnerRule] = [CronRule(VOLCANO), JobFlowRule(fixes), JobTemplateRule()]
    return [FamilyMachine(rule) for rule in rules]


def budget_machines() -> list[Machine]:
    """Return what keeps the statuses of budgets of disruptions and of quotas."""
    return [DisruptionMachine(), QuotaMachine()]


WORKLOADS: Final = (
    "CronJob.batch", "DaemonSet", "Deployment", "Job.batch", "ReplicaSet", "ReplicationController", "StatefulSet",
)  # fmt: skip
"""The kinds of which they make pods, or Jobs."""
FLOWS: Final = ("CronJob", "JobFlow", "JobTemplate")


def _left(settings: SystemSettings) -> tuple[str, ...]:
    """Kinds for controllers that neither run nor can come: somebody else's would come over HTTP."""
    return () if controlling(settings) or serving(settings) else LEFT


# Storms have no Deployments, no gateway and no ConfigMap: who works for these has nothing to lose in a crash there. A
# cluster without workloads is none of its business.
WORKLOAD_CONTROLLER: Final = _controller(
    "workload-controller",
    lambda wiring: [
        *workload_machines(),
        *(flow_machines(wiring.source.fixes) if wiring.settings.controllers else ()),
        UnservedMachine(scheduler=wiring.settings.scheduler, left=_left(wiring.settings)),
    ],
    playing,
    crashes=False,
    waits_for=lambda settings: (*WORKLOADS, *FLOWS, *UNSERVED, *_left(settings), POD_OF_OTHERS),
)
CONFIG_WATCHER: Final = Role(
    name="config-watcher",
    port=ports.PokePort,
    sends={"api": "api-server", "runner": "session-runner"},
    build=_config_watcher,
    wanted=lambda settings: settings.followed is not None and settings.mirror is None,
    box="config watcher",
)


POD_EVENTS: Final = _controller(
    "pod-events",
    lambda wiring: [
        PodEventsMachine(scheduler=wiring.settings.scheduler, kept_s=wiring.settings.event_ttl_s),
        NamespaceMachine(),
        EndpointsMachine(),
    ],
    lambda settings: serving(settings) and playing(settings),
    crashes=False,
    box="node agents",
)
