"""Installs the wheel in empty environments of each Python, without a compiler, and does what a newcomer does first."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.error import URLError
from urllib.request import Request, urlopen

from pumice import __version__
from pumice.proof.bench.figures import calibrate
from tests.release.archives import BIN, ROOT, ReleaseError, run

PYTHONS: Final = ("3.11", "3.12", "3.13")
FIRST: Final = "3.11"
"""Python whose installation is timed, by pip and without a cache, as a newcomer's is."""
INSTALL_S: Final = 25.0
"""Limit of an installation's processor time, which is what it takes near its index, on a machine as fast as below."""
QUIET_S: Final = 0.1
"""The bench's calibration loop on a quiet machine of the sort that the limit was set on."""
PLACED_S: Final = 60.0
NO_COMPILER: Final = "/nonexistent-compiler"
JOBS: Final = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
PODS: Final = "/api/v1/namespaces/default/pods"
GANG: Final = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "first", "namespace": "default"},
    "spec": {
        "minAvailable": 3,
        "schedulerName": "volcano",
        "queue": "default",
        "tasks": [
            {
                "name": "worker",
                "replicas": 3,
                "template": {
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{"name": "main", "image": "busybox", "command": ["sleep", "600"]}],
                    }
                },
            }
        ],
    },
}


class Trial(NamedTuple):
    """What one environment showed: seconds of its installation, those of the processor in it, seconds from its start to
    the placed gang, and MB.
    """

    python: str
    install_s: float
    worked_s: float
    placed_s: float
    size_mb: float


def interpreter(version: str) -> str | None:
    """Return a Python of that version, from PATH or from where pyenv keeps them; None if there is none."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    kept = sorted(str(path) for path in (root / "versions").glob(f"{version}.*/bin/python{version}"))
    for python in (*kept, shutil.which(f"python{version}")):
        if python is None:
            continue
        with suppress(OSError):
            if (
                subprocess.run([python, "-c", "import venv, ssl, sqlite3"], capture_output=True, check=False).returncode
                == 0
            ):
                return python
    return None


def trial(wheel: Path, version: str, python: str, folder: Path) -> Trial:
    """Install the wheel, and run what the README begins with. Raises ReleaseError when any of it fails."""
    folder.mkdir()
    place = folder / "environment"
    environment = {
        "PATH": str(place / "bin"), "HOME": str(folder), "LANG": "C.UTF-8", "CC": NO_COMPILER, "CXX": NO_COMPILER,
        **{name: value for name, value in os.environ.items() if name.upper().startswith(("PIP_", "UV_", "SSL_"))},
        **{name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")},
    }  # fmt: skip
    began, worked = time.monotonic(), children_s()
    install(wheel, python, place, environment, by_pip=version == FIRST)
    install_s, slow = time.monotonic() - began, max(1.0, calibrate() / QUIET_S)
    worked_s = (children_s() - worked) / slow  # other work on a machine makes each instruction slower
    pumice, own = place / "bin" / "pumice", place / "bin" / "python"
    with served(pumice, folder, environment) as url:
        placed(url)
        placed_s = time.monotonic() - began
    if (told := run(pumice, "--version", cwd=folder, env=environment)) != f"pumice {__version__}\n":
        raise ReleaseError(f"`pumice --version` says {told!r}")
    run(pumice, *first_command(), cwd=folder, env=environment)
    run(own, "-c", first_program(), cwd=folder, env=environment)
    size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file() and not path.is_symlink())
    for what, took, limit in (("installation's work", worked_s, INSTALL_S), ("first gang", placed_s, PLACED_S)):
        if took > limit:
            raise ReleaseError(f"Python {version}: the {what} took {took:.0f} s, at most {limit:.0f}")
    return Trial(version, install_s, worked_s, placed_s, size / 1e6)


def children_s() -> float:
    """Return the processor time of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def install(wheel: Path, python: str, place: Path, environment: dict[str, str], *, by_pip: bool) -> None:
    """Make an environment that holds the wheel and what it needs, of wheels alone."""
    if by_pip:
        run(python, "-m", "venv", place, env=environment)
        options = ("-q", "--disable-pip-version-check", "--no-cache-dir", "--only-binary", ":all:")
        run(place / "bin" / "pip", "install", *options, wheel, env=environment)
    else:
        run(BIN / "uv", "venv", "-q", "--no-project", "-p", python, place, env=environment)
        run(BIN / "uv", "pip", "install", "-q", "--no-build", "-p", place, wheel, env=environment)


def first_command() -> list[str]:
    """Return what the README's first command has pumice do."""
    (line,) = re.findall(r"<!-- ci: run -->\n```sh\n.*/bin/pumice (.+)\n```", (ROOT / "README.md").read_text("utf-8"))
    return str(line).split()


def first_program() -> str:
    """Return the README's program in Python."""
    (program,) = re.findall(r"```python\n(import pumice\n.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    return str(program)


@contextmanager
def served(pumice: Path, folder: Path, environment: dict[str, str]) -> Generator[str]:
    """Have an installed pumice serve HTTP on a free port until the block ends; it must then stop as on Ctrl-C."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(pumice), "run", "--http", f"127.0.0.1:{port}", "--db", str(folder / "served.db")]
    server = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.send_signal(signal.SIGINT)
        try:
            told, _ = server.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            server.kill()
            told, _ = server.communicate()
    if server.returncode not in (0, 130):
        raise ReleaseError(f"`pumice run --http` ended with exit code {server.returncode}:\n{told.decode()}")


def placed(url: str) -> None:
    """Create the gang over HTTP and wait until each of its pods runs. Raises ReleaseError when that takes too long."""
    ask(url, "/readyz")
    ask(url, JOBS, GANG)
    until = time.monotonic() + PLACED_S
    while time.monotonic() < until:
        phases = [pod.get("status", {}).get("phase") for pod in json.loads(ask(url, PODS))["items"]]
        if phases == ["Running"] * 3:
            return
        time.sleep(0.1)
    raise ReleaseError("the gang does not run")


def ask(url: str, path: str, body: Any = None) -> bytes:
    """Return an answer of the server, as soon as there is one."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(f"{url}{path}", data=data, headers={"Content-Type": "application/json"})
    until = time.monotonic() + PLACED_S
    while True:
        try:
            with urlopen(request, timeout=10) as answer:
                return bytes(answer.read())
        except (URLError, OSError) as error:
            if time.monotonic() > until:
                raise ReleaseError(f"{path}: {error}") from error
            time.sleep(0.1)
