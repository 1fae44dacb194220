# SPDX-License-Identifier: Apache-2.0
"""An evict worker: carries evictions to the api and brings every outcome back. There are several.

Owns: the operation ids ("cycle/uid") it has lately carried out.
Accepts: `EvictOrder`.
Sends: asks the api (`EvictPod`); tells the cache and the recorder the outcomes.
When full: the session runner waits. At most one batch is in flight at the api for each worker.
Stops: after the orders that are queued; after a crash as a bind worker.

The conditions are Volcano's (`cache.go`, defaultEvictor): Ready=False with reason Evict, and DisruptionTarget=True with
reason PreemptionByScheduler whatever the action was.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from pumice.actors.effects.effect_worker import EffectWorker, RecentOperations
from pumice.cluster.kernel.effects import eviction, operation
from pumice.core.messages.commands import EvictOrder, EvictPod
from pumice.core.messages.events import Evicted, EvictRefused, EvictTimedOut
from pumice.core.messages.replies import Accepted, ApiReply, Done, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Unpack

    from pumice.actors.effects.effect_worker import EffectPorts
    from pumice.actors.runtime.actor import Context
    from pumice.actors.runtime.envelope import Received
    from pumice.actors.system.ports import EvictPort


class EvictWorker(EffectWorker[EvictOrder]):
    """Evicts pods."""

    def __init__(self, name: str, mailbox: EvictPort, context: Context, **ports: Unpack[EffectPorts]) -> None:
        super().__init__(name, mailbox, context, **ports)
        self._recent = RecentOperations()

    async def handle_batch(self, batch: Sequence[Received[EvictOrder, Done]]) -> None:
        """Send all waiting orders to the api together."""
        until = self._until()
        pods = chain.from_iterable(_pods(item.message, until) for item in batch)
        # Seen before: a runner that crashed has sent its last cycle's orders again (`RecentOperations`).
        requests = [pod for pod in pods if self._recent.is_new(pod.cause)]
        replies = await self._api.ask_many(requests, within_s=self._timeout_s)
        await self._outcomes.report([_outcome(pod, reply) for pod, reply in zip(requests, replies, strict=True)])
        for item in batch:
            item.reply(Done())


def _pods(order: EvictOrder, until: float) -> Iterator[EvictPod]:
    for sequence, evict in enumerate(order.evicts, order.first_sequence):
        yield eviction(evict, operation(order.cycle, evict), sequence, until)


def _outcome(pod: EvictPod, reply: ApiReply | None) -> Evicted | EvictRefused | EvictTimedOut:
    whose = (pod.cause, pod.sequence, pod.namespace, pod.name, pod.uid)
    if isinstance(reply, Accepted):
        return Evicted(*whose, reply.revision)
    if isinstance(reply, Refused):
        return EvictRefused(*whose, reply.code, reply.reason, reply.message)
    return EvictTimedOut(*whose, "no answer" if reply is None else f"not an answer: {type(reply).__name__}")
