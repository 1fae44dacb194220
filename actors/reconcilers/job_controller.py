"""The shell of the Job controller: it also tells how long after their Jobs pods are created.

Owns, accepts, sends, when full, stops: as every `Reconciler`; and it tells the metrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.actors.runtime.reconciler import Reconciler
from pumice.core.messages.events import PodsCreated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.actors.runtime.actor import Context
    from pumice.actors.system.ports import ApiPort, MetricsPort, PokePort
    from pumice.cluster.controllers.jobs.machine import JobMachine
    from pumice.core.messages.commands import ApiRequest


class JobController(Reconciler):
    """Runs the Job machine, and tells the metrics how long after their Jobs pods are created."""

    def __init__(
        self, name: str, mailbox: PokePort, context: Context, *, api: ApiPort, metrics: MetricsPort, machine: JobMachine
    ) -> None:
        super().__init__(name, mailbox, context, api=api, machines=[machine])
        self._jobs = machine
        self._metrics = metrics

    async def _ask(self, requests: Sequence[ApiRequest]) -> None:
        await super()._ask(requests)
        if waits := self._jobs.take_waits():
            await self._metrics.tell(PodsCreated(waits))
