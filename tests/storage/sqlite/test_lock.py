"""The lock: one holder, and none once it is dead."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pumice.storage.sqlite import lock
from pumice.storage.sqlite.lock import FileLock

HOLD = """
import sys, time
from pathlib import Path
from pumice.storage.sqlite.lock import FileLock
lock = FileLock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""
ROOT = Path(__file__).parents[3]


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first = FileLock(path)
    with pytest.raises(BlockingIOError, match=str(os.getpid())):
        FileLock(path)
    first.release()
    first.release()
    assert not path.exists()
    second = FileLock(path)
    second.release()


def test_a_lock_file_left_behind_is_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_text("99999999\n")
    FileLock(path).release()


def test_a_file_that_its_holder_removes_meanwhile_is_not_what_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between our opening it and our locking it: whoever comes next would find another file there, and no lock."""
    path = tmp_path / "lock"
    seize, removed = lock._seize_or_say_who, list[Path]()  # pyright: ignore[reportPrivateUsage]

    def after_it_was_removed(handle: int) -> None:
        if not removed:
            path.unlink()
            removed.append(path)
        seize(handle)

    monkeypatch.setattr(lock, "_seize_or_say_who", after_it_was_removed)
    held = FileLock(path)
    assert removed
    with pytest.raises(BlockingIOError):
        FileLock(path)
    held.release()


def test_a_file_that_somebody_removes_while_it_is_let_go_is_let_go_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    held, same = FileLock(path), os.path.samestat

    def before_it_is_removed(ours: os.stat_result, found: os.stat_result) -> bool:
        path.unlink()
        return same(ours, found)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(os.path, "samestat", before_it_is_removed)
        held.release()
    FileLock(path).release()


def test_it_goes_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, path], cwd=ROOT, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(BlockingIOError, match=f"process {holder.pid}"):
            FileLock(path)
        holder.kill()
        holder.wait()
    FileLock(path).release()
