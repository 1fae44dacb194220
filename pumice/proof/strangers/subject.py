# SPDX-License-Identifier: Apache-2.0
"""A subject: a foreign program, in a process group that ends with this process, with KUBECONFIG set."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from shutil import which
from threading import Thread
from typing import Final

from pumice.config.errors import ConfigError, WorldError
from pumice.proof.strangers.server import free_port

LINES: Final = 200
"""Lines of its output that are kept: a subject may print for ever."""
LONGEST: Final = 2000
SHOWN: Final = 12
GRACE_S: Final = 1.0
"""For a subject that is ordered to stop."""
KUBECONFIG: Final = "{kubeconfig}"
PORT: Final = "{port}"
WATCHER: Final = ("/bin/sh", "-c", "trap '' HUP INT TERM; read -r _; kill -s KILL 0")
"""Leader of a subject's process group. Its standard input ends when this process does, by kill -9 too; then it kills
the group. Linux alone has a death signal for children, and none for theirs.
"""
MOMENT: Final = "moment"
DONE: Final = "done"


class SubjectError(WorldError):
    """A subject ended by itself, or does not answer."""


def words_of(command: str) -> list[str]:
    """Return the words of a subject's command. Raises ConfigError for one that cannot be started."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConfigError(f"{command!r} is not a command: {error}", path="--subject") from error
    if not words:
        raise ConfigError("expected a command, found nothing", path="--subject")
    if which(words[0]) is None:
        raise ConfigError(f"no program {words[0]!r} that can be started: give its path", path="--subject")
    return words


class Subject:
    """A running program. `restarts`: seconds that each restart took."""

    def __init__(self, words: list[str], kubeconfig: Path, folder: Path) -> None:
        self.name = Path(words[0]).name
        self.restarts: list[float] = []
        self._words = words
        self._kubeconfig = kubeconfig
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None
        self._said: deque[str] = deque(maxlen=LINES)
        self._answers: SimpleQueue[str] = SimpleQueue()
        self._reader: Thread | None = None

    def start(self) -> None:
        """Start it: in its words {kubeconfig} and {port} become a path and a free port. Raises SubjectError."""
        here = {KUBECONFIG: str(self._kubeconfig), PORT: str(free_port())}
        words = [_filled(each, here) for each in self._words]
        self._watcher = subprocess.Popen(WATCHER, stdin=subprocess.PIPE, process_group=0)  # nosec B603
        try:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env={**os.environ, "KUBECONFIG": str(self._kubeconfig)},
                process_group=self._watcher.pid,
            )
        except OSError as error:
            self._end(signal.SIGKILL)
            raise SubjectError(f"{self.name} cannot be started: {error.strerror}") from error
        self._reader = Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()

    def demand_alive(self) -> None:
        """Return when it runs. Raises SubjectError with its last words."""
        if self._process is None or self._process.poll() is None:
            return
        code = self._process.returncode
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        if self._reader is not None:
            self._reader.join(GRACE_S)
        raise SubjectError(f"{self.name} {how}; {self.last_words()}")

    def tell(self, moment: int, patience_s: float) -> None:
        """Tell it a moment, and return when it has done what it does then. Raises SubjectError."""
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(f"{MOMENT} {moment}\n".encode())
            self._process.stdin.flush()
        deadline = time.monotonic() + patience_s
        while (left := deadline - time.monotonic()) > 0:
            with suppress(Empty):
                if self._answers.get(timeout=min(left, 0.5)) == f"{DONE} {moment}":
                    return
            self.demand_alive()
        words = f"{self.name} did not print {f'{DONE} {moment}'!r} within {patience_s:g} s; {self.last_words()}"
        raise SubjectError(words)

    def restart(self) -> None:
        """Kill it, and start it anew. Raises SubjectError."""
        began = time.monotonic()
        self._end(signal.SIGKILL)
        self.start()
        self.restarts.append(time.monotonic() - began)

    def stop(self) -> None:
        """End it and everything that it has started."""
        self._end(signal.SIGTERM)

    def last_words(self) -> str:
        """Return the end of its output."""
        said = "\n".join(f"    {line}" for line in [*self._said][-SHOWN:])
        return f"it printed last:\n{said}" if said else "it printed nothing"

    def _end(self, number: signal.Signals) -> None:
        process, watcher = self._process, self._watcher
        self._process = self._watcher = None
        if watcher is None:
            return
        _signal(watcher.pid, number)
        if process is not None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_S)
        _signal(watcher.pid, signal.SIGKILL)  # what it has started may live on, in the same group
        for each in filter(None, (process, watcher)):
            each.wait()
            for stream in filter(None, (each.stdin, each.stdout)):
                with suppress(OSError):
                    stream.close()

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        with suppress(ValueError, OSError):  # closed meanwhile
            while line := process.stdout.readline(LONGEST):
                text = line.decode("utf-8", "replace").rstrip()
                if text.startswith(f"{DONE} "):
                    self._answers.put(text)
                else:
                    self._said.append(text)


def _filled(word: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(name, value)
    return word


def _signal(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
