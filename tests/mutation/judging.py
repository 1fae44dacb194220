"""A plugin of pytest that tries mutants instead of running the tests once: each in a fork of the collected session."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

import msgspec
import pytest

from tests.mutation.exchange import exchange
from tests.mutation.mutants import Mutant
from tests.mutation.reach import Reach
from tests.mutation.results import Row, Verdict, name_of
from tests.mutation.watch import End, Watched

FRESH_TESTS: Final = 120
"""Tests for a mutant of what runs at import, whose process has to collect them anew: the nearest ones."""
NOWHERE: Final = 3
"""How a fork ends that has no function to be changed."""


class Trial(msgspec.Struct):
    """What a process of its own is asked to try; `pipe` is the descriptor to name tests in."""

    mutant: Mutant
    tests: list[str]
    pipe: int


@dataclass(slots=True, eq=False)
class Judge:
    """Tries mutants in order and reports a row for each."""

    reach: Reach
    mutants: Iterable[tuple[str, Mutant]]
    report: Callable[[Row], None]
    budget_s: float

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        gc.freeze()
        for folder, mutant in self.mutants:
            self.report(self._judged(session, items, folder, mutant))
        return True

    def _judged(self, session: pytest.Session, items: dict[str, pytest.Item], folder: str, mutant: Mutant) -> Row:
        """In a fork where there is a function to be changed; what also runs at import, and survives that, anew."""
        lines = range(mutant.line, mutant.line + mutant.before.count("\n") + 1)
        row = Row(mutant.key, folder, f"{name_of(mutant)} @{mutant.line}", "unreached")
        names = self._tests(items, mutant.path, lines)
        if mutant.function and names:
            end = self._forked(session, [items[name] for name in names], mutant)
            if end.code != NOWHERE:
                row = _row(folder, mutant, end, len(names))
                if row.verdict == "killed" or not self.reach.at_import(mutant.path, lines):
                    return row
        everywhere = range(1, Path(mutant.path).read_text("utf-8").count("\n") + 2)
        near = self._tests(items, mutant.path, everywhere)[:FRESH_TESTS]
        return _row(folder, mutant, self._fresh(near, mutant), len(near)) if near else row

    def _tests(self, items: dict[str, pytest.Item], path: str, lines: range) -> list[str]:
        return [name for name in self.reach.tests_of(path, lines) if name in items]

    def _forked(self, session: pytest.Session, items: Sequence[pytest.Item], mutant: Mutant) -> End:
        ours, theirs = os.pipe()
        process = os.fork()
        if not process:
            os.close(ours)
            _try_in_child(session, items, mutant, theirs)
        os.close(theirs)
        return Watched(process, ours, self.reach.took_s, self.budget_s).wait()

    def _fresh(self, names: Sequence[str], mutant: Mutant) -> End:
        ours, theirs = os.pipe()
        text = msgspec.json.encode(Trial(mutant, list(names), theirs)).decode()
        command = (sys.executable, "-m", "tests.mutation.fresh")
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(theirs,), process_group=0, text=True,
        ) as process:  # fmt: skip
            os.close(theirs)
            assert process.stdin is not None
            process.stdin.write(text)
            process.stdin.close()
            end = Watched(process.pid, ours, self.reach.took_s, self.budget_s).wait()
            process.returncode = end.code  # it was waited for already
            return end


class Naming:
    """A plugin that names each test in a pipe as it begins, and ends the process at the first failure."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        os.write(self.pipe, f"{nodeid}\n".encode())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os._exit(1)


def _try_in_child(session: pytest.Session, items: Sequence[pytest.Item], mutant: Mutant, pipe: int) -> NoReturn:
    """Run the tests with the mutant in place; never returns."""
    try:
        os.setpgid(0, 0)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        if not exchange(mutant):
            os._exit(NOWHERE)
        session.config.pluginmanager.register(Naming(pipe))
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
        os._exit(0)
    finally:
        os._exit(2)


def _row(folder: str, mutant: Mutant, end: End, reaching: int) -> Row:
    verdict: Verdict = "survived" if end.why == "out of time" or (not end.why and end.code == 0) else "killed"
    by = end.tests[-1] if verdict == "killed" and end.tests else ""
    if verdict == "killed" and (end.why or end.code != 1):
        by = f"{by} ({end.why or f'ended with {end.code}'})"
    name = f"{name_of(mutant)} @{mutant.line}"
    return Row(mutant.key, folder, name, verdict, by, reaching, len(end.tests), round(end.took_s, 2))
