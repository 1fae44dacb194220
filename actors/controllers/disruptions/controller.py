"""The disruption controller: how many pods each PodDisruptionBudget lets go.

Owns: what it has seen of budgets, pods and their controllers (`actors.controllers.disruptions.machine`).
Accepts: `Poke`.
Sends: asks the api.
When full and how it stops: see `actors.runtime.reconciler`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.controllers.disruptions.machine import DisruptionMachine
from actors.runtime.reconciler import Reconciler

if TYPE_CHECKING:
    from actors.runtime.context import Context
    from actors.system.ports import ApiPort, PokePort


class DisruptionController(Reconciler):
    """See the module."""

    def __init__(self, name: str, mailbox: PokePort, context: Context, *, api: ApiPort) -> None:
        super().__init__(name, mailbox, context, api=api, machines=(DisruptionMachine(),))
