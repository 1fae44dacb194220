"""The program of a dry-run process: keeps a replica of the session and tries rows on it. `python -m` starts it.

Reads frames from standard input and writes one answer to standard output for every chunk. Ends at the end of its
input, so it never outlives whoever started it. Whatever goes wrong before a chunk ends it: it is started anew and told
everything.
"""

from __future__ import annotations

import gc
import pickle
import signal
import sys
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO

from actors.dry_run_feed import PODS, Reader, Tag
from core.messages.commands import Chunk
from core.messages.replies import Candidates, DryRunFailed
from core.replica.replica import Replica
from storage import codec

if TYPE_CHECKING:
    from collections.abc import Iterator

LENGTH_BYTES = 4


class Child:
    """The replica, and what a frame does to it."""

    def __init__(self) -> None:
        self._replica = Replica()
        self._reader = Reader()

    def told(self, tag: Tag, body: bytes) -> bytes | None:
        """Deal with a frame; the answer, where there is one."""
        match tag:
            case Tag.BEGIN:
                self._begin(body)
            case Tag.FOLLOW:
                self._replica.follow(pickle.loads(body))
            case Tag.QUESTION:
                self._replica.ask(pickle.loads(body))
            case Tag.CHUNK:
                return codec.encode(self._try(codec.decode(body, Chunk)))
        return None

    def _begin(self, body: bytes) -> None:
        gc.disable()  # nothing of what is read is garbage
        begin = self._reader.opening(body)
        self._replica.columns[PODS] = [*self._reader.pods]
        self._replica.begin(begin)
        gc.freeze()
        gc.enable()

    def _try(self, chunk: Chunk) -> Candidates | DryRunFailed:
        try:
            found = self._replica.try_rows(chunk.first, chunk.last)
        except Exception as error:  # noqa: BLE001 - the pool has others try these rows, and says why in the end
            return DryRunFailed(chunk.request, chunk.chunk, repr(error))
        return Candidates(chunk.request, chunk.chunk, tuple(islice(found, chunk.want or None)))


def frames(source: BinaryIO) -> Iterator[tuple[Tag, bytes]]:
    """Every frame, until the input ends, be it in the middle of one."""
    while len(head := source.read(LENGTH_BYTES + 1)) == LENGTH_BYTES + 1:
        length = int.from_bytes(head[:LENGTH_BYTES], "big")
        body = source.read(length)
        if len(body) < length:
            return
        yield Tag(head[LENGTH_BYTES:]), body


def main() -> None:
    """Until the input ends. An interrupt from the terminal is the parent's business, which then closes the input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child, sink = Child(), sys.stdout.buffer
    for tag, body in frames(sys.stdin.buffer):
        answer = child.told(tag, body)
        if answer is not None:
            sink.write(len(answer).to_bytes(LENGTH_BYTES, "big") + answer)
            sink.flush()


if __name__ == "__main__":
    main()
