"""The metrics actor: Volcano's metric names in a Prometheus registry of our own.

Owns: the registry.
Accepts: `CycleMeasured`, `TasksBound`, `PodsCreated`, `QueuesMeasured`, `ShadowCompared`; `Expose`, which it
answers with the text format; `ReadRecent`.
Sends: asks the supervisor how full the mailboxes are.
When full: the session runner waits.
Stops: after what is queued. After a crash counters start from zero, as Prometheus expects of a restart.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, assert_never

from prometheus_client import generate_latest

from pumice.actors.metrics.families import Families
from pumice.actors.runtime.actor import Actor
from pumice.actors.system.ports import MetricsMessage, MetricsReply
from pumice.core.messages.boards import ReadRecent, RecentRead
from pumice.core.messages.commands import Expose
from pumice.core.messages.events import CycleMeasured, PodsCreated, TasksBound
from pumice.core.messages.queue_tables import QueuesMeasured
from pumice.core.messages.replies import Exposition
from pumice.core.messages.shadow import ShadowCompared
from pumice.core.messages.supervision import MeasureProcess

if TYPE_CHECKING:
    from pumice.actors.runtime.context import Context
    from pumice.actors.system.ports import MetricsPort, SupervisorPort


RECENT: Final = 240
"""So many of the newest cycles are remembered."""


class Metrics(Actor[MetricsMessage, MetricsReply]):
    """Keeps Volcano's metrics, and answers with their text."""

    def __init__(self, name: str, mailbox: MetricsPort, context: Context, *, supervisor: SupervisorPort) -> None:
        super().__init__(name, mailbox, context)
        self._families = Families()
        self._supervisor = supervisor
        self._recent: deque[CycleMeasured] = deque(maxlen=RECENT)
        self._queues = QueuesMeasured()

    def at_once(self, message: MetricsMessage) -> bool:
        """Any but those for which the supervisor is asked."""
        return not isinstance(message, Expose)

    async def handle(self, message: MetricsMessage) -> MetricsReply | None:
        """One measurement, or the whole exposition."""
        match message:
            case CycleMeasured():
                self._families.cycle(message)
                self._recent.append(message)
            case TasksBound():
                self._families.bound(message)
            case PodsCreated():
                self._families.pods_created(message.seconds)
            case ShadowCompared():
                self._families.shadow(message)
            case QueuesMeasured():
                self._queues = message
                self._families.queues(message.tables)
                self._families.cards(message.cards)
                self._families.shares(message.shares)
            case ReadRecent():
                cycles = tuple(each for each in self._recent if each.cycle > message.after)
                return RecentRead(cycles, self._queues)
            case Expose():
                measured = await self._supervisor.ask(MeasureProcess())
                self._families.mailboxes(measured.mailboxes)
                self._families.longest(measured.longest_s, measured.longest_request)
                return Exposition(generate_latest(self._families.registry))
            case _:
                assert_never(message)
        return None
