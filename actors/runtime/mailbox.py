# SPDX-License-Identifier: Apache-2.0
"""The bounded mailbox: MessagePack bytes, one receiver, many senders.

Full means back-pressure: senders wait, and nothing is ever dropped. A wake-up costs more than a message (6-20 us
against 1 us), so senders batch and receivers drain.

A queue of its own rather than an anyio memory object stream: a sender cancelled while it waits for room takes back what
no actor has, or knows that it was sent, which a stream does not offer; and finding the mailbox empty raises nothing.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar, get_args, overload

import anyio
from anyio import lowlevel

from pumice.actors.errors import ActorFailedError, ActorStoppedError, UnexpectedReplyError, UnknownMessageError
from pumice.actors.runtime.clock import Alarm
from pumice.actors.runtime.envelope import (
    NO_ANSWER,
    Answer,
    Envelope,
    Received,
    error_of,
    failure,
    parts,
    reply_or_none,
)
from pumice.core.messages.commands import MailboxStatistics
from pumice.core.messages.message import Message
from pumice.core.messages.replies import Failed
from pumice.storage import codec

if TYPE_CHECKING:
    from pumice.actors.runtime.activity import Activity

# --- Asking again

A = TypeVar("A")

AGAIN_S: Final = 0.02


async def ask_again(mailbox: Mailbox[M, R], message: M) -> R:
    """Ask, and after a little while again when the actor crashed over it: it may be done twice.

    Raises ActorStoppedError when it is gone for good.
    """
    while True:
        try:
            return await mailbox.ask(message)
        except ActorFailedError:
            await anyio.sleep(AGAIN_S)


async def ask_many_again(mailbox: Mailbox[M, R], messages: Sequence[M]) -> list[R]:
    """Ask a whole batch again, as `ask_again` does for one message."""
    while True:
        try:
            return await mailbox.ask_many(messages)
        except ActorFailedError:
            await anyio.sleep(AGAIN_S)


def expected(reply: Message, kind: type[A]) -> A:
    """Return the reply, where only one type of it is possible. Raises UnexpectedReplyError."""
    if not isinstance(reply, kind):
        raise UnexpectedReplyError(f"the answer was {reply!r}, expected {kind.__name__}")
    return reply


# --- Inline delivery: messages handled in the turn of their sender
# A turn of the event loop costs as much as most messages. On the real clock it is well spent: what comes meanwhile is
# dealt with together. On virtual time nothing comes meanwhile. So an actor that waits for mail, and would not wait
# while it deals with it, is run inline where its context says so. The sender goes on when that is done, and finds its
# answer there; as no sends make a circle, no actor is run again in the midst of its own work. Without this a run on
# virtual time whose jobs come one by one takes 1.2 times as long.


class Attendant(Protocol):
    """An actor that may run in the turns of its senders. `waits_for`: actors whose answers it awaits meanwhile."""

    waits_for: Sequence[Mailbox[Any, Any]]

    def delivers_inline(self, message: Any) -> bool:
        """Return whether the actor handles such a message without a wait, except for the actors it `waits_for`."""
        ...

    def deal_with(self, batch: Sequence[Received[Any, Any]]) -> Coroutine[Any, Any, None]:
        """Handle a batch, as in its own turn."""
        ...


class InlineRunner:
    """Runs an actor in the turns of its senders. `crash`: its exception there, which must end its own turn."""

    def __init__(self, actor: Attendant, decode: Callable[[Sequence[bytes]], list[Any]]) -> None:
        self._actor = actor
        self._decode = decode
        self.crash: Exception | None = None

    def is_free(self) -> bool:
        """Return whether the actors for whose answers it would wait are at rest."""
        return all(each.at_rest() for each in self._actor.waits_for)

    def deals_with(self, envelope: Envelope) -> bool:
        """Handle these messages now. False when they need the actor's own turn. An actor that waits then crashes."""
        if not self.is_free():
            return False
        batch = envelope.opened(self._decode)
        if not all(self._actor.delivers_inline(item.message) for item in batch):
            return False
        try:
            _run_through(self._actor.deal_with(batch))
        except Exception as error:  # noqa: BLE001 - it is raised where the actor's own crashes are
            self.crash = error
        return True


def _run_through(work: Coroutine[Any, Any, None]) -> None:
    try:
        work.send(None)
    except StopIteration:
        return
    work.close()
    raise RuntimeError("bug in Pumice: a message for inline delivery waits")


M = TypeVar("M", bound=Message)
R = TypeVar("R", bound=Message)


class Mailbox(Generic[M, R]):
    """The mailbox of one actor. `accepts` is the closed union M, `replies` the union R (None: it never answers).

    There are four ways to send: `tell`, `ask` for a reply, `ask_later` for one that is taken later (`answered`), and
    `ask_many` for those to a batch.
    """

    def __init__(
        self,
        name: str,
        accepts: object,
        replies: object = None,
        *,
        capacity: int = 256,
        activity: Activity | None = None,
        alarm: Alarm | None = None,
    ) -> None:
        if capacity < 1:
            raise ValueError(f"mailbox {name}: capacity must be at least 1, was {capacity}")
        self.name = name
        self.capacity = capacity
        self._decode = codec.decoder_of_many(accepts)
        self._accepted = frozenset(get_args(accepts) or (accepts,))
        self._decode_replies = codec.decoder_of_many(Failed if replies is None else replies | Failed)
        self._activity = activity
        self._alarm = alarm or Alarm()
        self._queue: deque[Envelope] = deque()
        self._blocked: OrderedDict[Envelope, anyio.Event] = OrderedDict()  # none unless the queue is full
        self._unread: deque[Received[M, R]] = deque()
        self._sent = self._received = self._high_water = 0
        self._mail: anyio.Event | None = None  # while the receiver waits for it
        self._inline: InlineRunner | None = None
        self.closed = False

    # --- senders

    async def tell(self, *messages: M | bytes, through: bool = False) -> None:
        """Send, with one wake-up for up to BATCH messages; wait while the mailbox is full. Bytes are encoded messages
        (`encode`). Raises ActorStoppedError once it is closed.

        `through`: never cancelled, which costs a scope only while the mailbox is full.
        """
        frames = [each if isinstance(each, bytes) else self.encode(each) for each in messages]
        for part in parts(frames):
            await self._send(Envelope(part), shield=through)

    async def ask(self, message: M, *, through: bool = False) -> R:
        """Send and wait for the reply. Raises ActorStoppedError or ActorFailedError instead of waiting for ever.

        `through`: the asker must have the reply. Cancelled while it waits, it is so again at its next wait, and not
        before; as in a shielded scope, but that costs more than asking, and is made here only on cancellation.
        """
        return await self.answered(await self.ask_later(message, through=through), through=through)

    async def ask_later(self, message: M | bytes, *, through: bool = False) -> Answer:
        """Do the first half of `ask`: send the bytes. `answered` waits for the reply, and for the next one once there
        is room for it (`Answer.again`).
        """
        answer = Answer(1)
        frame = message if isinstance(message, bytes) else self.encode(message)
        await self._send(Envelope((frame,), answer), shield=through)
        return answer

    async def answered(self, answer: Answer, *, through: bool = False) -> R:
        """Do the second half of `ask`: return the reply, or raise its error."""
        if answer.missing:
            complete = answer.awaited(self._alarm.event())
            try:
                await complete.wait()
            except anyio.get_cancelled_exc_class():
                if not through:
                    raise
                with anyio.CancelScope(shield=True):
                    await complete.wait()
        answer.redeem()
        return self._replies(answer.frames)[0]

    @overload
    async def ask_many(self, messages: Sequence[M]) -> list[R]: ...
    @overload
    async def ask_many(self, messages: Sequence[M], *, within_s: float) -> list[R | None]: ...
    async def ask_many(self, messages: Sequence[M], *, within_s: float = math.inf) -> list[R] | list[R | None]:
        """Send a batch and wait for all replies, in the order of the messages.

        `within_s`: for so long at most, for room and for an answer; None stands for a reply that did not come in time,
        or never will, for which ActorFailedError is raised otherwise.
        """
        in_time = within_s < math.inf
        replies: list[Any] = []
        for part in parts(self._encode_many(messages)):
            answer = Answer(len(part))
            # of each part: the next one is sent when the one before has its answers
            until = self._alarm.now() + within_s
            await self._send(Envelope(part, answer), deadline=until)
            if answer.missing:
                complete = answer.awaited(self._alarm.event())
                await (self._alarm.wait(complete, until) if in_time else complete.wait())
            replies += self._replies_in_time(answer.frames) if in_time else self._replies(answer.frames)
        return replies

    def encode(self, message: M) -> bytes:
        """Return the bytes of a message. Raises UnknownMessageError for a type that the actor does not know."""
        if type(message) not in self._accepted:
            raise UnknownMessageError(f"{self.name} does not know {type(message).__name__}")
        return codec.encode(message)

    def _encode_many(self, messages: Sequence[M]) -> list[bytes]:
        # one check for the whole batch; only a bad batch is looked at one by one
        if not self._accepted.issuperset(map(type, messages)):
            return [self.encode(message) for message in messages]  # which says what is wrong
        return codec.encode_many(messages)

    # --- the receiver

    async def receive(self, cap: int = 1024) -> list[Received[M, R]]:
        """Wait for one envelope, then drain up to about `cap` messages. Raises anyio.EndOfStream once closed and empty.

        Nothing is taken out before the last await, so a cancelled receiver loses nothing.
        """
        if self._queue or self._unread:
            # a receiver with mail does not wait: without this a cancelled receiver would go on as long as mail comes
            await lowlevel.checkpoint_if_cancelled()
        while not (self._queue or self._unread):
            if self.closed:
                raise anyio.EndOfStream
            self._mail = self._alarm.event()
            await self._mail.wait()
            # a crash in a sender's turn has to end this one, which is where the supervisor sees it
            if self._inline is not None and self._inline.crash is not None:
                raise self._inline.crash
        return self._drain(cap)

    def attended(self, actor: Attendant | None) -> None:
        """Handle messages that come while the actor waits in the turn of their sender, where possible; None ends
        this.
        """
        self._inline = None if actor is None else InlineRunner(actor, self._decode)

    def at_rest(self) -> bool:
        """Return whether a message that is sent now may be handled inline."""
        return self._mail is not None and self._inline is not None and self._inline.is_free()

    def _drain(self, cap: int) -> list[Received[M, R]]:
        batch: list[Received[M, R]] = []
        if self._unread:
            batch += self._unread
            self._unread.clear()
        # those put back were counted when they were first taken
        again = len(batch)
        if len(self._queue) > self._high_water:
            self._high_water = len(self._queue)
        while self._queue and len(batch) < cap:
            batch += self._queue.popleft().opened(self._decode)
            # room goes immediately to the sender that has waited longest: one that comes later must not overtake it
            if self._blocked and not self.closed:
                envelope, its_turn = self._blocked.popitem(last=False)
                self._post(envelope)
                its_turn.set()
        self._received += len(batch) - again
        return batch

    def put_back(self, messages: Sequence[Received[M, R]]) -> None:
        """Put back what a crashed actor had taken and not handled: the next instance receives it first."""
        self._unread.extendleft(reversed(messages))

    def handled(self, count: int) -> None:
        """Note that the receiver has handled so many messages."""
        if self._activity is not None:
            self._activity.end(count)

    # --- the end

    def close(self) -> None:
        """Refuse further sends, waiting ones too; queued messages can still be received."""
        self.closed = True
        for its_turn in self._blocked.values():
            its_turn.set()
        self._wake()

    def abort(self) -> None:
        """End receiving: answer every waiting asker and blocked sender."""
        self.close()
        if not (self._unread or self._queue):
            return
        stopped = failure(self.name, "stopped", stopped=True)
        for item in self._unread:
            item.fail(self.name, "stopped", stopped=True)
        for envelope in self._queue:
            if envelope.answer is not None:
                for index in range(len(envelope.frames)):
                    envelope.answer.fill(index, stopped)
        self.handled(len(self._unread) + sum([len(envelope.frames) for envelope in self._queue]))
        self._unread.clear()
        self._queue.clear()

    def statistics(self) -> MailboxStatistics:
        """Return counts, for the metrics actor."""
        queued = len(self._queue)
        high = max(self._high_water, queued)
        return MailboxStatistics(
            self.name, self.capacity, queued, self._sent, self._received, len(self._blocked), high, self.closed
        )

    async def _send(self, envelope: Envelope, *, shield: bool = False, deadline: float = math.inf) -> None:
        """Send, and wait for room in a scope that is made only when there is none."""
        if not self._put(envelope):
            with anyio.CancelScope(shield=shield, deadline=deadline):
                await self._wait_for_room(envelope)

    def _put(self, envelope: Envelope) -> bool:
        """Send when there is room. False when the sender must wait for it."""
        if self.closed:
            raise ActorStoppedError(self.name)
        if self._activity is not None:
            # counted before there is room: a sender that waits is pending work, too
            self._activity.begin(len(envelope.frames))
        if len(self._queue) >= self.capacity:
            return False
        self._post(envelope)
        return True

    async def _wait_for_room(self, envelope: Envelope) -> None:
        its_turn = self._blocked[envelope] = self._alarm.event()
        try:
            await its_turn.wait()
        finally:
            # still in the table: cancelled, or closed, before there was room; else the receiver has posted it
            not_sent = self._blocked.pop(envelope, None) is not None
            if not_sent:
                self.handled(len(envelope.frames))
        if not_sent:
            raise ActorStoppedError(self.name)

    def _post(self, envelope: Envelope) -> None:
        self._sent += len(envelope.frames)
        if self._mail is not None:
            # a receiver that waits has nothing queued, so this keeps the order of messages
            if self._inline is not None and self._inline.deals_with(envelope):
                self._received += len(envelope.frames)
                if self._inline.crash is not None:
                    self._wake()
                return
            self._wake()
        self._queue.append(envelope)

    def _wake(self) -> None:
        if self._mail is not None:
            self._mail.set()
            self._mail = None

    def _replies(self, frames: Sequence[bytes]) -> list[R]:
        replies = self._decode_replies(frames)
        # failures are rare, and this looks for them without a loop in Python
        if Failed in map(type, replies):
            raise next(error_of(reply) for reply in replies if isinstance(reply, Failed))
        return replies

    def _replies_in_time(self, frames: Sequence[bytes]) -> list[R | None]:
        return [reply_or_none(reply) for reply in self._decode_replies([frame or NO_ANSWER for frame in frames])]
