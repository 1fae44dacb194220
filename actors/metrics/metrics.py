"""The metrics actor: Volcano's metric names in a Prometheus registry of our own.

Owns: the registry.
Accepts: `CycleMeasured`, `TasksBound`; `Expose`, which it answers with the text format.
Sends: nothing. It reads the `statistics()` of other actors' mailboxes, never their state, and what the newest session
left to be told of the queues.
When full: the session runner waits.
Stops: after what is queued. After a crash counters start from zero, as Prometheus expects of a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from prometheus_client import generate_latest

from actors.metrics.families import Families
from actors.runtime.actor import Actor
from core.messages.commands import Expose
from core.messages.events import CycleMeasured, MetricsEvent, TasksBound
from core.messages.replies import Exposition

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from actors.runtime.context import Context
    from actors.runtime.mailbox import MailboxStatistics
    from actors.system.ports import MetricsPort
    from core.messages.queue_tables import QueueTables


class Metrics(Actor[Expose | MetricsEvent, Exposition]):
    """`sources` gives the statistics of every mailbox at the moment of the call, `queues` the newest numbers of all
    queues.
    """

    def __init__(
        self,
        name: str,
        mailbox: MetricsPort,
        context: Context,
        *,
        sources: Callable[[], Sequence[MailboxStatistics]],
        queues: Callable[[], tuple[QueueTables, ...]],
    ) -> None:
        super().__init__(name, mailbox, context)
        self._families = Families()
        self._sources = sources
        self._queues = queues
        self._longest = context.longest

    async def handle(self, message: Expose | MetricsEvent) -> Exposition | None:
        """One measurement, or the whole exposition."""
        match message:
            case CycleMeasured():
                self._families.cycle(message)
            case TasksBound():
                self._families.bound(message)
            case Expose():
                self._families.mailboxes(self._sources())
                self._families.queues(self._queues())
                self._families.longest(self._longest.seconds, self._longest.request)
                return Exposition(generate_latest(self._families.registry))
            case _:
                assert_never(message)
        return None
