"""The config watcher: hands the scheduler the configuration that stands in a ConfigMap of the cluster.

Owns: which text it has handed over last (`actors.controllers.configuration.machine`).
Accepts: `Poke`.
Sends: asks the api. The text goes to the configuration's source, where the session runner finds it.
When full and how it stops: see `actors.runtime.reconciler`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.controllers.configuration.machine import ConfigMachine
from actors.runtime.reconciler import Reconciler

if TYPE_CHECKING:
    from actors.controllers.configuration.machine import Offer
    from actors.runtime.context import Context
    from actors.system.ports import ApiPort, PokePort


class ConfigWatcher(Reconciler):
    """`offer` takes the text, and says what is wrong with it."""

    def __init__(self, name: str, mailbox: PokePort, context: Context, *, api: ApiPort, offer: Offer) -> None:
        super().__init__(name, mailbox, context, api=api, machines=(ConfigMachine(offer),))
