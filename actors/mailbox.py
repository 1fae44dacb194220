"""The bounded mailbox: MessagePack bytes over an anyio memory object stream.

Full means back-pressure: `tell` waits, `tell_nowait` raises `anyio.WouldBlock`; nothing is ever dropped. A wake-up
costs more than a message (6-20 us against 1 us), so senders batch (`tell_many`, `ask_many`) and receivers drain.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, get_args

import anyio
from anyio import lowlevel

from actors.envelope import Answer, Envelope, Received, failure
from actors.errors import ActorFailedError, ActorStoppedError, UnexpectedReplyError, UnknownMessageError
from core.messages.message import Message
from core.messages.replies import Failed
from storage import codec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from actors.ports import Activity

M = TypeVar("M", bound=Message)
R = TypeVar("R", bound=Message)
A = TypeVar("A")

BATCH = 256
"""Messages in one envelope at most: longer batches are cut, so that a mailbox stays bounded in messages too."""


@dataclass(frozen=True, slots=True)
class MailboxStatistics:
    """Counts of one mailbox; `high_water` is the largest number of envelopes that were ever found waiting."""

    name: str
    capacity: int
    queued: int
    sent: int
    received: int
    blocked_senders: int
    high_water: int
    closed: bool


class Mailbox(Generic[M, R]):
    """The way to one actor. `accepts` is the closed union M, `replies` the union R (None: it never answers)."""

    def __init__(
        self, name: str, accepts: Any, replies: Any = None, *, capacity: int = 256, activity: Activity | None = None
    ) -> None:
        if capacity < 1:
            raise ValueError(f"mailbox {name}: capacity must be at least 1, was {capacity}")
        self.name = name
        self.capacity = capacity
        self._decode = codec.decoder(accepts)
        self._accepted = frozenset(get_args(accepts) or (accepts,))
        self._decode_any_reply = codec.decoder(Failed if replies is None else replies | Failed)
        self._activity = activity
        self._send, self._receive = anyio.create_memory_object_stream[Envelope](capacity)
        self._unread: deque[Received[M, R]] = deque()
        self._sent = self._received = self._high_water = 0
        self._arrived: anyio.Event | None = None
        self.closed = False

    # --- senders

    async def tell(self, message: M) -> None:
        """Send; waits while the mailbox is full. Raises ActorStoppedError once it is closed."""
        await self.tell_encoded((self.encode(message),))

    def tell_nowait(self, message: M) -> None:
        """Send or raise anyio.WouldBlock when the mailbox is full."""
        self._put_nowait(Envelope((self.encode(message),)))

    async def tell_many(self, messages: Sequence[M]) -> None:
        """Send a batch: one wake-up for up to BATCH messages."""
        await self.tell_encoded([self.encode(message) for message in messages])

    async def tell_encoded(self, frames: Sequence[bytes]) -> None:
        """Send messages that are encoded already (`Mailbox.encode`)."""
        for part in _parts(frames):
            await self._put(Envelope(part))

    async def ask(self, message: M) -> R:
        """Send and wait for the reply. Raises ActorStoppedError or ActorFailedError instead of waiting for ever."""
        answer = Answer(1)
        await self._put(Envelope((self.encode(message),), answer))
        return self._decode_reply((await answer.wait())[0])

    async def ask_for(self, message: M, reply_type: type[A]) -> A:
        """`ask`, when only one type of reply is possible."""
        reply = await self.ask(message)
        if not isinstance(reply, reply_type):
            raise UnexpectedReplyError(f"{self.name} answered {reply!r}, expected {reply_type.__name__}")
        return reply

    async def ask_many(self, messages: Sequence[M]) -> list[R]:
        """Send a batch and wait for all replies, in the order of the messages."""
        replies: list[R] = []
        for part in _parts([self.encode(message) for message in messages]):
            answer = Answer(len(part))
            await self._put(Envelope(part, answer))
            replies.extend(self._decode_reply(frame) for frame in await answer.wait())
        return replies

    async def ask_each(self, messages: Sequence[M], timeout_s: float) -> list[R | None]:
        """`ask_many`, where None stands for a reply that did not come in time, or never will."""
        replies: list[R | None] = []
        for part in _parts([self.encode(message) for message in messages]):
            answer = Answer(len(part))
            with anyio.move_on_after(timeout_s):
                await self._put(Envelope(part, answer))
                await answer.wait()
            replies.extend(self._reply_or_none(frame) for frame in answer.frames)
        return replies

    def _reply_or_none(self, frame: bytes | None) -> R | None:
        try:
            return None if frame is None else self._decode_reply(frame)
        except ActorFailedError:
            return None

    def encode(self, message: M) -> bytes:
        """The bytes of a message; UnknownMessageError when this mailbox's actor does not know its type."""
        if type(message) not in self._accepted:
            raise UnknownMessageError(f"{self.name} does not know {type(message).__name__}")
        return codec.encode(message)

    # --- the receiver

    async def receive(self, cap: int = 1024) -> list[Received[M, R]]:
        """Wait for one envelope, then drain up to about `cap` messages. Raises anyio.EndOfStream once closed and empty.

        Nothing is taken out before the last await, so a cancelled receiver loses nothing.
        """
        await lowlevel.checkpoint_if_cancelled()
        while not (batch := self._drain(cap)):
            self._arrived = anyio.Event()
            await self._arrived.wait()
        return batch

    def _drain(self, cap: int) -> list[Received[M, R]]:
        batch: list[Received[M, R]] = list(self._unread)
        self._unread.clear()
        found = 0
        while len(batch) < cap:
            try:
                self._open(self._receive.receive_nowait(), batch)
            except anyio.WouldBlock:
                break
            except anyio.EndOfStream:
                if not batch:
                    raise
                break
            found += 1
        if found > self._high_water:
            self._high_water = found + self._receive.statistics().current_buffer_used
        return batch

    def put_back(self, messages: Sequence[Received[M, R]]) -> None:
        """What a crashed actor had taken out and not touched: the next one receives it first."""
        self._unread.extendleft(reversed(messages))

    def handled(self, count: int) -> None:
        """The receiver is through with so many messages."""
        if self._activity is not None:
            self._activity.end(count)

    # --- the end

    def close(self) -> None:
        """No more sends; what is queued can still be received."""
        self.closed = True
        self._send.close()
        self._wake()

    def abort(self) -> None:
        """Nobody will receive any more: every waiting asker and blocked sender is answered."""
        self.close()
        left: list[Received[M, R]] = list(self._unread)
        self._unread.clear()
        for item in left:
            item.fail(self.name, "stopped", stopped=True)
        self.handled(len(left) + self._abort_envelopes())
        self._receive.close()

    def _abort_envelopes(self) -> int:
        stopped = failure(self.name, "stopped", stopped=True)
        count = 0
        while True:
            try:
                envelope = self._receive.receive_nowait()
            except (anyio.WouldBlock, anyio.EndOfStream, anyio.ClosedResourceError):
                return count
            self._count(envelope)
            count += len(envelope.frames)
            if envelope.answer is not None:
                for index in range(len(envelope.frames)):
                    envelope.answer.fill(index, stopped)

    def statistics(self) -> MailboxStatistics:
        """Counts, for the metrics actor."""
        inner = self._receive.statistics()
        return MailboxStatistics(
            self.name,
            self.capacity,
            inner.current_buffer_used,
            self._sent,
            self._received,
            inner.tasks_waiting_send,
            max(self._high_water, inner.current_buffer_used),
            self.closed,
        )

    async def _put(self, envelope: Envelope) -> None:
        try:
            self._put_nowait(envelope)
        except anyio.WouldBlock:
            await self._put_when_there_is_room(envelope)

    def _put_nowait(self, envelope: Envelope) -> None:
        try:
            self._send.send_nowait(envelope)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            raise ActorStoppedError(self.name) from None
        self._count(envelope)
        self._sent += len(envelope.frames)
        self._wake()

    async def _put_when_there_is_room(self, envelope: Envelope) -> None:
        self._count(envelope)
        try:
            await self._send.send(envelope)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._uncount(envelope)
            raise ActorStoppedError(self.name) from None
        except BaseException:
            # Cancelled: it may lie in the buffer all the same. Then it counts again as soon as it is received.
            self._uncount(envelope)
            raise
        self._sent += len(envelope.frames)
        self._wake()

    def _wake(self) -> None:
        event, self._arrived = self._arrived, None
        if event is not None:
            event.set()

    def _count(self, envelope: Envelope) -> None:
        if self._activity is not None and not envelope.counted:
            envelope.counted = True
            self._activity.begin(len(envelope.frames))

    def _uncount(self, envelope: Envelope) -> None:
        if self._activity is not None and envelope.counted:
            envelope.counted = False
            self._activity.end(len(envelope.frames))

    def _open(self, envelope: Envelope, batch: list[Received[M, R]]) -> None:
        self._count(envelope)
        self._received += len(envelope.frames)
        for index, frame in enumerate(envelope.frames):
            batch.append(Received(self._decode(frame), frame, envelope.answer, index))

    def _decode_reply(self, frame: bytes) -> R:
        reply = self._decode_any_reply(frame)
        if isinstance(reply, Failed):
            raise ActorStoppedError(reply.actor) if reply.stopped else ActorFailedError(reply.actor, reply.error)
        return cast("R", reply)


def _parts(frames: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    for start in range(0, len(frames), BATCH):
        yield frames[start : start + BATCH]
