"""What `pumice view` refuses, and what it serves."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import httpx
import pytest
import yaml

from tests.kit.jobs import gang
from tests.kit.nodes import nodes
from tests.pumice.cli.terminal import pumice


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    (folder / "c.yaml").write_text(yaml.safe_dump_all([*nodes(2), *gang("a", pods=2)]))
    run = ("run", "-f", folder / "c.yaml", "--db", folder / "j.db", "--time", "virtual", "--until", "20s")
    assert pumice(*run).code == 0
    return folder / "j.db"


def test_what_it_refuses(db: Path, tmp_path: Path) -> None:
    said = pumice("view", db, "--http", "0.0.0.0:0")
    assert (said.code, "--http: a journal is shown to its own machine only" in said.err) == (2, True)
    assert pumice("view", db, "--http", "127.0.0.1:99999").code == 2
    assert pumice("view", tmp_path / "nothing.db").code == 2


@pytest.mark.slow
def test_a_damaged_journal_is_named_on_the_page_and_on_stderr(db: Path, tmp_path: Path) -> None:
    copy = tmp_path / "bad.db"
    shutil.copy(db, copy)
    with closing(sqlite3.connect(copy)) as connection:
        connection.execute("UPDATE journal SET at = at + 1 WHERE sequence = 5")
        connection.commit()
    command = [sys.executable, "-m", "pumice", "view", str(copy), "-o", "table"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split(" on ")[1].strip()
            with httpx.Client(base_url=url, trust_env=False, timeout=60) as web:
                bad = "record 5 is bad (changed: it does not match its hash)"
                assert web.get("/page/damage").json() == {"damage": bad}
                assert web.get("/apis/pumice.dev/v1/courses").json()["cycles"]
        finally:
            process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert f"the journal is damaged: {bad}" in said


@pytest.mark.slow
def test_it_serves_the_page_until_it_is_told_to_stop(db: Path) -> None:
    command = [sys.executable, "-m", "pumice", "view", str(db), "-o", "table"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split(" on ")[1].strip()
            with httpx.Client(base_url=url, trust_env=False, timeout=60) as web:
                assert web.get("/", headers={"accept": "text/html"}).text.startswith("<!doctype html>")
                assert web.get("/page/damage").json() == {"damage": ""}
                assert web.get("/page/mode").json() == {"live": False, "token": False, "file": "j.db"}
                assert web.get("/apis/pumice.dev/v1/boards/newest").json()["nodes"] == ["n0", "n1"]
                assert web.get("/api/v1/pods").status_code == 404
                assert web.post("/apis/pumice.dev/v1/whatifs", json={}).status_code == 405
                assert web.get("/page/mode", headers={"host": "evil.example"}).status_code == 403
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
