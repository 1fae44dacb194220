"""The gateway: Kubernetes' API over HTTP.

Owns: the connections, the rings of what changed lately, the listings that are read in pages.
Accepts: `Poke`.
Sends: asks the api, of whoever reads metrics the session runner (if there is one) and the metrics actor, and the
cache, for those who look on.
When full: clients wait; a watch that does not read falls behind and is told so. Bodies and watches are bounded.
Stops: takes no more requests, ends the watches, then what is still being answered, then the connections.

The listening socket is not its own: a crash closes the connections, and the next instance accepts again.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

import anyio

from pumice.actors.gateway.app import build_app
from pumice.actors.gateway.hub import Hub
from pumice.actors.gateway.server import serve
from pumice.actors.gateway.settings import GatewaySettings
from pumice.actors.gateway.site import Listings, Site
from pumice.actors.gateway.webhooks.controllers import passed
from pumice.actors.runtime.actor import Actor
from pumice.actors.runtime.context import Context
from pumice.actors.system.ports import ApiPort, CachePort, MetricsPort, PokePort, RunnerPort
from pumice.core.messages.commands import Poke
from pumice.core.messages.replies import Done


class Gateway(Actor[Poke, Done]):
    """`listings`: those that the api has opened, by handle. `runner`: where anybody runs cycles. `stormy`: somebody
    makes faults, which the api counts.
    """

    def __init__(
        self,
        name: str,
        mailbox: PokePort,
        context: Context,
        *,
        api: ApiPort,
        metrics: MetricsPort,
        runner: RunnerPort | None,
        cache: CachePort | None,
        listings: Listings,
        settings: GatewaySettings,
        stormy: bool,
    ) -> None:
        super().__init__(name, mailbox, context)
        limits = {"ring_events": settings.ring_events, "ring_bytes": settings.ring_bytes}
        hub = Hub(api, listings, context, **limits)
        self.site = Site(
            api=api,
            metrics=metrics,
            runner=runner,
            cache=cache,
            listings=listings,
            clock=context.clock,
            hub=hub,
            settings=settings,
            longest=context.longest,
            stormy=stormy,
        )
        context.door.keep(partial(passed, self.site))
        self._stop = anyio.Event()
        self._stopped = anyio.Event()

    async def handle(self, message: Poke) -> Done:
        """Nothing to look at again: it serves whoever comes."""
        del message
        return Done()

    def loops(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """The server, the hub that reads for the watches, who answers questions, the count of jobs that wait, and what
        pages are told.
        """
        return (self._pull, self._serve_http, self.site.desk.keep, self.site.waiting.keep, self.site.pages.keep)

    async def on_stop(self) -> None:
        """Close the streams first: a server that waits for a watch waits for ever."""
        await self.site.open.end(self.site.settings.grace_s)
        self._stop.set()
        await self._stopped.wait()

    async def _pull(self) -> None:
        await self.site.hub.run(self.name, lambda: [row.key for row in self.site.kinds.rows()], self.site.definition)

    async def _serve_http(self) -> None:
        """Shielded: hypercorn on asyncio does not bear to be cancelled. It is told to stop instead."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._stop_when_cancelled)
            try:
                with anyio.CancelScope(shield=True):
                    await serve(build_app(self.site), self.site.settings, self._stop)
            finally:
                self._stopped.set()
            tasks.cancel_scope.cancel()

    async def _stop_when_cancelled(self) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            self.site.open.cut()
            self._stop.set()
