"""Pod events: says in Event objects what becomes of pods, for those who look with kubectl.

Runs beside the gateway only; nothing in the system reads what it says.

Owns: what it has said of each pod (`actors.controllers.pod_events_machine`), and when events are to be forgotten.
Accepts: `Poke`.
Sends: asks the api.
When full and how it stops: see `actors.reconciler`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.controllers.pod_events_machine import PodEventsMachine
from actors.reconciler import Reconciler

if TYPE_CHECKING:
    from actors.ports import ApiPort, Context, PokePort


class PodEvents(Reconciler):
    """`scheduler`: the scheduler is one of this system, so what it does is said too."""

    def __init__(self, name: str, mailbox: PokePort, context: Context, *, api: ApiPort, scheduler: bool = True) -> None:
        super().__init__(name, mailbox, context, api=api, machines=(PodEventsMachine(scheduler=scheduler),))
