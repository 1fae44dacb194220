"""Names that docs/stability.md promises are still there, and its versions are those of the code."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from pumice.config import rules
from pumice.core import digest
from pumice.core.messages.events import CycleRecord
from pumice.core.messages.message import WIRE
from pumice.questions.adviser.reasons import ALIASES, WaitCode
from pumice.storage import codec
from pumice.storage.journal import CYCLE
from pumice.storage.sqlite import SqliteJournal
from pumice.storage.sqlite.migrations import MIGRATIONS
from tests.kit import source
from tests.promises import promised
from tests.storage.test_golden import CYCLES, copied

PAGE: Final = (source.ROOT / "docs" / "stability.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({"commands": ["run"]}, ["commands: view is gone"]),
        ({"commands": ["run", "view", "x"]}, []),
        ({}, ["commands: run is gone", "commands: view is gone"]),
    ],
)
def test_promised_name_that_is_gone_is_named(now: dict[str, list[str]], said: list[str]) -> None:
    assert promised.broken({"commands": ["run", "view"]}, now) == said


def test_page_tells_the_newest_versions_of_journals() -> None:
    told = dict(re.findall(r"^\| (schema|record|digest|rules) \| (\d+) \|", PAGE, re.MULTILINE))
    newest = max(wire.version for wire in WIRE.values())
    expected = {"schema": len(MIGRATIONS), "record": newest, "digest": digest.VERSION, "rules": rules.VERSION}
    assert told == {name: str(number) for name, number in expected.items()}


def test_earlier_codes_are_read_as_the_new_ones() -> None:
    assert {old: WaitCode(old) for old in ALIASES} == ALIASES
    assert not ALIASES.keys() & {each.value for each in WaitCode}


@pytest.mark.anyio
async def test_golden_journals_have_every_version(tmp_path: Path) -> None:
    """A raised version needs a journal that the version before it wrote, and then one of its own."""
    found: set[str] = set()
    for name in CYCLES:
        path = copied(name, tmp_path)
        with closing(sqlite3.connect(path)) as database:
            found.add(f"schema/{database.execute('PRAGMA user_version').fetchone()[0]}")
        async with await SqliteJournal.open(copied(name, tmp_path), read_only=True) as journal:
            for stored in await journal.read():
                if stored.kind == CYCLE:
                    cycle = codec.decode(stored.payload, CycleRecord)
                    found |= {f"digest/{cycle.digest_version}", f"rules/{cycle.rules}"}
    assert sorted(found) == promised.current()["versions in journals"]
