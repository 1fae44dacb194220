# SPDX-License-Identifier: Apache-2.0
"""Faults of an answer on its way to a client: late, lost, cut; a watch may also be delayed or expire.

A channel takes the messages of an answer (ASGI) in place of the client's, and passes on what the client gets. A
connection is cut by leaving the answer without an end: hypercorn then closes it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

import anyio

from pumice.actors.gateway.problems import expired, failure
from pumice.actors.gateway.request.exchange import Send
from pumice.actors.gateway.watch_events import JSON_EVENTS, EventFormat, format_of
from pumice.actors.runtime.level_signal import LevelSignal

Message = MutableMapping[str, Any]
START: Final = "http.response.start"
BODY: Final = "http.response.body"


async def lose(_message: Message) -> None:
    """Take a part of an answer that no client gets."""


async def hang_up(send: Send) -> None:
    """End a connection on which no answer has begun."""
    # `BoundedH11` keeps a head whose length is known until its body comes, which never does.
    await send({"type": START, "status": 200, "headers": [(b"content-length", b"1")]})


def late(send: Send, wait: Callable[[], Awaitable[None]]) -> Send:
    """Return a channel that waits before the answer begins."""

    async def pass_on(message: Message) -> None:
        if message["type"] == START:
            await wait()
        await send(message)

    return pass_on


def cut_after(send: Send, size: int) -> Send:
    """Return a channel that passes on only so many bytes of the body."""
    left = size

    async def pass_on(message: Message) -> None:
        nonlocal left
        if message["type"] == START:
            # A length that is not reached: without one the end of the connection could be the end of the answer.
            kept = [each for each in message["headers"] if each[0] != b"content-length"]
            await send({**message, "headers": [*kept, (b"content-length", b"%d" % (size + 1))]})
            return
        part, left = message["body"][:left], max(left - len(message["body"]), 0)
        if part:
            await send({**message, "body": part, "more_body": True})

    return pass_on


# --- Watches


class WatchChannel:
    """The channel of a watch. `over` is cancelled when the watch has ended early. `told`: raised to the revision of
    each event that has been sent.
    """

    def __init__(self, send: Send, over: anyio.CancelScope, told: LevelSignal | None = None) -> None:
        self._send = send
        self._over = over
        self._told = told
        self._ended = False
        self._events: EventFormat = JSON_EVENTS

    async def __call__(self, message: Message) -> None:
        """Pass on a message, event by event."""
        if message["type"] == START:
            self._events, _ = format_of(dict(message["headers"])[b"content-type"].decode())
        if message["type"] == START or not message.get("body"):
            if not self._ended:
                await self._begin_or_end(message)
            return
        # A message may hold several events, and faults count them one by one.
        for event in self._events.split(message["body"]):
            if not self._ended:
                await self.event(event)

    async def _begin_or_end(self, message: Message) -> None:
        await self._send(message)

    async def event(self, event: bytes) -> None:
        """Pass on one event."""
        await self._pass_on(event)
        if self._told is not None:
            # Never back: the first events of a watch may be older than the newest that was sent before.
            self._told.raise_to(max(self._events.revision(event), self._told.value))

    async def _pass_on(self, part: bytes) -> None:
        await self._send({"type": BODY, "body": part, "more_body": True})

    def end_here(self) -> None:
        """End the watch: what its handler still sends goes nowhere."""
        self._ended = True
        self._over.cancel()


class DelayedChannel(WatchChannel):
    """Waits for each batch of events before it passes it on: their order stays."""

    def __init__(
        self,
        send: Send,
        over: anyio.CancelScope,
        told: LevelSignal | None,
        delay_s: float,
        leader: LevelSignal | None = None,
    ) -> None:
        super().__init__(send, over, told)
        self._delay_s = delay_s
        self._leader = leader

    async def __call__(self, message: Message) -> None:
        """Pass on a message later."""
        if message["type"] == BODY and message.get("body"):
            # The first event of a batch decides for all: their order must stay.
            await self._wait(self._events.revision(self._events.split(message["body"])[0]))
        await super().__call__(message)

    async def _wait(self, revision: int) -> None:
        if self._leader is None:
            await anyio.sleep(self._delay_s)
            return
        # At most so long: where the other kind does not change, it would be waited for in vain.
        with anyio.move_on_after(self._delay_s):
            await self._leader.wait_beyond(revision)


class CountedChannel(WatchChannel):
    """Ends after so many events; bookmarks do not count. What comes then, subclasses say."""

    def __init__(self, send: Send, over: anyio.CancelScope, told: LevelSignal | None, events: int) -> None:
        super().__init__(send, over, told)
        self._left = events

    async def _begin_or_end(self, message: Message) -> None:
        await super()._begin_or_end(message)
        if message["type"] == START and not self._left and self._ends_between:
            await self._end()

    async def event(self, event: bytes) -> None:
        """Pass on one event, or the end."""
        if not self._left:
            await self._end(event)
            return
        await super().event(event)
        # Bookmarks are not changes; counted, they would cut a quiet watch.
        self._left -= not self._events.is_bookmark(event)
        if not self._left and self._ends_between:
            await self._end()

    @property
    def _ends_between(self) -> bool:
        return True

    async def _end(self, event: bytes = b"") -> None:
        raise NotImplementedError


class ExpiringChannel(CountedChannel):
    """Ends with 410, as one that has fallen behind."""

    async def _end(self, event: bytes = b"") -> None:
        problem = expired("too old resource version: the watch was too slow and has fallen behind")
        body = self._events.write("ERROR", failure(problem.refused))
        await self._send({"type": BODY, "body": body, "more_body": False})
        self.end_here()


class CutChannel(CountedChannel):
    """Is cut off, between two events or within one."""

    def __init__(
        self, send: Send, over: anyio.CancelScope, told: LevelSignal | None, events: int, *, within: bool
    ) -> None:
        super().__init__(send, over, told, events)
        self._within = within

    @property
    def _ends_between(self) -> bool:
        return not self._within

    async def _end(self, event: bytes = b"") -> None:
        if event:
            await self._pass_on(event[: len(event) // 2])
        self.end_here()
