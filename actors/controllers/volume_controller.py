"""The volume controller: gives claims their volumes, makes the claims that pods bring along, and takes devices back
from claims that no pod uses any more.

Owns: what it has seen of claims, volumes and storage classes (`actors.controllers.volume_machine`), of pods and
resource claims (`actors.controllers.device_machine`, `actors.controllers.pod_claims_machine`).
Accepts: `Poke`.
Sends: asks the api.
When full and how it stops: see `actors.reconciler`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.controllers.device_machine import DeviceMachine
from actors.controllers.pod_claims_machine import PodClaimsMachine
from actors.controllers.volume_machine import VolumeMachine
from actors.reconciler import Reconciler

if TYPE_CHECKING:
    from actors.ports import ApiPort, Context, PokePort


class VolumeController(Reconciler):
    """See the module."""

    def __init__(self, name: str, mailbox: PokePort, context: Context, *, api: ApiPort) -> None:
        machines = (PodClaimsMachine(), VolumeMachine(), DeviceMachine())
        super().__init__(name, mailbox, context, api=api, machines=machines)
