"""Every journal there is, for the tests of what they all guarantee."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pumice.storage.memory import MemoryJournal
from pumice.storage.sqlite import SqliteJournal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from pumice.storage.journal import Journal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a journal may be made."""
    return tmp_path / "pumice.db"


@pytest.fixture
async def opened(anyio_backend: str, path: Path) -> AsyncGenerator[SqliteJournal]:
    """A journal in a file, open."""
    async with await SqliteJournal.open(path) as journal:
        yield journal


@pytest.fixture(params=["memory", "sqlite"])
async def journal(request: pytest.FixtureRequest, anyio_backend: str, path: Path) -> AsyncGenerator[Journal]:
    """Any journal."""
    journal: Journal = MemoryJournal() if request.param == "memory" else await SqliteJournal.open(path)
    yield journal
    await journal.close()
