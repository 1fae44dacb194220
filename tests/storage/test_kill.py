"""kill -9 at random points: what was acknowledged is there, and nothing is there in part."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import anyio
import pytest

from pumice.storage.journal import Checkpoint, Record, Stored
from pumice.storage.sqlite import SqliteJournal

ROOT = Path(__file__).parents[2]
KILLS = int(os.environ.get("PUMICE_TEST_KILLS", "4"))
"""200 and more on request; each takes about half a second."""
JOURNALS = min(4, KILLS // 2)
"""So many writers' journals are killed side by side, each its share of the times."""

LINES = 4

WRITER = """
import sys, anyio
from tests.storage.test_kill import write
anyio.run(write, sys.argv[1], backend=sys.argv[2])
"""

READER = """
import sys, anyio
from tests.storage.test_kill import look
anyio.run(look, sys.argv[1])
"""


async def write(path: str) -> None:
    """Append for ever: batches of 1 to 2,000 records, now and then a checkpoint and a cut. Say what is acknowledged."""
    async with await SqliteJournal.open(path) as journal:
        chance = random.Random((await journal.head()).sequence)
        sys.stdout.write("open 0\n")
        while True:
            size = chance.choice([1, 1, 1, 7, 60, 2000])
            last = await journal.append([Record("api", b"of %d" % size, place) for place in range(size)])
            sys.stdout.write(f"appended {last}\n")
            sys.stdout.flush()
            if chance.random() < 0.1:
                await journal.save_checkpoint(Checkpoint(last, 0.0, bytes(50_000)))
                await journal.cut(chance.randrange(last))


async def look(path: str) -> None:
    """Open the journal again and again, as those do who ask what happened."""
    while True:
        async with await SqliteJournal.open(path, read_only=True) as journal:
            await journal.head()


def run_and_kill(path: Path, backend: str, after_s: float) -> int:
    """The last sequence number that a writer acknowledged before it was killed."""
    command = [sys.executable, "-c", WRITER, str(path), backend]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stderr is not None
        first = [writer.stdout.readline() for _ in range(LINES)]  # however busy the machine is, something is written
        time.sleep(after_s)
        writer.kill()
        lines = [*first, *writer.stdout.readlines()]
        assert b"Traceback" not in writer.stderr.read()
    whole = [line.split() for line in lines if line.endswith(b"\n")]
    return max((int(number) for _, number in whole), default=0)


@pytest.mark.timeout(120 + 5 * KILLS)
@pytest.mark.parametrize("journal", range(JOURNALS))
def test_nothing_acknowledged_is_lost(journal: int, tmp_path: Path) -> None:
    """Every other journal has someone who reads it all the while, and who must not notice either."""
    chance = random.Random(journal)
    path = tmp_path / "pumice.db"
    acknowledged = 0
    with ExitStack() as readers:
        for kill in range(journal, KILLS, JOURNALS):
            last = run_and_kill(path, ("asyncio", "trio")[kill // JOURNALS % 2], chance.uniform(0, 0.15))
            acknowledged = max(acknowledged, last)
            if journal % 2 and kill == journal:
                readers.enter_context(reading(path))
            found = anyio.run(examine, path)
            assert found >= acknowledged, f"kill {kill}: {acknowledged} was acknowledged, {found} is there"
    assert acknowledged > 100


@contextmanager
def reading(path: Path) -> Generator[None]:
    with subprocess.Popen([sys.executable, "-c", READER, str(path)], cwd=ROOT, stderr=subprocess.PIPE) as reader:
        yield
        ended = reader.poll()
        reader.kill()
        assert reader.stderr is not None
        assert ended is None, f"who read ended with {ended}: {reader.stderr.read().decode()}"


async def examine(path: Path) -> int:
    """Check the journal a killed writer left; its newest record."""
    async with await SqliteJournal.open(path) as journal:
        report = await journal.check()
        assert report.whole, report
        head = await journal.head()
        after = max(head.cut, head.sequence - 5000)
        assert_batches_are_whole(list(await journal.read(after)))
        return head.sequence


def assert_batches_are_whole(stored: list[Stored]) -> None:
    starts = [index for index, each in enumerate(stored) if each.cause == 0 and each.kind == "api"]
    for start in starts:
        size = int(stored[start].payload.split()[1])
        assert [each.cause for each in stored[start : start + size]] == list(range(size))


def test_the_test_can_fail() -> None:
    half = [Stored(number + 1, "api", b"of 7", number, 0.0, b"") for number in range(3)]
    with pytest.raises(AssertionError):
        assert_batches_are_whole(half)
