"""What is left beside a journal that could not be closed as it should be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pumice.storage.sqlite import SqliteJournal, opening
from pumice.storage.sqlite.lock import beside
from tests.storage.examples import records

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


async def test_the_write_ahead_file_outlives_a_journal_that_nobody_could_say_was_closed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(connection: object) -> bool:
        return False

    journal = await SqliteJournal.open(path)
    await journal.append(records(3))
    with monkeypatch.context() as patch:
        patch.setattr(opening, "say_closed", refused)
        await journal.close()
    assert path.with_name(f"{path.name}-wal").exists()
    async with await SqliteJournal.open(path) as again:
        assert await again.append(records(1, 4)) == 4
        assert (await again.check()).whole


async def test_the_mark_of_how_far_it_had_come_stays_when_closing_fails(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = await SqliteJournal.open(path)
    await journal.append(records(3))
    database = journal._database  # pyright: ignore[reportPrivateUsage]
    close = database.close

    async def fails() -> bool:
        await close()
        raise OSError("planted")

    monkeypatch.setattr(database, "close", fails)
    with pytest.raises(OSError, match="planted"):
        await journal.close()
    assert beside(path).exists()
    async with await SqliteJournal.open(path) as again:
        assert (await again.check()).records == 3
    assert not beside(path).exists()
