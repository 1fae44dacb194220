"""Asking until there is an answer, and what the answer may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import anyio

from pumice.actors.errors import ActorFailedError, UnexpectedReplyError
from pumice.core.messages.message import Message

if TYPE_CHECKING:
    from pumice.actors.runtime.mailbox import Mailbox

M = TypeVar("M", bound=Message)
R = TypeVar("R", bound=Message)
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


def expected(reply: Message, kind: type[A]) -> A:
    """The reply, where only one type of it is possible. Raises UnexpectedReplyError."""
    if not isinstance(reply, kind):
        raise UnexpectedReplyError(f"the answer was {reply!r}, expected {kind.__name__}")
    return reply
