"""Pod events: says in Event objects what becomes of pods, for those who look with kubectl.

Runs beside the gateway only; nothing in the system reads what it says.

Owns: what it has said of each pod (`actors.controllers.events.machine`), and when events are to be forgotten.
Accepts: `Poke`.
Sends: asks the api.
When full and how it stops: see `actors.runtime.reconciler`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.controllers.events.machine import PodEventsMachine
from actors.runtime.reconciler import Reconciler

if TYPE_CHECKING:
    from actors.runtime.context import Context
    from actors.system.ports import ApiPort, PokePort


class PodEvents(Reconciler):
    """`scheduler`: the scheduler is one of this system, so what it does is said too."""

    def __init__(self, name: str, mailbox: PokePort, context: Context, *, api: ApiPort, scheduler: bool = True) -> None:
        super().__init__(name, mailbox, context, api=api, machines=(PodEventsMachine(scheduler=scheduler),))
