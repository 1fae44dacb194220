"""The config watcher: hands the scheduler the configuration that stands in a ConfigMap of the cluster.

Owns: which text it has handed over last (`pumice.actors.reconcilers.config_machine`).
Accepts: `Poke`.
Sends: asks the api; tells the session runner the text.
When full and how it stops: see `pumice.actors.runtime.reconciler`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actors.reconcilers.config_machine import ConfigMachine
from pumice.actors.runtime.reconciler import Reconciler
from pumice.core.messages.commands import OfferConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.actors.reconcilers.config_machine import Offer as Check
    from pumice.actors.runtime.actor import Context
    from pumice.actors.system.ports import ApiPort, PokePort, RunnerPort
    from pumice.config.settings import ConfigMapName
    from pumice.core.messages.commands import ApiRequest


class ConfigWatcher(Reconciler):
    """Watches the configuration. `check` returns the problem of a text from somewhere, "" without one. The runner gets
    a bad text all the same: it reports it in the journal.
    """

    def __init__(
        self,
        name: str,
        mailbox: PokePort,
        context: Context,
        *,
        api: ApiPort,
        runner: RunnerPort,
        followed: ConfigMapName,
        check: Check,
    ) -> None:
        self._runner = runner
        self._check = check
        self._offers: list[OfferConfig] = []
        super().__init__(name, mailbox, context, api=api, machines=(ConfigMachine(followed, self._offer),))

    def _offer(self, text: str, source: str) -> str:
        self._offers.append(OfferConfig(text, source))
        return self._check(text, source)

    async def _ask(self, requests: Sequence[ApiRequest]) -> None:
        """Inform the runner first, so that the status of the ConfigMap is already true."""
        offers, self._offers = self._offers, []
        await self._runner.tell(*offers)
        await super()._ask(requests)
