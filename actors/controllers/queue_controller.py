"""The Queue controller: whether queues are open, and how many PodGroups they hold.

Owns: what it has seen of queues and PodGroups (`actors.controllers.queue_machine`).
Accepts: `Poke`.
Sends: asks the api.
When full and how it stops: see `actors.reconciler`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.controllers.queue_machine import QueueMachine
from actors.reconciler import Reconciler

if TYPE_CHECKING:
    from actors.ports import ApiPort, Context, PokePort


class QueueController(Reconciler):
    """See the module."""

    def __init__(self, name: str, mailbox: PokePort, context: Context, *, api: ApiPort) -> None:
        super().__init__(name, mailbox, context, api=api, machines=(QueueMachine(),))
