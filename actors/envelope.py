"""What lies in a mailbox: encoded messages, and the slot for their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import anyio

from core.messages.message import Message
from core.messages.replies import Failed
from storage import codec

if TYPE_CHECKING:
    from collections.abc import Sequence

M = TypeVar("M", bound=Message)
R = TypeVar("R", bound=Message)


class Answer:
    """A slot for `expected` replies. Filling it never blocks, so an answer is no link that could close a cycle."""

    __slots__ = ("_event", "_missing", "frames")

    def __init__(self, expected: int) -> None:
        self.frames: list[bytes | None] = [None] * expected
        self._missing = expected
        self._event = anyio.Event()

    def fill(self, index: int, frame: bytes) -> bool:
        """Put the reply to the index-th message; False when there is one already."""
        if self.frames[index] is not None:
            return False
        self.frames[index] = frame
        self._missing -= 1
        if not self._missing:
            self._event.set()
        return True

    async def wait(self) -> list[bytes]:
        """All replies, in the order of the messages."""
        await self._event.wait()
        return [frame for frame in self.frames if frame is not None]


class Envelope:
    """Messages that were sent together, each encoded once, and the slot that waits for the answers (None: told).

    `counted`: the activity board knows of them.
    """

    __slots__ = ("answer", "counted", "frames")

    def __init__(self, frames: Sequence[bytes], answer: Answer | None = None) -> None:
        self.frames = frames
        self.answer = answer
        self.counted = False


class Received(Generic[M, R]):
    """One message as its receiver sees it. `frame`: the bytes it came as; `settled`: answered, or nothing to answer."""

    __slots__ = ("_answer", "_index", "attempts", "frame", "message", "settled")

    def __init__(self, message: M, frame: bytes, answer: Answer | None, index: int) -> None:
        self.message = message
        self.frame = frame
        self.settled = False
        self.attempts = 0
        self._answer = answer
        self._index = index

    @property
    def asked(self) -> bool:
        """Whether somebody waits for a reply."""
        return self._answer is not None

    def reply(self, reply: R) -> None:
        """Answer the asker; nothing happens when the message was told, or answered before."""
        self.settled = True
        if self._answer is not None:
            self._answer.fill(self._index, codec.encode(reply))

    def fail(self, actor: str, error: str, *, stopped: bool = False) -> None:
        """Tell the asker that there will be no answer."""
        self.settled = True
        if self._answer is not None:
            self._answer.fill(self._index, failure(actor, error, stopped=stopped))


def failure(actor: str, error: str, *, stopped: bool) -> bytes:
    """The encoded reply of an actor that cannot answer."""
    reply: Message = Failed(actor, error, stopped)
    return codec.encode(reply)
