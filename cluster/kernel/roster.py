# SPDX-License-Identifier: Apache-2.0
"""The machines of a cluster, stated once: those that share a reading of the store's log, and the kinds that they wait
for.

Every shell hosts these groups: an actor each (`pumice.actors.system.roles.controllers`), or all in one loop
(`pumice.cluster.kernel.machine_host`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from pumice.cluster.controllers.aggregation import AggregationMachine
from pumice.cluster.controllers.batch.rule import JobRule
from pumice.cluster.controllers.crons import KUBERNETES, VOLCANO, CronRule
from pumice.cluster.controllers.daemons import DaemonSetRule
from pumice.cluster.controllers.deployments import DeploymentRule
from pumice.cluster.controllers.devices import DeviceMachine
from pumice.cluster.controllers.disruptions import BUDGET, DisruptionMachine
from pumice.cluster.controllers.endpoints import EndpointsMachine
from pumice.cluster.controllers.events import PodEventsMachine
from pumice.cluster.controllers.family import FamilyMachine, OwnerRule
from pumice.cluster.controllers.flows import JobFlowRule, JobTemplateRule
from pumice.cluster.controllers.groups import PodGroupMachine
from pumice.cluster.controllers.hyper_nodes import HyperNodeMachine
from pumice.cluster.controllers.jobs.rule import VolcanoJobRule
from pumice.cluster.controllers.namespaces import NamespaceMachine
from pumice.cluster.controllers.nodes import NodeTaintsMachine
from pumice.cluster.controllers.queues import QueueMachine
from pumice.cluster.controllers.quotas import QUOTA, QuotaMachine
from pumice.cluster.controllers.replication import REPLICA_SETS, REPLICATION_CONTROLLERS, ReplicationRule
from pumice.cluster.controllers.stateful import StatefulSetRule
from pumice.cluster.controllers.volumes.drivers import DriversMachine
from pumice.cluster.controllers.volumes.machine import VolumeMachine
from pumice.cluster.controllers.volumes.pod_claims import PodClaimsMachine
from pumice.cluster.faults.decisions import FaultsInForce
from pumice.cluster.faults.nodes import StruckKubelets, StruckNodes, of_pods, of_reports
from pumice.cluster.kubelets.added_containers import AddedContainersMachine
from pumice.cluster.kubelets.cell_reports import CellReportsMachine
from pumice.cluster.kubelets.device_plugin import DevicePluginMachine
from pumice.cluster.kubelets.machine import NodeAgentsMachine
from pumice.cluster.kubelets.node_reports import ClusterAddresses, NodeReportsMachine, OtherAgents
from pumice.cluster.kubelets.pod_runs import DEFAULT_DURATION_S
from pumice.cluster.machine import Machine
from pumice.core.objects.metadata import Object
from pumice.core.objects.parts import kind_of
from pumice.storage import codec


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """Dependencies of machines besides the objects they watch.

    `unpack` decodes an object. `start_delay_s`, `default_duration_s`: of pods that do not say. `fixes` gives the names
    of Volcano's defects that are mended now. `agents`: whether nodes are simulated. `served`: clients see the cluster
    over HTTP, and agents of others may join it. `aloud`: Events about workloads are written, since a client may read
    them. `event_ttl_s`: how long Events are kept. `scheduler`: whether one runs here. `faults`: those that clients
    meet, some of which strike nodes.
    """

    unpack: Callable[[bytes], Object] = codec.unpack
    start_delay_s: float = 0.0
    default_duration_s: float = DEFAULT_DURATION_S
    fixes: Callable[[], Collection[str]] = tuple
    agents: bool = True
    served: bool = False
    aloud: bool = True
    event_ttl_s: float = 3600.0
    scheduler: bool = True
    faults: FaultsInForce | None = None


@dataclass(frozen=True, kw_only=True)
class MachineGroup:
    """Machines that share one reading of the log, in the order of their turns.

    `waits_for`: kinds; an object of one of them must exist before any other kind is looked at.
    """

    machines: Callable[[Surroundings], Sequence[Machine]]
    waits_for: tuple[str, ...] = ()


def kubelets(given: Surroundings) -> list[Machine]:
    """Return the agents of all nodes; where clients read the cluster, with the facts that only clients see."""
    cells, addresses, others = CellReportsMachine(), ClusterAddresses(), OtherAgents()
    agents = NodeAgentsMachine(
        start_delay_s=given.start_delay_s,
        default_duration_s=given.default_duration_s,
        ended=cells.pod_ended,
        addresses=addresses if given.served else None,
        others=others if given.served else None,
    )
    if not given.served:
        return [agents, DevicePluginMachine(), cells]
    reports: Machine = NodeReportsMachine(addresses, others)
    running: Machine = agents
    if given.faults is not None:
        struck = StruckNodes(given.faults)
        reports = StruckKubelets(reports, struck, of_reports, speaks=True)
        running = StruckKubelets(agents, struck, of_pods(agents.node_of))
    return [reports, AddedContainersMachine(others), running, DevicePluginMachine(), cells]


def job_rule(given: Surroundings) -> VolcanoJobRule:
    """Return what looks after Volcano's Jobs."""
    return VolcanoJobRule(aloud=given.served, fixes=given.fixes)


def deployment_rules() -> list[OwnerRule]:
    """Return what looks after Deployments and their ReplicaSets."""
    return [DeploymentRule(), ReplicationRule(REPLICA_SETS)]


def workload_rules() -> list[OwnerRule]:
    """Return what looks after Kubernetes' own kinds that make pods, or Jobs."""
    return [
        *deployment_rules(), JobRule(), CronRule(KUBERNETES), StatefulSetRule(), DaemonSetRule(),
        ReplicationRule(REPLICATION_CONTROLLERS),
    ]  # fmt: skip


def flow_rules(fixes: Callable[[], Collection[str]] = tuple) -> list[OwnerRule]:
    """Return what makes Jobs of Volcano's CronJobs and JobFlows."""
    return [CronRule(VOLCANO), JobFlowRule(fixes), JobTemplateRule()]


def families(*rules: OwnerRule, aloud: bool = True) -> list[Machine]:
    """Return a machine for each rule."""
    return [FamilyMachine(rule, aloud=aloud) for rule in rules]


_RULES: Final = (*workload_rules(), *flow_rules())
OWNERS: Final = tuple(rule.owner for rule in _RULES)
"""Kinds that a rule of the workload controller looks after."""
RULES: Final = {kind_of(rule.owner): rule for rule in (*_RULES, VolcanoJobRule())}
"""A rule of each kind that has one, to be asked what depends on nothing it has heard."""

KUBELETS: Final = MachineGroup(machines=kubelets)
JOBS: Final = MachineGroup(machines=lambda given: [FamilyMachine(job_rule(given), given.unpack)])
POD_GROUPS: Final = MachineGroup(machines=lambda _: [PodGroupMachine()])
QUEUES: Final = MachineGroup(machines=lambda given: [QueueMachine(given.unpack)])
# Taints of nodes change seldom: a group of their own would read the log for nothing else.
VOLUMES: Final = MachineGroup(
    machines=lambda given: [
        *(PodClaimsMachine(), VolumeMachine(), DriversMachine(), DeviceMachine()),
        NodeTaintsMachine(agents=given.agents),
    ]
)
# Most clusters have no budget and no quota: to look at every change of every pod would be a twentieth of all work.
BUDGETS: Final = MachineGroup(machines=lambda _: [DisruptionMachine(), QuotaMachine()], waits_for=(BUDGET, QUOTA))
WORKLOADS: Final = MachineGroup(
    machines=lambda given: families(*workload_rules(), *flow_rules(given.fixes), aloud=given.aloud),
    waits_for=OWNERS,
)
SERVED: Final = MachineGroup(
    machines=lambda given: [
        PodEventsMachine(scheduler=given.scheduler, kept_s=given.event_ttl_s),
        NamespaceMachine(),
        EndpointsMachine(),
        AggregationMachine(),
        HyperNodeMachine(),
    ]
)
"""What matters where clients look on, and to no decision."""

DECIDING: Final = (KUBELETS, JOBS, POD_GROUPS, QUEUES, VOLUMES, BUDGETS, WORKLOADS)
"""The groups on which decisions depend, in the order of their turns."""
