"""Processes that answer one question after another: each is ended with a question that nobody waits for any more.

`anyio.to_process` is not enough: whoever is cancelled while it starts a process leaves that process behind for good.
"""

from __future__ import annotations

import os
import pickle  # nosec B403
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from subprocess import DEVNULL
from typing import Any, Final, TypeVar

import anyio
from anyio import BrokenResourceError, CancelScope, CapacityLimiter, ClosedResourceError, EndOfStream, IncompleteRead
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

LINGER_S: Final = 1.0
"""A question whose asker has left may still end by itself for so long: a process that knows its journal is worth it."""
IDLE_S: Final = 300.0
"""A process that is asked nothing for so long is ended."""
SIZE: Final = 8
"""Bytes that say how many follow."""
PROGRAM: Final = f"import sys; sys.path[:] = sys.argv[1:]; from {__name__} import answer_all; answer_all()"
BROKEN: Final = (BrokenResourceError, ClosedResourceError, EndOfStream, IncompleteRead)

A = TypeVar("A")
Q = TypeVar("Q")


class AnswererDiedError(Exception):
    """The process ended before it had answered, or its answer cannot be read."""


class Workers:
    """`most` processes at a time, counting those that are started and those that linger, none longer over an answer
    than `patience_s`.
    """

    def __init__(self, most: int, patience_s: float) -> None:
        self._limiter, self._patience_s = CapacityLimiter(most), patience_s
        self._idle: list[tuple[Process, float]] = []
        self._over = False

    async def keep(self) -> None:
        """End who has been idle for long; when cancelled, everybody."""
        try:
            while True:
                await anyio.sleep(IDLE_S / 5)
                await self._end_idle(anyio.current_time() - IDLE_S)
        finally:
            self._over = True
            with CancelScope(shield=True):
                await self._end_idle(anyio.current_time() + 1)

    async def run(self, function: Callable[[Q], A], question: Q) -> A:
        """`function(question)`, of a process of its own. Raises TimeoutError, AnswererDiedError, what the function
        raises.
        """
        request, found = pickle.dumps((function, question)), list[bytes]()
        done, kept = anyio.Event(), CancelScope(deadline=anyio.current_time() + self._patience_s)
        async with self._limiter, anyio.create_task_group() as tasks:
            tasks.start_soon(self._ask, request, found, kept, done)
            try:
                await done.wait()
            finally:  # nothing to do, or nobody waits any more
                kept.deadline = min(kept.deadline, anyio.current_time() + LINGER_S)
        if kept.cancelled_caught:
            raise TimeoutError
        if not found:
            raise AnswererDiedError
        answer: A
        answer, error = pickle.loads(found[0])  # nosec B301 - our own process says it
        if error is not None:
            raise error
        return answer

    async def _ask(self, request: bytes, found: list[bytes], kept: CancelScope, done: anyio.Event) -> None:
        """Not to be cancelled but by `kept`: a process that is being started would be nobody's."""
        with CancelScope(shield=True):
            process = await self._process()
            with kept, suppress(*BROKEN):
                found.append(await _exchange(process, request))
            done.set()
            if found and not self._over:
                self._idle.append((process, anyio.current_time()))
            else:
                await _end(process)

    async def _process(self) -> Process:
        """The one that was asked last, or a new one."""
        while self._idle:
            process, _ = self._idle.pop()
            if process.returncode is None:
                return process
            await _end(process)
        return await anyio.open_process([sys.executable, "-c", PROGRAM, *sys.path], stderr=DEVNULL)

    async def _end_idle(self, before: float) -> None:
        ending = [process for process, since in self._idle if since < before]
        self._idle = [each for each in self._idle if each[1] >= before]
        for process in ending:
            await _end(process)


async def _exchange(process: Process, request: bytes) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    await process.stdin.send(len(request).to_bytes(SIZE) + request)
    said = BufferedByteReceiveStream(process.stdout)
    return await said.receive_exactly(int.from_bytes(await said.receive_exactly(SIZE)))


async def _end(process: Process) -> None:
    with CancelScope(shield=True):
        with suppress(ProcessLookupError):
            process.kill()
        await process.aclose()


# --- within the process


def answer_all() -> None:
    """Until there are no more questions. Whatever else is printed goes nowhere: it would be read as an answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks ends us
    told, nowhere = os.fdopen(os.dup(1), "wb"), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    asked = sys.stdin.buffer
    while size := asked.read(SIZE):
        said = _answered(asked.read(int.from_bytes(size)))
        told.write(len(said).to_bytes(SIZE) + said)
        told.flush()


def _answered(request: bytes) -> bytes:
    try:
        function: Callable[[Any], Any]
        function, question = pickle.loads(request)  # nosec B301 - our own server asks it
        return pickle.dumps((function(question), None))
    except Exception as error:  # noqa: BLE001 - it is raised where the question was asked
        return pickle.dumps((None, error))
