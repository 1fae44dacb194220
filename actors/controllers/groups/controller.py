"""The PodGroup controller: PodGroups for pods that nobody has given one.

Owns: what it has seen of them, their owners and queues (`actors.controllers.groups.machine`).
Accepts: `Poke`.
Sends: asks the api.
When full and how it stops: see `actors.runtime.reconciler`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.controllers.groups.machine import PodGroupMachine
from actors.runtime.reconciler import Reconciler

if TYPE_CHECKING:
    from actors.runtime.context import Context
    from actors.system.ports import ApiPort, PokePort


class PodGroupController(Reconciler):
    """See the module."""

    def __init__(self, name: str, mailbox: PokePort, context: Context, *, api: ApiPort) -> None:
        super().__init__(name, mailbox, context, api=api, machines=(PodGroupMachine(),))
