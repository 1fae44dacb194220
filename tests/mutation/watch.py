"""Watching a process that tries one mutant: how far it is, and whether it hangs.

Time is the process's own (CPU), so that a busy machine kills no mutant; one that waits for something that never
comes is known by doing nothing at all for a while.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

TICK_S: Final = 0.25
SLACK_S: Final = 5.0
"""What a test may take beyond ten times its usual time."""
IDLE_S: Final = 20.0
CLOCK_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class End:
    """`code` as of `os.waitstatus_to_exitcode`; `why` it was ended by us, if it was; `tests` that were begun."""

    code: int
    why: str
    tests: list[str]
    took_s: float


@dataclass(slots=True)
class Watched:
    """A child and the pipe in which it names each test that it begins."""

    process: int
    pipe: int
    usual_s: Mapping[str, float]
    budget_s: float
    tests: list[str] = field(default_factory=list[str])
    began_s: float = 0.0
    used_s: float = 0.0
    moved: float = field(default_factory=time.monotonic)
    _cut: bytes = b""

    def wait(self) -> End:
        """Until it has ended, or was ended for having used its time."""
        why = ""
        while not why and self._hear():
            why = self._overdue()
        if why:
            os.killpg(self.process, signal.SIGKILL)
        os.close(self.pipe)
        _, status = os.waitpid(self.process, 0)
        return End(os.waitstatus_to_exitcode(status), why, self.tests, self.used_s)

    def _hear(self) -> bool:
        """Take what it has said in a tick; False when it has closed the pipe."""
        ready, _, _ = select.select([self.pipe], [], [], TICK_S)
        used = cpu_s(self.process)
        if used > self.used_s or _runnable(self.process):
            self.moved = time.monotonic()
        self.used_s = max(self.used_s, used)
        if not ready:
            return True
        said = os.read(self.pipe, 65536)
        *lines, self._cut = (self._cut + said).split(b"\n")
        self.tests += [line.decode() for line in lines]
        if lines:
            self.began_s, self.moved = self.used_s, time.monotonic()
        return bool(said)

    def _overdue(self) -> str:
        usual = self.usual_s.get(self.tests[-1], 1.0) if self.tests else 10.0
        if self.used_s - self.began_s > 10 * usual + SLACK_S:
            return "hangs"
        if time.monotonic() - self.moved > IDLE_S + 10 * usual:
            return "waits for ever"
        return "out of time" if self.used_s > self.budget_s else ""


def cpu_s(process: int) -> float:
    """Seconds of CPU that a process has used, those of its ended children included; 0.0 if it is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text("ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / CLOCK_TICKS


def _runnable(process: int) -> bool:
    """Does one of its threads want to run?"""
    try:
        return any(
            (task / "stat").read_text("ascii").rpartition(")")[2].split()[0] == "R"
            for task in Path(f"/proc/{process}/task").iterdir()
        )
    except OSError:
        return False
