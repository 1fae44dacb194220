"""Fanning a dry run out over the workers: chunks of rows, a deadline for each, another try where a worker failed.

Not an actor: the worker of an action that dries run holds it. The result is the first `want` findings in row order,
whichever worker finished first and however many there are.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import anyio

from actors.errors import ActorFailedError, ActorStoppedError, DryRunLostError
from core.messages.commands import Chunk
from core.messages.replies import Candidates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from actors.ports import DryRunPort

Finding = tuple[int, bytes]
ATTEMPTS = 3


class DryRunPool:
    """`replace(name)` has a hung worker taken away and a new one put on its mailbox (the supervisor's restart)."""

    def __init__(
        self,
        workers: Sequence[DryRunPort],
        replace: Callable[[str], None],
        *,
        chunk_rows: int = 128,
        deadline_s: float = 5.0,
    ) -> None:
        self._workers = workers
        self._replace = replace
        self._chunk_rows = chunk_rows
        self._deadline_s = deadline_s
        self._requests = 0

    async def run(self, function: str, argument: bytes, rows: int, want: int = 0) -> list[Finding]:
        """The first `want` findings (0: all) over rows 0..rows-1; DryRunLostError for a chunk nobody can do."""
        self._requests += 1
        request = _Request(self._requests, function, argument, rows, want, self._chunk_rows)
        async with anyio.create_task_group() as tasks:
            for worker in self._workers:
                tasks.start_soon(self._feed, worker, request)
        return request.result()

    async def _feed(self, worker: DryRunPort, request: _Request) -> None:
        """Give the worker one chunk after another, until there are none left or enough is found."""
        while (chunk := request.next()) is not None:
            with anyio.move_on_after(self._deadline_s) as deadline:
                try:
                    reply = await worker.ask(chunk)
                except ActorFailedError as error:
                    request.failed(chunk, str(error))
                    continue
                except ActorStoppedError:
                    request.failed(chunk, f"{worker.name} has stopped")
                    return
                if isinstance(reply, Candidates):
                    request.answered(reply)
                else:
                    request.failed(chunk, reply.error)
            if deadline.cancelled_caught:
                request.failed(chunk, f"{worker.name} gave no answer in {self._deadline_s} s")
                self._replace(worker.name)


class _Request:
    """One fan-out: what is to be done, what was found."""

    def __init__(self, number: int, function: str, argument: bytes, rows: int, want: int, chunk_rows: int) -> None:
        self._want = want
        self._found: dict[int, tuple[Finding, ...]] = {}
        self._failures: dict[int, int] = {}
        self._complete = 0  # chunks 0.._complete-1 are answered, with _findings findings in them
        self._findings = 0
        self._lost = ""
        starts = range(0, rows, chunk_rows)
        self._chunks = len(starts)
        self._todo = deque(
            Chunk(number, index, function, argument, start, min(start + chunk_rows, rows), want)
            for index, start in enumerate(starts)
        )

    def next(self) -> Chunk | None:
        """The next chunk to hand out; None once the answered beginning holds enough."""
        return self._todo.popleft() if self._todo and not self._lost and not self._enough() else None

    def answered(self, reply: Candidates) -> None:
        """Note what a chunk holds; a second answer changes nothing."""
        self._found.setdefault(reply.chunk, reply.found)
        while self._complete in self._found:
            self._findings += len(self._found[self._complete])
            self._complete += 1

    def failed(self, chunk: Chunk, why: str) -> None:
        """Hand it out again, first of all; a chunk that fails everywhere is lost, and the action with it."""
        failures = self._failures[chunk.chunk] = self._failures.get(chunk.chunk, 0) + 1
        if failures >= ATTEMPTS:
            self._lost = f"dry run {chunk.function}, rows {chunk.first}..{chunk.last - 1}: {why}"
        self._todo.appendleft(chunk)

    def result(self) -> list[Finding]:
        """The findings in row order, cut to what was wanted."""
        if self._complete < self._chunks and not self._enough():
            raise DryRunLostError(self._lost or "no dry-run worker is left")
        ordered = [finding for index in sorted(self._found) if index < self._complete for finding in self._found[index]]
        return ordered[: self._want] if self._want else ordered

    def _enough(self) -> bool:
        return 0 < self._want <= self._findings
