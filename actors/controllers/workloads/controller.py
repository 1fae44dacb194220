"""The workload controller: pods for Deployments and ReplicaSets, and the statuses of these; a word about what nobody
here serves.

Owns: what it has seen of them and their pods (`actors.controllers.workloads.machine`), and of what it has spoken
(`actors.controllers.unserved.machine`).
Accepts: `Poke`.
Sends: asks the api.
When full and how it stops: see `actors.runtime.reconciler`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.controllers.unserved.machine import UnservedMachine
from actors.controllers.workloads.machine import WorkloadMachine
from actors.runtime.reconciler import Reconciler

if TYPE_CHECKING:
    from actors.runtime.context import Context
    from actors.system.ports import ApiPort, PokePort


class WorkloadController(Reconciler):
    """`scheduler`: Volcano's is one of this system, and there is no other."""

    def __init__(self, name: str, mailbox: PokePort, context: Context, *, api: ApiPort, scheduler: bool = True) -> None:
        machines = (WorkloadMachine(), UnservedMachine(scheduler=scheduler))
        super().__init__(name, mailbox, context, api=api, machines=machines)
