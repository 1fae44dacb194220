"""A page as a browser without a screen shows it."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CHROMIUM: Final[str | None] = shutil.which("chromium") or shutil.which("chromium-browser")
ABSENT: Final = "Chromium is not installed (Debian: apt-get install chromium)"
_CONSOLE: Final = re.compile(r"CONSOLE[^\]]*\] (.*)")


@dataclass(frozen=True)
class Shown:
    """The document after its scripts have run, and what they said to the console."""

    html: str
    console: list[str]


def show(url: str, folder: Path, *, width: int = 1280, height: int = 800) -> Shown:
    """Load a page and run its scripts for a while of the browser's own time."""
    assert CHROMIUM is not None
    said = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={folder / 'browser'}",
            f"--window-size={width},{height}",
            "--enable-logging=stderr",
            "--virtual-time-budget=10000",
            "--dump-dom",
            url,
        ],
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    )
    return Shown(said.stdout, _CONSOLE.findall(said.stderr))
