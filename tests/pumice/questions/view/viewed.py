"""A short run on virtual time, and the page over its journal."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.pumice.cli.terminal import pumice


@contextmanager
def viewed_run(folder: Path, objects: Sequence[dict[str, Any]], config: str = "", until: str = "20s") -> Generator[str]:
    """The address of the page."""
    (folder / "c.yaml").write_text(yaml.safe_dump_all(objects))
    flags: list[str | Path] = []
    if config:
        (folder / "c.conf").write_text(config)
        flags = ["--config", folder / "c.conf"]
    run = ("run", "-f", folder / "c.yaml", *flags, "--db", folder / "j.db", "--time", "virtual", "--until", until)
    assert pumice(*run).code == 0
    command = [sys.executable, "-m", "pumice", "view", str(folder / "j.db"), "-o", "table"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split(" on ")[1].strip()
        finally:
            process.send_signal(signal.SIGINT)
