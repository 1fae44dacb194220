"""The licence header of each installed source file: `python -m tests.headers` puts it where it is missing.

With `--check` it only looks. What is not installed stands under LICENSE alone.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from tests.kit import source

HEADER: Final = "# SPDX-License-Identifier: Apache-2.0\n"


def lacking() -> list[Path]:
    """Return the files of Python without the header. A first line for the shell stays the first."""
    return [
        path for path in source.files(".py", folders=source.LAYERS) if HEADER not in head(path) and path.stat().st_size
    ]


def head(path: Path) -> list[str]:
    """Return the first two lines of a file."""
    with path.open(encoding="utf-8") as lines:
        return [line for line, _ in zip(lines, range(2), strict=False)]


def put(path: Path) -> None:
    """Write the header into a file."""
    text = path.read_text("utf-8")
    first = text.index("\n") + 1 if text.startswith("#!") else 0
    path.write_text(f"{text[:first]}{HEADER}{text[first:]}", "utf-8")


def main(*options: str) -> int:
    """Put the header where it is missing; with --check, 1 when it is missing anywhere."""
    found = lacking()
    for path in found:
        sys.stdout.write(f"{source.relative(path)}\n")
        if "--check" not in options:
            put(path)
    return 1 if found and "--check" in options else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
