# SPDX-License-Identifier: Apache-2.0
"""One limit in bytes for all that is held for clients: connections, incoming bodies, answers that are not read yet.

Only bytes that wait on a client are counted: a watch holds a position in its ring until its client has read the last
chunk. What does not fit waits in turn. While something waits, those whose clients have read nothing for longest give
way: watches first, which can go on elsewhere (they get 410, as slow watchers of a kube-apiserver's watch cache), then
other answers and bodies. Nobody who reads gives way.

Time on the event loop is shared as well: `LoopTurns`.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from enum import IntEnum
from math import inf
from time import perf_counter
from typing import Final

import anyio
from anyio import lowlevel

CONNECTION: Final = 32 * 1024
"""Bytes of a connection; with a watch on it, about 48 KiB (measured)."""
REQUEST: Final = 16 * 1024
"""Bytes of a request until it is answered, with a short answer and a short body."""
RESERVE: Final = 8
"""One in so many parts of the limit is kept for small requests (`REQUEST`), which are answered while others fill the
rest. New connections may use half of that part: a probe comes on one.
"""
STALLED_S: Final = 10.0
"""A client that has taken, or sent, nothing for so long is slow."""
SLOW_S: Final = 0.5
"""The same of watches and idle connections, whose clients can begin again."""
GRACE_S: Final = 0.25
"""Time for a slow watch to say so to its client; then its connection is cut. A probe that comes on a new connection may
wait for this and `SLOW_S`, and must be answered within a second.
"""
PATIENCE_S: Final = 15.0
"""Time for which a request waits for room: longer than it takes to find those that stall."""
AT_ONCE: Final = 100
"""Connections that are cut in one look: the ends of thousands would delay others."""
TIDY_S: Final = 60.0
"""Between two collections of what floods have left."""
EVERY_S: Final = 0.1
"""Between two looks for slow ones while others wait."""


class NoRoomError(Exception):
    """Bytes held for clients leave no room for this request."""


class Use(IntEnum):
    """Uses of a share; earlier ones are given up first."""

    WATCH = 0
    IDLE = 1
    ANSWER = 2


class Share:
    """Bytes that are held for one request, or for one connection. `cut` breaks its connection off.

    `since`: when it began to wait on its client; None while it does not. `expelled`: when it was ordered to end.
    """

    __slots__ = ("budget", "cut", "expelled", "held", "since", "use")

    def __init__(self, budget: ByteBudget, cut: Callable[[], None], use: Use = Use.ANSWER) -> None:
        self.budget = budget
        self.cut = cut
        self.use = use
        self.held = 0
        self.since: float | None = None
        self.expelled: float | None = None

    def is_slow(self, now: float) -> bool:
        """Return whether its client has taken, or sent, nothing for too long."""
        return self.since is not None and now - self.since >= (STALLED_S if self.use is Use.ANSWER else SLOW_S)

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Note that it waits on its client until the block ends."""
        self.since = anyio.current_time()
        try:
            yield
        finally:
            self.since = None

    @asynccontextmanager
    async def holding(self, size: int) -> AsyncGenerator[None]:
        """Hold so many bytes, which wait on the client until the block ends. Raises NoRoomError."""
        size = await self.budget.demand(self, size) if size else 0
        try:
            with self.waiting():
                yield
        finally:
            if size:
                self.budget.give_back(self, size)


class RoomWaiter:
    """A share that waits for so many bytes."""

    __slots__ = ("admitted", "share", "size")

    def __init__(self, share: Share, size: int) -> None:
        self.share = share
        self.size = size
        self.admitted = anyio.Event()


class ByteBudget:
    """The limit and what is held. The sum of all shares is `held`, and never passes `limit`."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self._shares: set[Share] = set()
        self._crowded = False
        self._tidied = -inf
        self._waiters: deque[RoomWaiter] = deque()

    # --- the count

    def take(self, share: Share, size: int) -> bool:
        """Hold so many more bytes for a share, if they fit; what is large fits only after all that waits."""
        if not self._fits(size) or (size > CONNECTION and self._waiters):
            return False
        self._add(share, size)
        return True

    def give_back(self, share: Share, size: int | None = None) -> None:
        """Hold so many bytes less (all of them by default), and admit the next that fit."""
        size = share.held if size is None else size
        share.held -= size
        self.held -= size
        if not share.held:
            self._shares.discard(share)
        while self._waiters and self._fits(self._waiters[0].size):
            waiter = self._waiters.popleft()
            self._add(waiter.share, waiter.size)
            waiter.admitted.set()

    def relieve(self, now: float) -> None:
        """Make room for what waits: tell the slowest watches to end, and cut those that do not."""
        need = sum(waiter.size for waiter in self._waiters)
        slow = [share for share in self._shares if share.is_slow(now)] if need else []
        for share in sorted(slow, key=lambda share: (share.use, share.since or 0.0))[:AT_ONCE]:
            if need <= 0:
                return
            need -= share.held
            if share.use is Use.WATCH and share.expelled is None:
                share.expelled = now
            elif share.expelled is None or now - share.expelled >= GRACE_S:
                share.cut()

    def _fits(self, size: int) -> bool:
        reserve = self.limit // RESERVE
        free_for_others = 0 if size <= REQUEST else reserve // 2 if size <= CONNECTION else reserve
        return self.held + size <= self.limit - free_for_others

    def _add(self, share: Share, size: int) -> None:
        share.held += size
        self.held += size
        self._shares.add(share)
        self._crowded = self._crowded or self.held > self.limit // 2

    # --- waiting for it

    async def demand(self, share: Share, size: int) -> int:
        """Hold so many bytes once they fit, and return their number. Raises NoRoomError when they do not in time."""
        # One that is larger than all of the limit would wait for ever: it has all for itself.
        size = min(size, self.limit - self.limit // RESERVE)
        if self.take(share, size):
            return size
        waiter = RoomWaiter(share, size)
        # What is large would keep the small ones from their reserve.
        (self._waiters.appendleft if size <= CONNECTION else self._waiters.append)(waiter)
        try:
            with anyio.move_on_after(PATIENCE_S):
                await waiter.admitted.wait()
        except BaseException:
            self._withdraw(waiter)
            raise
        if not waiter.admitted.is_set():
            self._withdraw(waiter)
            raise NoRoomError
        return size

    def _withdraw(self, waiter: RoomWaiter) -> None:
        if waiter.admitted.is_set():
            self.give_back(waiter.share, waiter.size)
        else:
            self._waiters.remove(waiter)
            self.give_back(waiter.share, 0)  # the next one may fit

    async def keep(self) -> None:
        """Look for slow ones while others wait, and tidy up after a flood, until cancelled."""
        while True:
            await anyio.sleep(EVERY_S)
            if self._waiters:
                self.relieve(anyio.current_time())
            self.tidy(anyio.current_time())

    def tidy(self, now: float) -> bool:
        """Collect what the connections of a flood have left behind, once they have gone; return whether that was done.

        The objects of a connection refer to each other. Most have grown old in a flood, and Python's collector visits
        old objects only after hours. It stops everything for some tenths of a second, so this is rare.
        """
        if not self._crowded or self.held > self.limit // RESERVE or now - self._tidied < TIDY_S:
            return False
        self._crowded, self._tidied = False, now
        gc.collect()
        return True


# --- LoopTurns
# A change wakes all watches of a kind together, and a client may open a thousand connections. Without turns all of them
# would work before the loop looks at its sockets again, and a probe would wait for all of them.

ROUND_S: Final = 0.01
"""Time for all of them in one round. A probe takes some ten rounds, and must be answered within a second."""


class LoopTurns:
    """Gives turns: requests and watches work for a short time in each round of the event loop.

    Those beyond it wait in line, and only the first of the line looks at the clock: thousands that look would take
    longer than those that work.
    """

    def __init__(self) -> None:
        self._began = 0.0
        self._line: deque[anyio.Event] = deque()

    async def take(self) -> None:
        """Wait for a turn: not at all while this round lasts and no task waits."""
        if not self._line and perf_counter() - self._began < ROUND_S:
            return
        mine = anyio.Event()
        self._line.append(mine)
        try:
            if self._line[0] is not mine:
                await mine.wait()
            if perf_counter() - self._began >= ROUND_S:
                await lowlevel.checkpoint()  # the loop looks at its sockets, which begins a round
                self._began = perf_counter()
        finally:
            was_first = self._line[0] is mine
            self._line.remove(mine)
            if was_first and self._line:
                self._line[0].set()
