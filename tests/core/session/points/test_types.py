"""What mypy says of wrong registrations."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
WRONG = Path(__file__).with_name("wrong_registrations.py")
IGNORED = re.compile(r"  # type: ignore\[.*\]$")


@pytest.mark.slow
def test_wrong_registrations_are_refused(tmp_path: Path) -> None:
    lines = WRONG.read_text("utf-8").splitlines()
    wrong = [number for number, line in enumerate(lines, 1) if IGNORED.search(line)]
    read = tmp_path / "wrong.py"
    read.write_text("\n".join(IGNORED.sub("", line) for line in lines) + "\n", "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", str(read)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    refused = {int(found[1]) for found in re.finditer(r"wrong\.py:(\d+): error:", said)}
    assert len(wrong) > 10
    assert sorted(refused) == wrong, said
