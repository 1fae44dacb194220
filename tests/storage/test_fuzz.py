"""Whatever is done to the bytes of a journal, what comes of it is said in this layer's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pumice.storage.errors import StorageError
from pumice.storage.journal import Checkpoint
from pumice.storage.sqlite import SqliteJournal
from tests.storage.examples import pod, records

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a small journal with a checkpoint, a dictionary and a cut."""
    path = tmp_path_factory.mktemp("content") / "pumice.db"

    async def write() -> None:
        async with await SqliteJournal.open(path) as journal:
            for number in range(100):
                await journal.append([pod(number)])
            await journal.append(records(20))
            await journal.save_checkpoint(Checkpoint(40, 1.0, b"state"))
            await journal.cut(20)

    anyio.run(write)
    return path.read_bytes()


FLIPS = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), min_size=1, max_size=40)


@given(flips=FLIPS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_flipped_bytes_end_in_errors_of_this_layer(
    content: bytes, tmp_path: Path, flips: list[tuple[float, int]]
) -> None:
    mutated = bytearray(content)
    for where, bits in flips:
        mutated[int(where * len(mutated))] ^= bits
    path = tmp_path / "mutated.db"
    path.write_bytes(mutated)
    try:
        async with await SqliteJournal.open(path, read_only=True) as journal:
            report = await journal.check()
            head, found = await journal.head(), await journal.read()
            if report.whole:
                assert [each.sequence for each in found] == list(range(head.cut + 1, head.sequence + 1))
            await journal.last("api")
            await journal.checkpoints()
    except StorageError:
        pass
