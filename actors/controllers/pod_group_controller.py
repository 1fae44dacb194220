"""The PodGroup controller: PodGroups for plain pods and those of Deployments and ReplicaSets, which it keeps up too.

Owns: what it has seen (`actors.controllers.pod_group_machine`, `actors.controllers.workload_machine`).
Accepts: `Poke`.
Sends: asks the api.
When full and how it stops: see `actors.reconciler`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.controllers.pod_group_machine import PodGroupMachine
from actors.controllers.workload_machine import WorkloadMachine
from actors.reconciler import Reconciler

if TYPE_CHECKING:
    from actors.ports import ApiPort, Context, PokePort


class PodGroupController(Reconciler):
    """See the module."""

    def __init__(self, name: str, mailbox: PokePort, context: Context, *, api: ApiPort) -> None:
        super().__init__(name, mailbox, context, api=api, machines=(WorkloadMachine(), PodGroupMachine()))
