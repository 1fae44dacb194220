"""The volume controller: gives claims their volumes, makes the claims that pods bring along, registers the drivers of
volumes on nodes, and takes devices back from claims that no pod uses any more.

Owns: what it has seen of claims, volumes and storage classes (`actors.controllers.volumes.machine`), of nodes and
their drivers (`actors.controllers.volumes.drivers`), of pods and resource claims (`actors.controllers.devices.machine`,
`actors.controllers.volumes.pod_claims`).
Accepts: `Poke`.
Sends: asks the api.
When full and how it stops: see `actors.runtime.reconciler`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.controllers.devices.machine import DeviceMachine
from actors.controllers.volumes.drivers import DriversMachine
from actors.controllers.volumes.machine import VolumeMachine
from actors.controllers.volumes.pod_claims import PodClaimsMachine
from actors.runtime.reconciler import Reconciler

if TYPE_CHECKING:
    from actors.runtime.context import Context
    from actors.system.ports import ApiPort, PokePort


class VolumeController(Reconciler):
    """See the module."""

    def __init__(self, name: str, mailbox: PokePort, context: Context, *, api: ApiPort) -> None:
        machines = (PodClaimsMachine(), VolumeMachine(), DriversMachine(), DeviceMachine())
        super().__init__(name, mailbox, context, api=api, machines=machines)
