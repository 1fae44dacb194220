# SPDX-License-Identifier: Apache-2.0
"""The shell of the Job controller: it also reports how long after their Jobs pods are created.

Owns, accepts, sends, when full, stops: as every `Reconciler`; and it tells the metrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pumice.actors.runtime.reconciler import Reconciler
from pumice.core.messages.events import PodsCreated

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.actors.runtime.actor import Context
    from pumice.actors.system.ports import MetricsPort, PokePort
    from pumice.core.messages.commands import ApiRequest


class JobController(Reconciler):
    """Runs the machine of Jobs, and sends the metrics the result of `take_waits`: how long after their Jobs pods are
    created.
    """

    def __init__(
        self,
        name: str,
        mailbox: PokePort,
        context: Context,
        *,
        metrics: MetricsPort,
        take_waits: Callable[[], tuple[float, ...]],
        **more: Any,
    ) -> None:
        super().__init__(name, mailbox, context, **more)
        self._take_waits = take_waits
        self._metrics = metrics

    async def _ask(self, requests: Sequence[ApiRequest]) -> None:
        await super()._ask(requests)
        if waits := self._take_waits():
            await self._metrics.tell(PodsCreated(waits))
