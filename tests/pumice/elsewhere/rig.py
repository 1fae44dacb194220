"""`pumice run --kubeconfig` as a process of its own, beside the cluster that it schedules."""

import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx

PODS: Final = "/api/v1/pods"
JOBS: Final = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
NAMESPACES: Final = "/api/v1/namespaces"
PATIENCE_S: Final = 90.0
QUICK: Final = (
    "--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=200ms",
)  # fmt: skip


@contextmanager
def process(command: str, config: Path, db: Path, *flags: str) -> Generator[subprocess.Popen[bytes]]:
    """`pumice run` or `pumice mirror` of that kubeconfig; killed at the end unless it has ended. Its log is beside the
    journal.
    """
    words = [command, "--kubeconfig", str(config), "--db", str(db), "-o", "json", *flags]
    with db.with_suffix(".log").open("ab") as log:
        running = subprocess.Popen(
            [sys.executable, "-m", "pumice", *words],
            stdout=subprocess.DEVNULL,
            stderr=log,
        )
    try:
        yield running
    finally:
        running.kill()
        running.wait()


def until(what: Callable[[], bool]) -> None:
    """Return when it is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def placed(client: httpx.Client) -> dict[str, str]:
    """Node by pod, of those that have one."""
    pods: list[dict[str, Any]] = client.get(PODS).json()["items"]
    return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}


def phase(client: httpx.Client, job: str) -> str:
    """Of a Volcano Job."""
    found: dict[str, Any] = client.get(f"{JOBS}/{job}").json()
    return str(found.get("status", {}).get("state", {}).get("phase", ""))
