"""Runs every command of the documents below, as printed, in a copy of `examples/`.

`python -m docs.making.try_commands`, or `nox -s examples`.

A server stays for the commands after it that speak to it. Prints what each took; fails when one does.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import httpx

ROOT: Final = Path(__file__).parents[2]
HOWTO: Final = (
    "tune-a-queue", "judge-a-change", "mirror-a-cluster", "test-a-controller", "run-a-sweep", "write-a-plugin",
    "read-an-incident", "storm-a-scheduler",
)  # fmt: skip
COMING_FROM: Final = ("kwok", "kind", "kube-scheduler-simulator", "slurm", "envtest")
DOCUMENTS: Final = (
    "README.md", "docs/reference/commands.md", "examples/README.md",
    *(f"docs/howto/{name}.md" for name in HOWTO), *(f"docs/coming-from/{name}.md" for name in COMING_FROM),
)  # fmt: skip
BLOCK: Final = re.compile(r"(<!-- ci: \w+ -->\n)?^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
SERVER: Final = re.compile(r"^pumice (run|view) .*--http (\S+)")
READY: Final = {"run": "/readyz", "view": "/"}
"""Path at which each kind of server answers as soon as it serves."""
CLIENT: Final = re.compile(r"^(kubectl|pumice kubeconfig) ")
DIFFERS: Final = re.compile(r"^pumice (replay .*--config|whatif) ")
BESIDE: Final = " &"
"""At the end of a command that runs beside those after it in its block."""
LISTENS_S: Final = 2.0
LONGEST_S: Final = 300.0
START_S: Final = 60.0


def blocks(document: str) -> Iterator[list[str]]:
    """Yield the commands of each block; those that the build runs anyway are left out."""
    for marked, block in BLOCK.findall((ROOT / document).read_text("utf-8")):
        if not marked:
            yield [line for line in block.replace("\\\n", " ").splitlines() if line.strip()]


def main() -> int:
    """Run them all, one document after the other in one copy, as who reads both would; 1 when one failed."""
    failed = tried(DOCUMENTS)
    for line in failed:
        print(f"FAILED: {line}")
    return 1 if failed else 0


def tried(documents: Sequence[str]) -> list[str]:
    """Return the commands of documents that failed."""
    with tempfile.TemporaryDirectory(prefix="pumice-examples-") as folder:
        place = Path(folder) / "examples"
        shutil.copytree(ROOT / "examples", place)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "KUBECONFIG": str(place / "kubeconfig"), "HOME": folder}
        shown = (block for document in documents for block in blocks(document))
        return [line for block in shown for line in run_block(block, place, environment)]


def run_block(lines: list[str], place: Path, environment: dict[str, str]) -> list[str]:
    """Return the lines of one block that failed."""
    failed: list[str] = []
    server: subprocess.Popen[bytes] | None = None
    beside: list[subprocess.Popen[bytes]] = []
    for line in lines:
        if line.endswith(BESIDE):
            words = line.removesuffix(BESIDE).split()
            beside.append(subprocess.Popen(words, cwd=place, env=environment))
            time.sleep(LISTENS_S)
            continue
        if server is not None and not CLIENT.match(line):
            stop(server)
            server = None
        began = time.monotonic()
        served = SERVER.match(line)
        if served:
            nowhere = subprocess.DEVNULL
            server = subprocess.Popen(line.split(), cwd=place, env=environment, stdout=nowhere, stderr=nowhere)
            good = answers(f"http://{served[2]}{READY[served[1]]}")
        else:
            good = ran(line, place, environment)
        print(f"{'ok  ' if good else 'BAD '} {time.monotonic() - began:6.1f} s  {line}", flush=True)
        failed += [] if good else [line]
    for each in (*beside, *([server] if server is not None else [])):
        stop(each)
    return failed


def stop(server: subprocess.Popen[bytes]) -> None:
    """Stop it as Ctrl-C would."""
    server.send_signal(signal.SIGINT)
    server.wait(START_S)


def ran(line: str, place: Path, environment: dict[str, str]) -> bool:
    """Return whether a command did its work; its output is shown when it did not."""
    command = ["bash", "-o", "pipefail", "-c", line]
    try:
        done = subprocess.run(
            command, cwd=place, env=environment, capture_output=True, text=True, timeout=LONGEST_S, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    good = done.returncode == 0 or (done.returncode == 1 and DIFFERS.match(line) is not None)
    if not good:
        print(f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return good


def answers(url: str) -> bool:
    """Return whether a server answers in time."""
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        with suppress(httpx.TransportError):
            if httpx.get(url, timeout=5.0).is_success:
                return True
        time.sleep(0.1)
    return False


if __name__ == "__main__":
    sys.exit(main())
