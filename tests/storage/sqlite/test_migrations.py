"""Old files are brought up to date step by step, each step whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pumice.storage.errors import OpenError
from pumice.storage.journal import CHECKPOINT
from pumice.storage.sqlite import SqliteJournal
from pumice.storage.sqlite.migrations import APPLICATION_ID, MIGRATIONS
from tests.storage.examples import contents, make, records, run_sql
from tests.storage.test_golden import copied

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

COLOUR = "ALTER TABLE checkpoint ADD COLUMN colour TEXT NOT NULL DEFAULT 'grey';"
BROKEN = "CREATE TABLE half (done INTEGER); INSERT INTO nowhere VALUES (1);"


async def test_from_version_0_to_the_current_one(path: Path) -> None:
    """Version 0: a file that was claimed, and the process killed before its first step."""
    run_sql(path, f"PRAGMA application_id = {APPLICATION_ID}")
    await make(path)
    assert run_sql(path, "PRAGMA user_version") == [(len(MIGRATIONS),)]


async def test_a_file_of_today_goes_on_tomorrow(path: Path) -> None:
    await make(path)
    async with await SqliteJournal.open(path, migrations=(*MIGRATIONS, COLOUR)) as journal:
        assert [contents(each) for each in await journal.read()] == records(50)
        assert (await journal.check()).whole
        assert await journal.append(records(1, 51)) == 51
    assert run_sql(path, "PRAGMA user_version", "SELECT count(colour) FROM checkpoint") == [
        (len(MIGRATIONS) + 1,),
        (0,),
    ]
    with pytest.raises(OpenError, match="newer"):
        await SqliteJournal.open(path)


async def test_a_step_that_fails_changes_nothing(path: Path) -> None:
    await make(path)
    with pytest.raises(OpenError):
        await SqliteJournal.open(path, migrations=(*MIGRATIONS, BROKEN))
    assert run_sql(path, "PRAGMA user_version") == [(len(MIGRATIONS),)]
    assert run_sql(path, "SELECT count(*) FROM sqlite_master WHERE name = 'half'") == [(0,)]
    async with await SqliteJournal.open(path) as journal:
        assert (await journal.check()).records == 50


async def test_an_old_file_is_read_as_it_is(tmp_path: Path) -> None:
    """Of version 1, which knew neither identities nor records of checkpoints."""
    path = copied("checkpoints", tmp_path)
    before = path.read_bytes()
    async with await SqliteJournal.open(path, read_only=True) as journal:
        assert (await journal.check()).whole
        assert len(await journal.checkpoints()) == 2
    assert path.read_bytes() == before
    assert run_sql(path, "PRAGMA user_version") == [(1,)]


async def test_an_old_file_gets_an_identity_and_records_of_its_checkpoints(tmp_path: Path) -> None:
    path = copied("checkpoints", tmp_path)
    async with await SqliteJournal.open(path) as journal:
        kinds = [each.kind for each in await journal.read(1015)]
        assert kinds[-2:] == [CHECKPOINT, CHECKPOINT]
        assert (await journal.check()).whole
        assert len(await journal.checkpoints()) == 2
        last = (await journal.head()).sequence
    async with await SqliteJournal.open(path) as journal:
        assert (await journal.head()).sequence == last, "once is enough"
    [(identity,)] = run_sql(path, "SELECT identity FROM anchor")
    assert len(identity) == 16
