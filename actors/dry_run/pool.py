# SPDX-License-Identifier: Apache-2.0
"""A dry run over several workers: its driver, and how it is fanned out.

Chunks of rows, a deadline for each, another try where a worker failed.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import anyio

from pumice.actors.errors import ActorFailedError, ActorStoppedError, DryRunLostError
from pumice.core.messages.commands import Chunk, Restart
from pumice.core.messages.replies import Candidates
from pumice.storage import codec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.actors.scheduling.decider import DryRunLike, Steps
    from pumice.actors.system.ports import DryRunPort, SupervisorPort
    from pumice.cluster.handles import HandleTable

TRY_ROWS = "try-rows"
"""The function a chunk names; its argument is the handle, as MessagePack."""


class DryRunDriver:
    """Drives dry runs. `handles`: where the workers of the pool find the dry run of a chunk."""

    def __init__(self, pool: DryRunPool, handles: HandleTable[DryRunLike]) -> None:
        self._pool = pool
        self._handles = handles

    async def drive(self, steps: Steps) -> None:
        """Run the action to its end. Raises its errors, and DryRunLostError."""
        try:
            asked = next(steps)
            while True:
                asked = steps.send(asked.read(await self._findings(asked)))
        except StopIteration:
            return

    async def _findings(self, asked: DryRunLike) -> list[Finding]:
        number = self._handles.put(asked)
        try:
            return await self._pool.run(TRY_ROWS, codec.pack(number), len(asked.nodes), asked.want)
        finally:
            self._handles.drop(number)  # a chunk that is still in a mailbox is not worth trying any more


Finding = tuple[int, bytes]
ATTEMPTS = 3
MARGIN = 8
"""Rows beyond the wanted findings in the first wave: a few candidates may not do."""


class DryRunPool:
    """The pool of workers. The supervisor removes a hung worker and puts a new one on its mailbox.

    `chunk_rows`: no chunk is smaller, but the last of a wave.
    """

    def __init__(
        self,
        workers: Sequence[DryRunPort],
        supervisor: SupervisorPort,
        *,
        chunk_rows: int = 128,
        deadline_s: float = 5.0,
    ) -> None:
        self._workers = workers
        self._supervisor = supervisor
        self._chunk_rows = chunk_rows
        self._deadline_s = deadline_s
        self._requests = 0

    async def run(self, function: str, argument: bytes, rows: int, want: int = 0) -> list[Finding]:
        """Return the first `want` findings (0: all) over rows 0..rows-1. Raises DryRunLostError for a chunk that no
        worker can do.
        """
        self._requests += 1
        blank = Chunk(self._requests, 0, function, argument, 0, 0, want)
        request = _Request(blank, rows, len(self._workers), self._chunk_rows)
        async with anyio.create_task_group() as tasks:
            for worker in self._workers:
                tasks.start_soon(self._feed, worker, request)
            await request.over.wait()
            # Workers that still try rows are not waited for: what they find is not needed.
            tasks.cancel_scope.cancel()
        return request.result()

    async def _feed(self, worker: DryRunPort, request: _Request) -> None:
        """Give the worker one chunk after another, until it is cancelled or the worker has stopped."""
        while True:
            chunk = await request.next()
            with anyio.move_on_after(self._deadline_s) as deadline:
                try:
                    reply = await worker.ask(chunk)
                except ActorFailedError as error:
                    request.failed(chunk, str(error))
                    continue
                except ActorStoppedError:
                    request.failed(chunk, f"{worker.name} has stopped")
                    request.left()
                    return
                if isinstance(reply, Candidates):
                    request.answered(reply)
                else:
                    request.failed(chunk, reply.error)
            # Outside the scope: within it the passed deadline would cancel the restart as well.
            if deadline.cancelled_caught:
                request.failed(chunk, f"{worker.name} gave no answer in {self._deadline_s} s")
                await self._supervisor.tell(Restart(worker.name))


class _Request:
    """One fan-out: its chunks and findings. `over` is set when there are enough, when no chunk is left, or when it
    failed.
    """

    def __init__(self, blank: Chunk, rows: int, workers: int, chunk_rows: int) -> None:
        self.over = anyio.Event()
        self._blank = blank
        self._rows = rows
        self._workers = workers
        self._least = chunk_rows
        self._wave = blank.want + MARGIN if blank.want else rows
        self._laid_out = 0  # rows that are in chunks
        self._chunks = 0
        self._todo: deque[Chunk] = deque()
        self._work = anyio.Event()
        self._found: dict[int, tuple[Finding, ...]] = {}
        self._failures: dict[int, int] = {}
        self._complete = 0  # chunks 0.._complete-1 are answered, with _findings findings in them
        self._findings = 0
        self._lost = ""
        self._lay_out()

    async def next(self) -> Chunk:
        """Return the next chunk to hand out; waits while all are handed out."""
        while not self._todo:
            self._work = anyio.Event()
            await self._work.wait()
        return self._todo.popleft()

    def answered(self, reply: Candidates) -> None:
        """Note what a chunk holds; a second answer changes nothing."""
        self._found.setdefault(reply.chunk, reply.found)
        while self._complete in self._found:
            self._findings += len(self._found[self._complete])
            self._complete += 1
        if self._enough():
            self.over.set()
        elif self._complete == self._chunks:
            self._lay_out()

    def failed(self, chunk: Chunk, why: str) -> None:
        """Hand a failed chunk out again, before all others; a chunk that fails everywhere is lost, and the action with
        it.
        """
        failures = self._failures[chunk.chunk] = self._failures.get(chunk.chunk, 0) + 1
        if failures >= ATTEMPTS:
            self._lost = f"dry run {chunk.function}, rows {chunk.first}..{chunk.last - 1}: {why}"
            self.over.set()
        self._todo.appendleft(chunk)
        self._work.set()

    def left(self) -> None:
        """Note that a worker is gone for good."""
        self._workers -= 1
        if not self._workers:
            self.over.set()

    def result(self) -> list[Finding]:
        """Return the findings in row order, cut to the wanted number."""
        if not self._enough() and (self._complete < self._chunks or self._laid_out < self._rows):
            raise DryRunLostError(self._lost or "no dry-run worker is left")
        want = self._blank.want
        ordered = [finding for index in range(self._complete) for finding in self._found[index]]
        return ordered[:want] if want else ordered

    def _enough(self) -> bool:
        return 0 < self._blank.want <= self._findings

    def _lay_out(self) -> None:
        """Cut the next wave into chunks; without one the fan-out has ended."""
        first, last = self._laid_out, min(self._laid_out + self._wave, self._rows)
        if first == last:
            self.over.set()
            return
        # An equal share for each worker, rounded up; for fewer rows the messages cost more than the rows.
        size = max(self._least, -(-(last - first) // self._workers))
        for start in range(first, last, size):
            chunk = self._chunks, start, min(start + size, last)
            self._todo.append(_cut(self._blank, *chunk))
            self._chunks += 1
        # Doubled: few rows are tried in vain where the first ones do, and there are few waves where hardly any does.
        self._laid_out, self._wave = last, 2 * self._wave
        self._work.set()


def _cut(blank: Chunk, number: int, first: int, last: int) -> Chunk:
    return Chunk(blank.request, number, blank.function, blank.argument, first, last, blank.want)
