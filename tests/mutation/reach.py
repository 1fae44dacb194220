"""Which tests reach which lines, and how long each takes: a plugin of pytest that records it, and what was recorded.

`pytest -p tests.mutation.reach` writes to the folder that PUMICE_MUTATION names. Lines that run when a module is
imported belong to no test. What only runs in processes of its own is not seen.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from coverage import Coverage, CoverageData

FOLDER: Final = "PUMICE_MUTATION"
ALL_FOLDERS: Final = (
    "core/session", "core/actions", "core/plugins", "core/state", "actors/scheduling", "actors/effects", "storage",
)  # fmt: skip


@dataclass(slots=True, eq=False)
class Recorder:
    """Follows a run of tests; only those that passed are kept."""

    into: Path
    took_s: dict[str, float] = field(default_factory=dict[str, float])
    failed: set[str] = field(default_factory=set[str])
    coverage: Coverage | None = None

    def start(self) -> None:
        sources = [f"{Path.cwd() / folder}" for folder in ALL_FOLDERS]
        self.coverage = Coverage(data_file=str(self.into / "lines.db"), source=sources, branch=False, config_file=False)
        self.coverage.load()  # tests recorded before are kept
        self.coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        assert self.coverage is not None
        self.coverage.switch_context(item.nodeid)
        began = time.process_time()
        try:
            return (yield)
        finally:
            self.took_s[item.nodeid] = time.process_time() - began
            self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        assert self.coverage is not None
        self.coverage.stop()
        self.coverage.save()
        took_s = {name: took for name, took in self.took_s.items() if name not in self.failed}
        file = self.into / "tests.json"
        if file.exists():
            took_s = json.loads(file.read_text("utf-8")) | took_s
        file.write_text(json.dumps(took_s, indent=0), "utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Record if a place for it was named, and nothing otherwise."""
    if os.environ.get(FOLDER) and not config.option.collectonly:
        recorder = Recorder(Path(os.environ[FOLDER]))
        recorder.start()
        config.pluginmanager.register(recorder)


class Reach:
    """What was recorded: tests by line."""

    def __init__(self, folder: Path) -> None:
        self.took_s: dict[str, float] = json.loads((folder / "tests.json").read_text("utf-8"))
        self._data = CoverageData(str(folder / "lines.db"))
        self._data.read()
        self._lines = cache(self._lines_of)

    def _lines_of(self, path: str) -> dict[int, list[str]]:
        return self._data.contexts_by_lineno(str(Path.cwd() / path))

    def tests_of(self, path: str, lines: Iterable[int]) -> list[str]:
        """Tests that run one of the lines, and can be had: nearest to the file first, quick ones before slow ones."""
        by_line = self._lines(path)
        named = {test for line in lines for test in by_line.get(line, ()) if test in self.took_s}
        return sorted(named, key=lambda test: (_distance(path, test), self.took_s[test], test))

    def at_import(self, path: str, lines: Iterable[int]) -> bool:
        """Does one of the lines run while modules are imported?"""
        by_line = self._lines(path)
        return any("" in by_line.get(line, ()) for line in lines)


def _distance(path: str, test: str) -> int:
    """How many folders of the path the test's own path does not follow."""
    folders, mirrored = Path(path).with_suffix("").parts, Path(test.partition("::")[0]).parts[1:]
    same = next(
        (n for n, (one, other) in enumerate(zip(folders, mirrored, strict=False)) if one != other), len(mirrored)
    )
    named = mirrored[-1:] == (f"test_{folders[-1]}.py",)
    return len(folders) - same - named
