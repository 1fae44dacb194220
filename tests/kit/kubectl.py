"""The real kubectl, as a user runs it."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from typing import Final

import pytest

from tests.kit.serving import Served

PATIENCE_S: Final = 90.0


class Kubectl:
    """Runs commands against a server; says what a failed one said."""

    def __init__(self, server: Served, binary: str) -> None:
        self._binary = binary
        self._environment = server.environment()

    def run(
        self,
        *arguments: str,
        stdin: str = "",
        timeout: float = PATIENCE_S,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Whatever comes of it."""
        return subprocess.run(
            [self._binary, *arguments],
            input=stdin,
            env={**self._environment, **(environment or {})},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def __call__(self, *arguments: str, stdin: str = "", timeout: float = PATIENCE_S) -> str:
        """What it prints; AssertionError when it fails."""
        done = self.run(*arguments, stdin=stdin, timeout=timeout)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout.rstrip("\n")

    def refused(self, *arguments: str, stdin: str = "") -> str:
        """What it says when it fails, as it has to."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode != 0, f"kubectl {' '.join(arguments)}: {done.stdout}"
        return done.stderr.rstrip("\n")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """One that goes on, as `get -w` does."""
        return subprocess.Popen(
            [self._binary, *arguments],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def kubectl_for(server: Served) -> Kubectl:
    """A missing binary fails in CI and is skipped elsewhere."""
    binary = shutil.which("kubectl")
    if binary is None:
        if os.environ.get("CI"):
            pytest.fail("kubectl is not installed")
        pytest.skip("kubectl is not installed")
    return Kubectl(server, binary)
