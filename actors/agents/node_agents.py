"""The node agents: what the kubelets of a real cluster do, all of them in one actor.

Owns: what runs on the nodes (`pumice.actors.agents.machine`) and its timers.
Accepts: `Poke`.
Sends: asks the api.
When full and how it stops: see `pumice.actors.runtime.reconciler`.

A pod that is bound starts, runs for its `pumice.dev/duration` and ends with its `pumice.dev/exit-code`; one that is
deleted takes its `pumice.dev/termination` to stop, its grace period at most, and is Failed or Succeeded before it goes.
After a restart a running pod goes on from the start time that the api has of it. A node with the annotation
`pumice.dev/devices` (`pumice.core.objects.node_devices`) has device plugins and a resource exporter as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actors.agents.added_containers import AddedContainersMachine
from pumice.actors.agents.addresses import ClusterAddresses
from pumice.actors.agents.cell_reports import CellReportsMachine
from pumice.actors.agents.device_plugin import DevicePluginMachine
from pumice.actors.agents.machine import NodeAgentsMachine
from pumice.actors.agents.node_reports import NodeReportsMachine
from pumice.actors.agents.other_agents import OtherAgents
from pumice.actors.agents.pod_runs import DEFAULT_DURATION_S
from pumice.actors.runtime.reconciler import Reconciler

if TYPE_CHECKING:
    from pumice.actors.runtime.context import Context
    from pumice.actors.system.ports import ApiPort, PokePort


class NodeAgents(Reconciler):
    """`start_delay_s`, `default_duration_s`: as the machine has them. `served`: clients see the nodes, and agents of
    others may join.
    """

    def __init__(
        self,
        name: str,
        mailbox: PokePort,
        context: Context,
        *,
        api: ApiPort,
        start_delay_s: float = 0.0,
        default_duration_s: float = DEFAULT_DURATION_S,
        served: bool = False,
    ) -> None:
        cells, addresses, others = CellReportsMachine(), ClusterAddresses(), OtherAgents()
        agents = NodeAgentsMachine(
            start_delay_s=start_delay_s,
            default_duration_s=default_duration_s,
            ended=cells.pod_ended,
            addresses=addresses if served else None,
            others=others if served else None,
        )
        seen = (NodeReportsMachine(addresses, others), AddedContainersMachine(others)) if served else ()
        machines = (*seen, agents, DevicePluginMachine(), cells)
        super().__init__(name, mailbox, context, api=api, machines=machines)
