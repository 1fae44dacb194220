"""The status writer: what a cycle says about pods, PodGroups and queues, written to the api.

Owns: what it last said about each PodGroup.
Accepts: `WriteStatus`.
Sends: asks the api (read, then write guarded by the resource version; after a conflict, or when no answer comes, it
reads again and retries); tells the recorder what could not be written.
When full: the session runner waits.
Stops: after what is queued. After a crash the next instance writes what was in hand again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

from actors.actor import Actor
from actors.kube_events import event
from actors.statuses import Object, pod_group_patch, pod_patch, queue_patch
from core.messages.commands import ApiRequest, Append, Create, Entry, Get, Patch, UpdateStatus
from core.messages.decisions import PodCondition, PodGroupEvent, PodGroupStatus, QueueStatus
from core.messages.events import StatusRefused
from core.messages.orders import WriteStatus
from core.messages.replies import Accepted, Done, Refused
from storage import codec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from actors.envelope import Received
    from actors.ports import ApiPort, Context, RecorderPort, StatusPort

Wanted = PodCondition | PodGroupStatus | QueueStatus
ATTEMPTS = 5
FIRST_WAIT_S = 1.0
"""So long the first answer is waited for, and twice as long each time after: a slow one must not hold up the others.

To write again what may still arrive is harmless, since every write is guarded by the version that it read.
"""
SOURCE = "volcano"
CONFLICT, GONE = 409, 404
GIVEN_UP = Refused(CONFLICT, "Conflict", f"somebody else kept writing, or no answer came, {ATTEMPTS} times")


@dataclass(frozen=True, slots=True)
class Write:
    """One status to be written, and the cycle that wants it."""

    cycle: int
    kind: str
    namespace: str
    name: str
    wanted: Wanted


class StatusWriter(Actor[WriteStatus, Done]):
    """Reads and writes in batches."""

    cap = 8
    redeliver = True

    def __init__(
        self, name: str, mailbox: StatusPort, context: Context, *, api: ApiPort, recorder: RecorderPort
    ) -> None:
        super().__init__(name, mailbox, context)
        self._api = api
        self._recorder = recorder
        self._said: dict[tuple[str, str], str] = {}

    async def handle_batch(self, batch: Sequence[Received[WriteStatus, Done]]) -> None:
        """Of several statuses for one object only the newest is written."""
        newest = {(write.kind, write.namespace, write.name): write for item in batch for write in _writes(item.message)}
        left = list(newest.values())
        for attempt in range(ATTEMPTS):
            if not left:
                break
            left = await self._attempt(left, FIRST_WAIT_S * 2**attempt)
        await self._refused([(write, GIVEN_UP) for write in left])
        await self._announce([event for item in batch for event in item.message.events])
        for item in batch:
            item.reply(Done())

    async def _announce(self, events: Sequence[PodGroupEvent]) -> None:
        """Events about PodGroups that were not the last thing said of them."""
        news = {(event.namespace, event.name): event for event in events if self._is_news(event)}
        found = await self._api.ask_each([Get("PodGroup", *where) for where in news], FIRST_WAIT_S)
        requests: list[ApiRequest] = []
        for said, reply in zip(news.values(), found, strict=True):
            if isinstance(reply, Accepted):
                about = codec.unpack_shared(reply.blob)
                obj = event(about, said.reason, said.message, self.clock.now(), source=SOURCE, warning=True)
                requests.append(Create(codec.pack(obj)))
        await self._api.ask_each(requests, FIRST_WAIT_S)
        self._said.update({where: said.message for where, said in news.items()})

    def _is_news(self, event: PodGroupEvent) -> bool:
        return self._said.get((event.namespace, event.name)) != event.message

    async def _attempt(self, writes: Sequence[Write], wait_s: float) -> list[Write]:
        """Returns those to be tried again: they met a conflict, or nobody knows what became of them."""
        found = await self._api.ask_each([Get(write.kind, write.namespace, write.name) for write in writes], wait_s)
        again = [write for write, reply in zip(writes, found, strict=True) if reply is None]
        tried: list[Write] = []
        requests: list[ApiRequest] = []
        for write, reply in zip(writes, found, strict=True):
            if isinstance(reply, Accepted):
                new = self._requests(write, codec.unpack_shared(reply.blob))
                requests.extend(new)
                tried.extend([write] * len(new))
        refused: list[tuple[Write, Refused]] = []
        for write, reply in zip(tried, await self._api.ask_each(requests, wait_s), strict=True):
            if reply is None or (isinstance(reply, Refused) and reply.code == CONFLICT):
                again.append(write)
            elif isinstance(reply, Refused) and reply.code != GONE:
                refused.append((write, reply))
        await self._refused(refused)
        return list({id(write): write for write in again}.values())

    def _requests(self, write: Write, stored: Object) -> list[ApiRequest]:
        patch = _patch(write, stored, self.clock.now())
        requests: list[ApiRequest] = []
        where = (write.kind, write.namespace, write.name)
        if patch is not None:
            version = str(stored["metadata"].get("resourceVersion", ""))
            requests.append(UpdateStatus(*where, codec.pack(patch), version or None, "scheduler"))
        if isinstance(write.wanted, PodGroupStatus) and _lacks(stored, write.wanted.annotations):
            annotations = codec.pack({"metadata": {"annotations": write.wanted.annotations}})
            requests.append(Patch(*where, annotations, "scheduler"))
        return requests

    async def _refused(self, refused: Sequence[tuple[Write, Refused]]) -> None:
        events = [
            StatusRefused(write.cycle, write.kind, write.namespace, write.name, reply.code, reply.reason, reply.message)
            for write, reply in refused
        ]
        if events:
            await self._recorder.tell(Append(tuple(Entry("outcome", codec.encode(event)) for event in events)))


def _writes(message: WriteStatus) -> list[Write]:
    cycle = message.cycle
    return [
        *(Write(cycle, "Pod", each.namespace, each.name, each) for each in message.pod_conditions),
        *(Write(cycle, "PodGroup", each.namespace, each.name, each) for each in message.pod_groups),
        *(Write(cycle, "Queue", "", each.name, each) for each in message.queues),
    ]


def _patch(write: Write, stored: Object, now: float) -> Object | None:
    match write.wanted:
        case PodCondition():
            return pod_patch(stored, write.wanted, now)
        case PodGroupStatus():
            return pod_group_patch(stored, write.wanted, now, write.cycle)
        case QueueStatus():
            return queue_patch(stored, write.wanted)
        case _:
            assert_never(write.wanted)


def _lacks(stored: Object, annotations: dict[str, str]) -> bool:
    present: dict[str, Any] = stored["metadata"].get("annotations") or {}
    return any(present.get(key) != value for key, value in annotations.items())
