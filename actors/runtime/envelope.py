# SPDX-License-Identifier: Apache-2.0
"""Envelopes in a mailbox: encoded messages, and the slot for their answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count, repeat
from typing import Any, Generic, TypeVar

import anyio
from msgspec import Struct

from pumice.actors.errors import ActorFailedError, ActorStoppedError
from pumice.core.messages.message import Message
from pumice.core.messages.replies import Failed
from pumice.storage import codec

M = TypeVar("M", bound=Message)
R = TypeVar("R", bound=Message)


BATCH = 256
"""Messages in one envelope at most: longer batches are cut, so that a mailbox stays bounded in messages too."""


class Answer:
    """A slot for `expected` replies. Filling it never blocks, so an answer cannot close a cycle of waits.

    `frames`: the replies in the order of the messages, empty where there is none yet; `missing`: so many of them.
    `complete`, an event of the asker, is set when all are there. `over`: the asked actor will not answer
    again. `promised`: puts the one reply here when it is taken.
    """

    __slots__ = ("complete", "frames", "missing", "over", "promised")

    def __init__(self, expected: int) -> None:
        self.frames = [b""] * expected
        self.complete: anyio.Event | None = None
        self.over = False
        self.missing = expected
        self.promised: Callable[[], None] | None = None

    def again(self) -> None:
        """Note that its only reply was taken: an actor that goes on answering has room for the next."""
        self.frames, self.complete, self.missing = [b""], None, 1

    def awaited(self, complete: anyio.Event) -> anyio.Event:
        """Note the asker's event, which is set when all answers are there, and return it."""
        self.complete = complete
        # the reply may have come before the asker waits: then nothing else would set the event
        if not self.missing or self.promised is not None:
            complete.set()
        return complete

    def promise(self, answer: Callable[[], None]) -> None:
        """Promise a reply: `answer` fills the slot with it once the asker has its turn."""
        self.promised = answer
        if self.complete is not None:
            self.complete.set()

    def redeem(self) -> None:
        """Make the promised reply when the asker has its turn."""
        promised, self.promised = self.promised, None
        if promised is not None:
            promised()

    def fill(self, index: int, frame: bytes) -> None:
        """Fill in the reply to the index-th message; a second one changes nothing."""
        if self.frames[index]:
            return
        self.frames[index] = frame
        self.missing -= 1
        if not self.missing and self.complete is not None:
            self.complete.set()


class Envelope(Struct, eq=False):
    """Messages that were sent together, each encoded once, and the slot that waits for the answers (None: no answer is
    expected).
    """

    frames: Sequence[bytes]
    answer: Answer | None = None

    def opened(self, decode: Callable[[Sequence[bytes]], list[Any]]) -> list[Received[Any, Any]]:
        """Return the messages as their receiver sees them."""
        # without a loop in Python: this runs for every message
        return list(map(Received, decode(self.frames), self.frames, repeat(self.answer), count()))


class Received(Struct, Generic[M, R], eq=False):
    """One message as its receiver sees it.

    `frame`: the bytes it came as; `settled`: answered, or nothing to answer; `attempts`: how many crashed over it.
    """

    message: M
    frame: bytes
    _answer: Answer | None
    _index: int
    settled: bool = False
    attempts: int = 0

    @property
    def asked(self) -> bool:
        """Return whether an asker waits for a reply."""
        return self._answer is not None

    @property
    def waits(self) -> bool:
        """Return whether there is room for a reply: none has come, or the asker has taken it and wants the next."""
        answer = self._answer
        return answer is not None and answer.promised is None and not answer.frames[self._index]

    def promise(self, answer: Callable[[], None]) -> None:
        """Promise a reply to the only message, which `answer` makes when the asker takes it."""
        if self._answer is not None:
            self._answer.promise(answer)

    def reply(self, reply: R) -> None:
        """Answer the asker; a second answer, or one without an asker, changes nothing."""
        self.settled = True
        if self._answer is not None:
            self._answer.fill(self._index, codec.encode(reply))

    def fail(self, actor: str, error: str, *, stopped: bool = False, world: bool = False) -> None:
        """Tell the asker that there will be no answer, or no other."""
        self.settled = True
        if self._answer is not None:
            self._answer.over = True
            self._answer.fill(self._index, failure(actor, error, stopped=stopped, world=world))


def parts(frames: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Yield the messages that are sent together in parts, one an envelope."""
    for start in range(0, len(frames), BATCH):
        yield frames[start : start + BATCH]


def failure(actor: str, error: str, *, stopped: bool, world: bool = False) -> bytes:
    """Return the encoded reply of an actor that cannot answer."""
    reply: Message = Failed(actor, error, stopped, world)
    return codec.encode(reply)


NO_ANSWER = failure("", "no answer has come", stopped=False)
"""Stands for the reply that has not come."""


def error_of(failed: Failed) -> ActorFailedError | ActorStoppedError:
    """Return the error for the asker of an actor that cannot answer."""
    if failed.stopped:
        return ActorStoppedError(failed.actor)
    return ActorFailedError(failed.actor, failed.error, world=failed.world)


def reply_or_none(reply: R | Failed) -> R | None:
    """Return the reply, or None when none will come. Raises ActorStoppedError."""
    if not isinstance(reply, Failed):
        return reply
    if reply.stopped:
        raise error_of(reply)
    return None
