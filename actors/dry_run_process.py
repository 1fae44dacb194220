"""A dry-run worker in a process of its own: the actor keeps the process and tells its replica what it has to know.

Owns: the process, and what its replica has been told.
Accepts: `Chunk`; answers `Candidates`, or `DryRunFailed` when the function raised there or nobody waits for it.
Sends: nothing to actors; frames to the process.
When full: the pool waits; it gives a worker one chunk at a time.
Stops: after the chunk in hand; the process ends with its input. When the process dies the actor crashes, and its next
instance starts another one; when the actor is taken away the process is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, cast

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from actors.actor import Actor
from actors.dry_run_child import LENGTH_BYTES
from actors.dry_run_feed import Feed, Openings, Tag, can_follow
from actors.errors import DryRunProcessError
from core.messages.commands import Chunk
from core.messages.replies import Candidates, DryRunFailed
from storage import codec

if TYPE_CHECKING:
    from anyio.abc import Process

    from actors.decider import DryRun
    from actors.dry_run_feed import Frame
    from actors.ports import Context, DryRunPort, Shelf
    from core.actions.dry_run import DryRun as CoreDryRun

PROGRAM = "actors.dry_run_child"
LAST_WORDS_S = 0.5
"""How long is waited for the status of a process that has closed its output."""


class DryRunProcess(Actor[Chunk, Candidates | DryRunFailed]):
    """`shelf`: where the dry run of a chunk lies; `openings` is shared by all processes."""

    def __init__(
        self, name: str, mailbox: DryRunPort, context: Context, *, shelf: Shelf[DryRun], openings: Openings
    ) -> None:
        super().__init__(name, mailbox, context)
        self._shelf = shelf
        self._feed = Feed(openings)
        self._process: Process | None = None
        self._answers: BufferedByteReceiveStream | None = None

    async def run(self) -> None:
        """Until the mailbox is closed and empty, with a process beside. None is left behind, however this ends."""
        async with await _started() as process:
            assert process.stdout is not None
            self._process, self._answers = process, BufferedByteReceiveStream(process.stdout)
            try:
                await super().run()
            except BaseException:
                with suppress(ProcessLookupError):  # it may be what has ended, and that is what is to be told
                    process.kill()
                raise

    async def handle(self, message: Chunk) -> Candidates | DryRunFailed:
        """Tell the replica what it lacks, and have it try the rows; users' own plugins are asked here."""
        try:
            dry_run = cast("CoreDryRun", self._shelf.get(codec.unpack(message.argument)))
        except KeyError:
            return DryRunFailed(message.request, message.chunk, "nobody waits for it any more")
        if not can_follow(dry_run):
            return Candidates(message.request, message.chunk, tuple(dry_run.try_rows(message.first, message.last)))
        return await self._asked([*self._feed.frames(dry_run), (Tag.CHUNK, codec.encode(message))])

    async def _asked(self, frames: list[Frame]) -> Candidates | DryRunFailed:
        process, answers = self._process, self._answers
        assert process is not None
        assert process.stdin is not None
        assert answers is not None
        try:
            await process.stdin.send(b"".join(_framed(tag, body) for tag, body in frames))
            length = int.from_bytes(await answers.receive_exactly(LENGTH_BYTES), "big")
            answer = await answers.receive_exactly(length)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, anyio.IncompleteRead) as error:
            raise DryRunProcessError(f"{self.name}: its process has ended{await _how(process)}") from error
        return codec.decode(answer, Candidates | DryRunFailed)


async def _started() -> Process:
    """The program with this one's modules in reach."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", PROGRAM]
    return await anyio.open_process(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None, env=environment
    )


async def _how(process: Process) -> str:
    """With what, where that is known soon: its output may be closed before it has ended."""
    with anyio.move_on_after(LAST_WORDS_S):
        status = await process.wait()
        return f", killed by {signal.Signals(-status).name}" if status < 0 else f" with status {status}"
    return ""


def _framed(tag: Tag, body: bytes) -> bytes:
    return len(body).to_bytes(LENGTH_BYTES, "big") + tag.value + body
