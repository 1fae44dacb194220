"""A plugin that hangs: it is named, and the process ends with its journal whole."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pumice.core.plugins.failures import PluginFailures, PluginQuestion
from pumice.plugins.watchdog import HUNG, watched

HANGS = """
import time

class Hangs:
    name = "hangs"

    def on_session_open(self, session):
        while True:
            time.sleep(0.01)

    def on_session_close(self, session): ...

PLUGINS = {"hangs": lambda arguments: Hangs()}
"""
CONF = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: hangs
  - name: gang
  - name: predicates
  - name: proportion
"""
RUN = """
import sys
import pumice.plugins.watchdog as watchdog
watchdog.watched.__wrapped__.__defaults__ = (1.0, *watchdog.watched.__wrapped__.__defaults__[1:])
from pumice.cli import main
sys.argv = ["pumice", *sys.argv[1:]]
main()
"""


def test_one_that_takes_too_long_is_named(caplog: pytest.LogCaptureFixture) -> None:
    asked, ended = PluginQuestion(), threading.Event()
    plugin = PluginFailures("slow", {}, asked=asked)
    with watched(asked, 0.2, ended.set):
        assert plugin.attempt("score", lambda: ended.wait(10), lambda _: False)
    (record,) = caplog.records
    assert record.getMessage().startswith("plugin slow hangs in score: no answer for 0 s. The process ends")


def test_many_short_answers_are_no_long_one(caplog: pytest.LogCaptureFixture) -> None:
    asked, ended = PluginQuestion(), threading.Event()
    plugin = PluginFailures("busy", {}, asked=asked)
    with watched(asked, 0.3, ended.set):
        for _ in range(20):
            plugin.attempt("score", lambda: ended.wait(0.03), lambda _: False)
    assert not ended.is_set()
    assert not caplog.records


def test_the_time_for_which_the_process_was_stopped_is_nobodys(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped_s = 0.0
    monkeypatch.setattr("pumice.plugins.watchdog.monotonic", lambda: time.monotonic() + stopped_s)
    asked, ended = PluginQuestion(), threading.Event()
    plugin = PluginFailures("stopped", {}, asked=asked)

    def answer() -> bool:
        nonlocal stopped_s
        time.sleep(0.15)
        stopped_s = 300.0
        return ended.wait(0.3)

    with watched(asked, 0.8, ended.set):
        assert plugin.attempt("score", answer, lambda _: True) is False
    assert not caplog.records


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_the_process_ends_with_the_journal_whole(tmp_path: Path, backend: str) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "hangs.py").write_text(HANGS)
    (tmp_path / "c.conf").write_text(CONF)
    (tmp_path / "run.py").write_text(RUN)
    command = [sys.executable, "run.py", "run", "--plugins-dir", "plugins", "--config", "c.conf", "--db", "p.db"]
    done = _ended([*command, "--backend", backend], tmp_path)
    assert done.returncode == HUNG, done.stderr
    assert "plugin hangs hangs in on_session_open" in done.stderr
    assert "hangs.py" in done.stderr  # where it stands
    check = _ended([sys.executable, "-m", "pumice", "journal", "p.db", "--check", "-o", "json"], tmp_path)
    assert check.returncode == 0, check.stderr


def _ended(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True, timeout=60)
