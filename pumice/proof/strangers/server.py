# SPDX-License-Identifier: Apache-2.0
"""The served cluster of a storm: `pumice run --http` without a scheduler, in a process that ends with this one.

The process is forked from one that has everything imported: a seed then costs a tenth of a second, not three.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
import time
from collections.abc import Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from threading import Thread
from typing import Final

import httpx

from pumice.config.errors import WorldError
from pumice.proof.strangers.judges.evictions import DRIVER
from pumice.runtime.serving import kubeconfig_of, write

START_S: Final = 60.0
STOP_S: Final = 20.0
LOOK_S: Final = 0.02
READY: Final = 200
TAIL: Final = 2000
"""Letters of a log that an error shows."""
IMPORTED: Final = ("pumice.cli.run", "pumice.runtime.main_job", "pumice.actors.gateway.gateway")


class ServerFailedError(WorldError):
    """The served cluster did not start, or ended by itself."""


class StormServer:
    """A served cluster on a free port. All its files are in `folder`: the journal, the log, the kubeconfig."""

    def __init__(self, folder: Path, flags: Sequence[str] = ()) -> None:
        self.folder = folder
        self.db = folder / "storm.db"
        self.kubeconfig = folder / "kubeconfig"
        self._port = free_port()
        self._flags = tuple(flags)
        self._process: ForkServerProcess | None = None
        write(kubeconfig_of(self.url), self.kubeconfig)

    @property
    def url(self) -> str:
        """Return the URL of the API."""
        return f"http://127.0.0.1:{self._port}"

    def client(self) -> httpx.Client:
        """Return an HTTP client whose requests no fault strikes."""
        return httpx.Client(base_url=self.url, headers={"user-agent": DRIVER}, timeout=30.0, trust_env=False)

    def start(self) -> None:
        """Start the process, and return when it is ready. Raises ServerFailedError."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(IMPORTED))
        words = ["run", "--http", f"127.0.0.1:{self._port}", "--db", str(self.db), "--no-scheduler", *self._flags]
        self._process = context.Process(target=_serve, args=(words, str(self.folder / "server.log")), daemon=True)
        self._process.start()
        deadline = time.monotonic() + START_S
        with self.client() as client:
            while not _is_ready(client):
                if not self._process.is_alive() or time.monotonic() > deadline:
                    raise ServerFailedError(f"the served cluster did not start: {self.log()}")
                time.sleep(LOOK_S)

    def stop(self) -> None:
        """Stop the process in order; one that does not stop in time is killed."""
        if self._process is None:
            return
        process, self._process = self._process, None
        process.terminate()
        process.join(STOP_S)
        if process.is_alive():
            process.kill()
            process.join()
        process.close()

    def log(self) -> str:
        """Return the end of what the server said."""
        try:
            return (self.folder / "server.log").read_text("utf-8", "replace")[-TAIL:].strip()
        except OSError:
            return "it said nothing"


def free_port() -> int:
    """Return a port on which no process listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").status_code == READY
    except httpx.TransportError:
        return False


def _serve(words: list[str], log: str) -> None:
    """Be `pumice` with these words, and write to the log."""
    from pumice.cli import main  # noqa: PLC0415 (the command line imports this folder)

    Thread(target=_end_with_parent, daemon=True).start()
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(written, stream)
    sys.argv = ["pumice", *words]
    main()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
