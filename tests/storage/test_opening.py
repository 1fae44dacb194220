"""How a journal is opened where nothing may be written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pumice.storage.sqlite import frames
from pumice.storage.sqlite.frames import TRIES, lost_commits
from pumice.storage.sqlite.opening import uri


@pytest.fixture
def sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journal in a folder in which nothing may be made (which a test as root could not have otherwise)."""

    def access(path: Any, mode: int) -> bool:
        return not (Path(path) == tmp_path and mode == os.W_OK)

    monkeypatch.setattr(os, "access", access)
    return tmp_path / "journal.db"


def test_a_journal_in_a_sealed_folder_is_read_as_it_is(sealed: Path) -> None:
    assert uri(sealed, read_only=True).endswith("?mode=ro&immutable=1")


def test_not_when_a_log_is_waiting_to_be_read(sealed: Path) -> None:
    sealed.with_name("journal.db-wal").touch()
    assert uri(sealed, read_only=True).endswith("?mode=ro")


def test_elsewhere_somebody_may_be_writing(tmp_path: Path) -> None:
    assert uri(tmp_path / "journal.db", read_only=True).endswith("?mode=ro")
    assert uri(tmp_path / "journal.db", read_only=False).endswith("?mode=rw")


@pytest.mark.parametrize("unfinished", range(TRIES + 1))
def test_what_looks_lost_while_somebody_writes_is_looked_at_so_often(
    unfinished: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what looks lost every time is."""
    answers = iter([2] * unfinished + [0])

    def looked(log: Path) -> int:
        return next(answers)

    monkeypatch.setattr(frames, "_lost_commits", looked)
    assert lost_commits(Path("journal.db")) == (2 if unfinished == TRIES else 0)
