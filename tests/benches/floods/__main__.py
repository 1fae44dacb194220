"""`python -m tests.benches.floods`: each flood against one server, and what it did to it. Exits 1 beyond a bound."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.benches.floods.floods import FLOODS, prepare, send
from tests.benches.soak.plan import SoakPlan
from tests.benches.soak.reading import file_mb, read_process
from tests.benches.soak.soaking import serving

MOST_GROWTH: Final = 1.5
MOST_PROBE_S: Final = 1.0
MOST_LOG_KB: Final = 20.0
RETURN_S: Final = 60.0
HELD_S: Final = 5.0
"""So long a flood holds what it has opened."""
SLACK: Final = 1.1
"""Memory has returned when it is at most so many times what it was."""


@dataclass(frozen=True, slots=True)
class FloodFound:
    """One flood: memory before, at most and a minute after (MB), the slowest probe, what was logged."""

    name: str
    before_mb: float
    most_mb: float
    after_mb: float
    livez_s: float
    log_kb: float
    returned_s: float
    took_s: float

    @property
    def wrong(self) -> list[str]:
        """Return the bounds that were not kept."""
        kept = {
            f"memory grew {self.most_mb / self.before_mb:.2f} ×": self.most_mb <= MOST_GROWTH * self.before_mb,
            f"memory did not return within {RETURN_S:.0f} s": self.returned_s <= RETURN_S,
            f"/livez took {self.livez_s:.2f} s": self.livez_s <= MOST_PROBE_S,
            f"{self.log_kb:.0f} KB were logged": self.log_kb <= MOST_LOG_KB,
        }
        return [words for words, good in kept.items() if not good]

    def told(self) -> str:
        """Return a line about it."""
        memory = f"{self.before_mb:>7.0f} MB, at most {self.most_mb:.0f} ({self.most_mb / self.before_mb:.2f} ×)"
        after = f"{self.after_mb:.0f} after {self.returned_s:.0f} s"
        rest = f"/livez {self.livez_s:.2f} s; log {self.log_kb:.1f} KB; it took {self.took_s:.0f} s"
        return (
            f"{self.name:<10}{memory}, then {after}; {rest}{'  WRONG: ' if self.wrong else ''}{'; '.join(self.wrong)}\n"
        )


class MemoryWatch:
    """The most memory that a process had, looked at ten times a second in a thread."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.most = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._stop.wait(0.1):
            self.most = max(self.most, read_process(self._pid).rss_mb)


def flood(name: str, pid: int, port: int, log: Path) -> FloodFound:
    """Run one flood against a server."""
    before, logged = read_process(pid).rss_mb, file_mb(log)
    began = time.monotonic()
    with MemoryWatch(pid) as memory, _child("probe", port) as probe, _child(name, port) as flooding:
        assert flooding.stdout is not None
        flooding.stdout.readline()
        time.sleep(HELD_S)
        flooding.communicate(timeout=300)
        took = time.monotonic() - began
        probed = json.loads(probe.communicate(timeout=120)[0])
    ended, after = time.monotonic(), read_process(pid).rss_mb
    while after > SLACK * before and time.monotonic() - ended < RETURN_S:
        time.sleep(1.0)
        after = read_process(pid).rss_mb
    returned = time.monotonic() - ended if after <= SLACK * before else float("inf")
    logged = (file_mb(log) - logged) * 1e3
    return FloodFound(name, before, memory.most, after, probed["slowest_s"], logged, returned, took)


@contextmanager
def _child(what: str, port: int) -> Generator[subprocess.Popen[str]]:
    line = [sys.executable, "-m", "tests.benches.floods.floods", what, str(port)]
    pipe = subprocess.PIPE
    with subprocess.Popen(line, stdin=pipe, stdout=pipe, text=True) as child:
        try:
            yield child
        finally:
            child.kill()


def main(arguments: Sequence[str] | None = None) -> int:
    """0: all bounds were kept, 1: not."""
    parser = argparse.ArgumentParser(prog="python -m tests.benches.floods", description=__doc__)
    parser.add_argument("floods", nargs="*", choices=[*FLOODS, []], help="all of them unless given")
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--rest-s", type=float, default=20.0, help="seconds before each flood")
    asked = parser.parse_args(arguments)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        plan = SoakPlan(nodes=asked.nodes, namespaces=1)
        with serving(plan, Path(folder)) as server:
            _until_loaded(server.port)
            prepare(server.port)
            for name in asked.floods or FLOODS:
                time.sleep(asked.rest_s)
                found = flood(name, server.process.pid, server.port, server.log)
                bad += bool(found.wrong)
                sys.stdout.write(found.told())
                sys.stdout.flush()
            server.process.send_signal(signal.SIGINT)
            server.process.wait(60)
            text = server.log.read_text("utf-8", "replace")
    if "Traceback" in text:
        sys.stdout.write(f"a traceback was logged:\n{text[-3000:]}\n")
        bad += 1
    return int(bad > 0)


def _until_loaded(port: int) -> None:
    deadline = time.monotonic() + 180
    while send(port, "GET", "/readyz") != 200 and time.monotonic() < deadline:
        time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main())
