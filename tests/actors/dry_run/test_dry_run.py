"""Dry runs: the result is that of one loop over all rows, whoever answers when, crashes or hangs."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.actors.dry_run.pool import DryRunPool, Finding
from pumice.actors.dry_run.worker import DryRunWorker, TryRows
from pumice.actors.errors import DryRunLostError
from pumice.actors.runtime.actor import Context
from pumice.actors.runtime.clock import RealClock
from pumice.actors.runtime.mailbox import Mailbox
from pumice.actors.runtime.supervisor import Child, Supervisor
from pumice.actors.system.ports import DryRunPort
from pumice.core.messages.commands import Chunk, DryRunCommand
from pumice.core.messages.events import ActorEvent
from pumice.core.messages.replies import Candidates, DryRunFailed
from pumice.storage import codec

pytestmark = pytest.mark.anyio
PATIENCE_S = 10.0


def every(argument: bytes, first: int, last: int) -> Iterator[Finding]:
    """Rows divisible by the argument, with their square."""
    step = codec.unpack(argument)
    return ((row, codec.pack(row * row)) for row in range(first, last) if row % step == 0)


def broken(argument: bytes, first: int, last: int) -> Iterator[Finding]:
    raise ValueError(f"planted in {first}..{last}")


class Unreliable(DryRunWorker):
    """Crashes or hangs over the chunks it is told to, once each."""

    crash: set[int]
    hang: set[int]
    delays: Callable[[int], float]

    async def handle(self, message: Chunk) -> Candidates | DryRunFailed:
        await anyio.sleep(self.delays(message.chunk))
        if message.chunk in self.crash:
            self.crash.discard(message.chunk)
            raise RuntimeError("planted")
        if message.chunk in self.hang:
            self.hang.discard(message.chunk)
            await anyio.sleep_forever()
        return await super().handle(message)


@asynccontextmanager
async def pooled(
    workers: int,
    *,
    crash: set[int] | None = None,
    hang: set[int] | None = None,
    delays: Callable[[int], float] = lambda _: 0.0,
    chunk_rows: int = 10,
) -> AsyncGenerator[DryRunPool]:
    context = Context(RealClock())
    functions: dict[str, TryRows] = {"every": every, "broken": broken}
    crash, hang = set(crash or ()), set(hang or ())

    def build(box: DryRunPort) -> DryRunWorker:
        worker = Unreliable(box.name, box, context, functions=functions)
        worker.crash, worker.hang, worker.delays = crash, hang, delays
        return worker

    async def note(events: Sequence[ActorEvent]) -> None:
        pass

    boxes: list[DryRunPort] = [
        Mailbox(f"dry-run-worker:{number}", DryRunCommand, Candidates | DryRunFailed) for number in range(workers)
    ]
    children = [Child(box.name, box, partial(build, box)) for box in boxes]
    supervisor = Supervisor(children, context, note)
    async with anyio.create_task_group() as tasks:
        await tasks.start(supervisor.run)
        yield DryRunPool(boxes, supervisor.mailbox, chunk_rows=chunk_rows, deadline_s=0.2)
        supervisor.stop()


def expected(rows: int, step: int, want: int = 0) -> list[Finding]:
    found = list(every(codec.pack(step), 0, rows))
    return found[:want] if want else found


@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(0, 200),
    step=st.integers(1, 40),
    want=st.integers(0, 30),
    workers=st.integers(1, 5),
    chunk_rows=st.integers(1, 60),
    seed=st.integers(0, 7),
    backend=st.sampled_from(["trio", "asyncio"]),
)
def test_the_result_does_not_depend_on_who_answers_when(
    rows: int, step: int, want: int, workers: int, chunk_rows: int, seed: int, backend: str
) -> None:
    async def run() -> None:
        def delays(chunk: int) -> float:
            return (chunk * 7 + seed) % 3 * 0.0002

        async with pooled(workers, delays=delays, chunk_rows=chunk_rows) as pool:
            assert await pool.run("every", codec.pack(step), rows, want) == expected(rows, step, want)

    anyio.run(run, backend=backend)


async def test_a_crashed_worker_is_replaced_and_its_chunk_done_again() -> None:
    async with pooled(3, crash={0, 4, 5}) as pool:
        assert await pool.run("every", codec.pack(3), 100) == expected(100, 3)


async def test_a_hung_worker_is_replaced_and_its_chunk_done_again() -> None:
    async with pooled(2, hang={1, 3}) as pool:
        assert await pool.run("every", codec.pack(3), 60) == expected(60, 3)
        assert await pool.run("every", codec.pack(5), 60) == expected(60, 5)


async def test_enough_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little more is looked at than is wanted, and what is looked at in vain is not waited for."""
    monkeypatch.setattr(sys.modules[Supervisor.__module__], "PATIENCE_S", 0.1)  # one still looks when all is over
    looked: set[int] = set()

    def delays(chunk: int) -> float:
        looked.add(chunk)
        return 0.0 if chunk < 2 else 3600.0

    async with pooled(3, delays=delays) as pool:
        with anyio.fail_after(PATIENCE_S):
            assert await pool.run("every", codec.pack(1), 1000, want=15) == expected(1000, 1, 15)
    assert looked == {0, 1, 2}  # 15 wanted: a first wave of 23 rows, in chunks of ten


@pytest.mark.parametrize("function", ["broken", "unknown"])
async def test_a_chunk_that_fails_everywhere_is_lost(function: str) -> None:
    async with pooled(3) as pool:
        with pytest.raises(DryRunLostError, match=function):
            await pool.run(function, b"", 30)
        assert await pool.run("every", codec.pack(2), 30) == expected(30, 2)
