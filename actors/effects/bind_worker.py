# SPDX-License-Identifier: Apache-2.0
"""A bind worker: carries binds to the api and brings every outcome back. There are several.

Owns: the operation ids ("cycle/uid") it has lately carried out.
Accepts: `BindOrder`.
Sends: asks the api (`BindPod`); tells the status writer which pods could not be bound and why, the cache and the
recorder the outcomes, the metrics how long they took.
When full: the session runner waits. At most one batch is in flight at the api for each worker.
Stops: after the orders that are queued. After a crash the next instance carries out the orders in hand again; what was
bound by then the api refuses, and reading the pod tells. What the api refuses for another reason is reported when the
order of the one before can no longer be under way: else the pod might be bound twice, to two nodes.

A bind is done once: an operation id seen before is not sent again. No answer in time is an outcome too (BindTimedOut):
then the pod may be bound, and only reading it again tells. It will not be bound later, over a new decision: the api
does not carry out a request after its deadline.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import anyio

from pumice.actors.effects.effect_worker import EffectWorker, RecentOperations
from pumice.cluster.kernel.effects import binding, operation
from pumice.cluster.kube.events import FAILED, not_bound
from pumice.core.messages.commands import BindOrder, BindPod, WriteStatus
from pumice.core.messages.decisions import PodCondition
from pumice.core.messages.events import BindRefused, BindTimedOut, Bound, TasksBound
from pumice.core.messages.replies import Accepted, ApiReply, Done, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Unpack

    from pumice.actors.effects.effect_worker import EffectPorts
    from pumice.actors.runtime.actor import Context
    from pumice.actors.runtime.envelope import Received
    from pumice.actors.system.ports import BindPort, MetricsPort, StatusPort


FINAL = (404, 409)
"""The pod is gone, or on a node: no bind of it comes true any more."""


class BindWorker(EffectWorker[BindOrder]):
    """Binds pods that need no write before their bind: each decision once, and each to an outcome."""

    def __init__(
        self,
        name: str,
        mailbox: BindPort,
        context: Context,
        *,
        status: StatusPort,
        metrics: MetricsPort,
        **ports: Unpack[EffectPorts],
    ) -> None:
        super().__init__(name, mailbox, context, **ports)
        self._status = status
        self._metrics = metrics
        self.waits_for = (self._api,)
        self._recent = RecentOperations()

    def delivers_inline(self, message: BindOrder) -> bool:
        """Return True for every message: a crash here is not the api's, which answers inline."""
        return True

    async def handle_batch(self, batch: Sequence[Received[BindOrder, Done]]) -> None:
        """Send all waiting orders to the api together."""
        orders = [item.message for item in batch]
        until = self._until()
        pods = chain.from_iterable(_pods(order, until) for order in orders)
        requests = [pod for pod in pods if self._recent.is_new(pod.cause)]
        replies = await self._api.ask_many(requests, within_s=self._timeout_s)
        if any(item.attempts for item in batch) and any(map(_may_yet_come_true, replies)):
            # By then the deadline of the crashed instance's requests has passed, and the api refuses them.
            await anyio.sleep(self._timeout_s)
        outcomes = [_outcome(pod, reply) for pod, reply in zip(requests, replies, strict=True)]
        # before the cache sees it and the pod may be bound anew: a late condition would be laid over a bound pod
        await self._status.tell(*_said(outcomes))
        await self._outcomes.report(outcomes)
        for item in batch:
            item.reply(Done())  # reported: a crash from here on must not have them carried out again
        now = self.clock.now()
        since_decided = tuple(now - order.decided_at for order in orders for _ in order.binds)
        since_created = tuple(now - created for order in orders for created in order.created)
        await self._metrics.tell(TasksBound(since_decided, since_created))


def _may_yet_come_true(reply: ApiReply | None) -> bool:
    """Return whether a refused bind may still come true: the same bind, sent by the crashed instance, may be under
    way.
    """
    return isinstance(reply, Refused) and reply.code not in FINAL


def _pods(order: BindOrder, until: float) -> Iterator[BindPod]:
    for sequence, bind in enumerate(order.binds, order.first_sequence):
        yield binding(bind, operation(order.cycle, bind), sequence, until)


def _outcome(pod: BindPod, reply: ApiReply | None) -> Bound | BindRefused | BindTimedOut:
    whose = (pod.cause, pod.sequence, pod.namespace, pod.name, pod.uid, pod.node)
    if isinstance(reply, Accepted):
        return Bound(*whose, reply.revision)
    if isinstance(reply, Refused):
        return BindRefused(*whose, reply.code, reply.reason, reply.message)
    return BindTimedOut(*whose, "no answer" if reply is None else f"not an answer to a bind: {type(reply).__name__}")


def _said(outcomes: Sequence[Bound | BindRefused | BindTimedOut]) -> list[WriteStatus]:
    """Return the conditions for pods, by the cycle that decided (`Cache.Bind` in Volcano's cache.go:
    taskUnschedulable). A request without an answer gets none: the pod may be bound.
    """
    found: dict[int, list[PodCondition]] = {}
    for each in outcomes:
        if isinstance(each, BindRefused):
            condition = PodCondition(each.namespace, each.name, each.uid, FAILED, not_bound(each.node, each.message))
            found.setdefault(int(each.cause.partition("/")[0]), []).append(condition)
    return [WriteStatus(cycle, tuple(conditions)) for cycle, conditions in found.items()]
