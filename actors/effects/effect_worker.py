# SPDX-License-Identifier: Apache-2.0
"""Shared code of the workers that carry decisions to the api: orders in small batches, repeated after a crash, and
their outcomes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, TypeVar

from pumice.actors.runtime.actor import Actor
from pumice.core.messages.commands import Append, Entry
from pumice.core.messages.message import Message
from pumice.core.messages.replies import Done

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Unpack

    from pumice.actors.runtime.actor import Context
    from pumice.actors.runtime.mailbox import Mailbox
    from pumice.actors.system.ports import ApiPort, CachePort, RecorderPort
    from pumice.core.messages.events import CacheEvent

# --- Outcomes and recent operations, shared by bind and evict workers


class Outcomes:
    """Sends outcomes. Each is encoded once: the same bytes go to the cache and to the journal."""

    def __init__(self, cache: CachePort, recorder: RecorderPort) -> None:
        self._cache = cache
        self._recorder = recorder

    async def report(self, outcomes: Sequence[CacheEvent]) -> None:
        """Tell both. Not awaited on disk: the truth is the api's, and that is there already."""
        if not outcomes:
            return
        frames = [self._cache.encode(outcome) for outcome in outcomes]
        entries = [Entry("outcome", frame, outcome.sequence) for outcome, frame in zip(outcomes, frames, strict=True)]
        # Both or none: with one of them missing, the order would be carried out and reported again.
        await self._cache.tell(*frames, through=True)
        await self._recorder.tell(Append(tuple(entries)), through=True)


class RecentOperations:
    """The operations of the last `limit` cycles. The successor of a crashed runner sends the orders of its last cycle
    again, before all others, so no older one comes twice.
    """

    def __init__(self, limit: int = 16) -> None:
        self._limit = limit
        self._uids: dict[str, set[str]] = {}

    def is_new(self, operation: str) -> bool:
        """Return whether "cycle/uid" was not seen before, and remember it."""
        cycle, _, uid = operation.partition("/")
        seen = self._uids.get(cycle)
        if seen is None:
            seen = self._uids[cycle] = set()
            if len(self._uids) > self._limit:
                del self._uids[next(iter(self._uids))]
        if uid in seen:
            return False
        seen.add(uid)
        return True


M = TypeVar("M", bound=Message)


class EffectPorts(TypedDict):
    """Ports of such a worker; `timeout_s`: how long it waits for an answer of the api."""

    api: ApiPort
    cache: CachePort
    recorder: RecorderPort
    timeout_s: float


class EffectWorker(Actor[M, Done]):
    """Carries out orders of one kind."""

    # An order is a batch of pods already: a larger batch would keep the first outcomes waiting for the last.
    cap = 8
    redeliver = True

    def __init__(self, name: str, mailbox: Mailbox[M, Done], context: Context, **ports: Unpack[EffectPorts]) -> None:
        super().__init__(name, mailbox, context)
        self._api = ports["api"]
        self._outcomes = Outcomes(ports["cache"], ports["recorder"])
        self._timeout_s = ports["timeout_s"]
        self._alarm = context.alarm()

    def _until(self) -> float:
        """Return the deadline of a request that is sent now. The api goes by the same alarms, which need not show the
        time of the event loop.
        """
        return self._alarm.now() + self._timeout_s
