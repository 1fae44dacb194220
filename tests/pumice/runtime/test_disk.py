"""A disk that is full, or may not be written, ends the process in order and says so."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
import yaml

from pumice.storage.sqlite import SqliteJournal
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.pumice.cli.terminal import pumice

ROOT = Path(__file__).parents[3]
USAGE = 2
WORLD = 3


def run(folder: Path, limit: int | None = None) -> subprocess.CompletedProcess[str]:
    """`pumice run` in a process whose files may not grow beyond `limit` bytes."""

    def small_disk() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    command = [sys.executable, "-m", "pumice", "run", "-f", str(folder / "all.yaml"), "--db", str(folder / "j.db")]
    return subprocess.run(
        [*command, "--until", "idle", "-o", "json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=small_disk,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with manifests."""
    objects = [node("n0", cpu="64", memory="256Gi")]
    for number in range(30):
        objects += gang(f"g{number}", pods=2, cpu="100m", memory="16Mi", duration="0")
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(objects), "utf-8")
    return tmp_path


@pytest.mark.parametrize("limit", [70_000, pytest.param(150_000, marks=pytest.mark.slow)])
def test_a_disk_that_fills_up(folder: Path, limit: int) -> None:
    ended = run(folder, limit)
    assert ended.returncode == WORLD, ended.stderr
    assert "the journal cannot be written" in ended.stderr
    assert "Traceback" not in ended.stderr

    async def whole() -> bool:
        async with await SqliteJournal.open(folder / "j.db") as journal:
            return (await journal.check()).whole

    assert anyio.run(whole)
    again = run(folder)
    assert again.returncode == 0, again.stderr
    assert not (folder / "j.db-lock").exists()  # before, where there was no room to say "closed", its mark was kept
    assert pumice("replay", folder / "j.db", "--verify", "-o", "json").json["identical"]


def test_a_folder_is_no_journal_and_bad_input(folder: Path) -> None:
    (folder / "j.db").mkdir()
    ended = run(folder)
    assert ended.returncode == USAGE
    assert "this is a folder, not a journal" in ended.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_read_only_folder(folder: Path) -> None:
    folder.chmod(0o555)
    try:
        ended = run(folder)
    finally:
        folder.chmod(0o755)
    assert ended.returncode == WORLD
    assert "read-only" in ended.stderr or "permission" in ended.stderr.lower()
