# SPDX-License-Identifier: Apache-2.0
"""Long questions, answered by a process of their own, so many at a time, while the client waits.

The gateway knows what may be asked; the adviser that it is given knows the answers. The serving loop only waits.
"""

from __future__ import annotations

import functools
import os
import pickle  # nosec B403
import signal
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from subprocess import DEVNULL
from typing import Any, Final, NamedTuple, TypeVar

import anyio
from anyio import BrokenResourceError, CancelScope, CapacityLimiter, ClosedResourceError, EndOfStream, IncompleteRead
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from pumice.actors.gateway.problems import ApiError, internal, too_many, unavailable
from pumice.core.messages.replies import Refused

# --- Worker processes: each answers one question after another
# A process is ended with a question that no client waits for any more. `anyio.to_process` is not enough: a task
# that is cancelled while it starts a process leaves that process behind for good.

LINGER_S: Final = 1.0
"""A question whose asker has left may still end by itself for so long: a process that knows its journal is worth it."""
IDLE_S: Final = 300.0
"""A process that is asked nothing for so long is ended."""
SIZE: Final = 8
"""Bytes that say how many follow."""
# With this process's own search path: the answerer must import the very same modules.
PROGRAM: Final = f"import sys; sys.path[:] = sys.argv[1:]; from {__name__} import answer_all; answer_all()"
BROKEN: Final = (BrokenResourceError, ClosedResourceError, EndOfStream, IncompleteRead)

A = TypeVar("A")
Q = TypeVar("Q")


class AnswererDiedError(Exception):
    """The process ended before it had answered, or its answer cannot be read."""


class Workers:
    """Worker processes: at most `most`, with those that are starting and lingering; an answer may take `patience_s`."""

    def __init__(self, most: int, patience_s: float) -> None:
        self._limiter, self._patience_s = CapacityLimiter(most), patience_s
        self._idle: list[tuple[Process, float]] = []
        self._over = False

    async def keep(self) -> None:
        """End processes that have been idle for long; when cancelled, all of them."""
        try:
            while True:
                await anyio.sleep(IDLE_S / 5)
                await self._end_idle(anyio.current_time() - IDLE_S)
        finally:
            self._over = True
            with CancelScope(shield=True):
                # One second ahead, so that a process that became idle just now is among them.
                await self._end_idle(anyio.current_time() + 1)

    async def run(self, function: Callable[[Q], A], question: Q) -> A:
        """Return `function(question)`, computed in a process of its own. Raises TimeoutError, AnswererDiedError and the
        function's errors.
        """
        request, found = pickle.dumps((function, question)), list[bytes]()
        done, kept = anyio.Event(), CancelScope(deadline=anyio.current_time() + self._patience_s)
        async with self._limiter, anyio.create_task_group() as tasks:
            tasks.start_soon(self._ask, request, found, kept, done)
            try:
                await done.wait()
            finally:  # nothing to do, or no client waits any more
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
        """Ask a process. Only `kept` may cancel it: a starting process would have no owner."""
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
        """Return the process that was asked last, or a new one."""
        while self._idle:
            # The one asked last, so that the others stay idle and are ended.
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


# --- Within the process


def answer_all() -> None:
    """Answer until no more questions come. Whatever else is printed goes nowhere: it would be read as an answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the asker ends this process
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


GROUP: Final = "pumice.dev"
VERSION: Final = "v1"
BUSY_S: Final = 2
"""Seconds after which a client that was turned away may try again."""


class AdviserQuestion(NamedTuple):
    """Question to the adviser: the parts of the path, the query, and the body of a POST. `sees`: the namespaces whose
    objects the asker may see, None for all.
    """

    resource: str
    namespace: str = ""
    name: str = ""
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    sees: tuple[str, ...] | None = None


class AdviserAnswer(NamedTuple):
    """An answer. `body`: JSON, when the `code` is 200; otherwise `reason` and `message` tell why it is missing."""

    code: int
    body: bytes = b""
    reason: str = ""
    message: str = ""


Adviser = Callable[[AdviserQuestion], AdviserAnswer]
"""A function that a process of its own can be handed; it must be found by its name."""


class AdviceKind(NamedTuple):
    """One resource of the group. `of_all`: it may be asked without a name; `of_one`: with one. `whole`: it is about the
    whole cluster, and not for those who may see some namespaces only.
    """

    plural: str
    kind: str
    namespaced: bool = False
    of_all: bool = False
    of_one: bool = False
    verb: str = "get"
    whole: bool = False


KINDS: Final = {
    row.plural: row
    for row in (
        AdviceKind("boards", "Board", of_one=True, whole=True),
        AdviceKind("configurations", "Configuration", of_all=True, whole=True),
        AdviceKind("courses", "Course", of_all=True, whole=True),
        AdviceKind("cycles", "DecidedCycle", of_one=True),
        AdviceKind("estimates", "Estimate", namespaced=True, of_all=True, of_one=True),
        AdviceKind("explanations", "Explanation", namespaced=True, of_one=True),
        AdviceKind("measures", "Measures", of_all=True),
        AdviceKind("standings", "Standing", of_all=True, of_one=True),
        AdviceKind("stories", "Story", namespaced=True, of_one=True),
        AdviceKind("waitclasses", "WaitClasses", of_all=True),
        AdviceKind("whatifs", "WhatIf", of_all=True, verb="create"),
    )
}


class AdviceDesk:
    """Takes questions, `limit` at a time, each for at most `patience_s`. A question whose asker is cancelled counts
    until its process has ended, or has answered after all. `find`: as in `GatewaySettings`.
    """

    def __init__(
        self,
        adviser: Adviser | None,
        limit: int,
        patience_s: float,
        find: Callable[[], Awaitable[Adviser]] | None = None,
    ) -> None:
        self._adviser, self._limit, self._patience_s, self._find = adviser, limit, patience_s, find
        self._asked = 0

    @functools.cached_property
    def workers(self) -> Workers:
        """Return the workers, within an event loop only: one more than the limit, for the desk's own question."""
        return Workers(self._limit + 1, self._patience_s)

    async def keep(self) -> None:
        """Keep the processes that answer, until cancelled."""
        await self.workers.keep()

    async def ask(self, question: AdviserQuestion) -> AdviserAnswer:
        """Return the adviser's answer. Raises ApiError: 429 when the limit is reached, 503 when the server has no
        adviser or the answer takes too long, 500 when its process died.
        """
        with self._one_more():
            return await self.look(question)

    async def look(self, question: AdviserQuestion) -> AdviserAnswer:
        """Ask without the limit, for the desk's own question."""
        adviser = self._adviser if self._find is None else await self._find()
        if adviser is None:
            raise unavailable("this server has no adviser that answers such questions")
        try:
            return await self.workers.run(adviser, question)
        except TimeoutError:
            raise unavailable(f"no answer within {self._patience_s:g} s") from None
        except AnswererDiedError as error:
            raise internal("the process that was to answer has died") from error

    @contextmanager
    def _one_more(self) -> Generator[None]:
        if self._asked >= self._limit:
            raise too_many(f"too many questions: {self._limit} are being answered", BUSY_S)
        self._asked += 1
        try:
            yield
        finally:
            self._asked -= 1


def refusal(answer: AdviserAnswer) -> ApiError:
    """Return the adviser's refusal as an error of the API."""
    return ApiError(Refused(answer.code, answer.reason, answer.message))
