"""`pumice run --http` in a process of its own, for tests that come as clients do: over the network."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx

from tests.kit.roles import ALL, TOKEN, Roles, bearer

START_S: Final = 60.0
STOP_S: Final = 30.0
PASSIVE: Final = ("--no-scheduler", "--no-controllers")
"""Only the api and the node agents: nobody answers a request but the server."""
ENFORCED: Final = os.environ.get("PUMICE_TEST_AUTHORIZATION") == "rbac"
"""Whether servers enforce roles, unless a test says: `nox -s roles` has them do so."""


class Served:
    """A server: where it is, and what its process and its files are. `roles`: which it enforces."""

    def __init__(self, folder: Path, flags: tuple[str, ...], port: int, roles: Roles | None = None) -> None:
        self.folder = folder
        self.port = port
        self.roles = roles
        self._flags = (*flags, *(roles.flags() if roles else ()))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return self.url_at(self.port)

    def url_at(self, port: int) -> str:
        """Return the address behind another port, such as the port of a wire that breaks."""
        return f"{'https' if self.roles else 'http'}://127.0.0.1:{port}"

    @property
    def pid(self) -> int:
        """Its process's number."""
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        """What it said on stderr so far."""
        return (self.folder / "server.log").read_text("utf-8", "replace")

    def start(self, db: str = "pumice.db") -> None:
        """Return when it is ready."""
        listen = ["--http", f"127.0.0.1:{self.port}", "--db", str(self.folder / db)]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pumice", "run", *listen, *self._flags], stdout=subprocess.DEVNULL, stderr=log
            )
        self._wait_ready(self._process)
        if self.roles:
            self.roles.bind(self.url)

    def stop(self) -> None:
        """As Ctrl-C would. It must stop cleanly, in time, and not have ended by itself."""
        if self._process is None:
            return
        process, self._process = self._process, None
        ended = process.poll()
        process.send_signal(signal.SIGINT)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        assert ended is None, f"the server ended by itself:\n{self.log}"
        assert "Traceback" not in self.log, self.log
        assert "bug in Pumice" not in self.log, self.log

    def kill(self) -> None:
        """As when the power goes."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def kubeconfig(self, port: int | None = None) -> Path:
        """A kubeconfig for it, or for who comes through another port."""
        path, url = self.folder / "kubeconfig", self.url_at(port or self.port)
        if self.roles:
            self.roles.write_kubeconfig(url, path)
        else:
            path.write_text(
                "apiVersion: v1\nkind: Config\ncurrent-context: pumice\n"
                f"clusters: [{{name: pumice, cluster: {{server: '{url}'}}}}]\n"
                "users: [{name: pumice, user: {}}]\n"
                "contexts: [{name: pumice, context: {cluster: pumice, user: pumice}}]\n",
                "utf-8",
            )
        return path

    def environment(self) -> dict[str, str]:
        """For a client's process: KUBECONFIG, and a HOME of its own (kubectl caches discovery there)."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        return {**kept, "HOME": str(self.folder), "KUBECONFIG": str(self.kubeconfig())}

    def options(self, port: int | None = None) -> Any:
        """Of an httpx client, asynchronous or not."""
        common = {"base_url": self.url_at(port or self.port), "trust_env": False}
        return {**common, "verify": self.roles.trusted, "headers": bearer(TOKEN)} if self.roles else common

    def client(self, port: int | None = None, timeout: float = 30.0) -> httpx.Client:
        """To be closed by whoever asks for it."""
        return httpx.Client(**self.options(port), timeout=timeout)

    def _wait_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            assert process.poll() is None, f"the server ended with {process.returncode}:\n{self.log}"
            try:
                with self.client(timeout=5.0) as client:
                    if client.get("/readyz").status_code == 200:
                        return
            except httpx.TransportError:
                pass
            time.sleep(0.05)
        raise AssertionError(f"the server was not ready within {START_S} s:\n{self.log}")


@contextmanager
def served(folder: Path, *flags: str, roles: bool = ENFORCED, role: str = ALL) -> Generator[Served]:
    """A server, ready; stopped at the end. `role` is what its client has where it enforces roles."""
    server = Served(folder, flags, free_port(), Roles(folder, role) if roles else None)
    try:
        server.start()
        yield server
        server.stop()
    finally:
        server.kill()


def free_port() -> int:
    """A port on which nobody listens just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
