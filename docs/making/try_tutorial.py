"""Follows the tutorial as a newcomer would: writes its files, runs its commands, and compares what they print.

`python -m docs.making.try_tutorial`, or `nox -s site`. With `--write` the pages get what is printed now.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Final, NamedTuple

from docs.making import try_commands

FOLDER: Final = Path(__file__).parents[1] / "tutorial"
PAGES: Final = ("index", "gang", "waits", "helps", "policies", "trace", "page")
FENCE: Final = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
RATES: Final = re.compile(r"[\d,.]+(?= (?:(?:records|pods)/s|cycles\b|records\b))")
"""Numbers that depend on the machine, or that a scheduler which looks less often changes."""


class Fence(NamedTuple):
    """One fenced block of a page: its language, the file that it is (or ""), its text and where the text stands."""

    language: str
    title: str
    text: str
    start: int
    end: int


def fences(page: str) -> list[Fence]:
    """Return the fenced blocks of a page."""
    return [Fence(found[1], found[2] or "", found[3], found.start(3), found.end(3)) for found in FENCE.finditer(page)]


def main(*options: str) -> int:
    """Follow all pages in one folder; 1 when something failed or was printed otherwise."""
    with tempfile.TemporaryDirectory(prefix="pumice-tutorial-") as folder:
        problems = [line for name in PAGES for line in followed(name, Path(folder), writes="--write" in options)]
    print("\n".join(problems) if problems else "the tutorial holds")
    return 1 if problems else 0


def followed(name: str, folder: Path, *, writes: bool) -> list[str]:
    """Follow one page, and return what is wrong with it."""
    path = FOLDER / f"{name}.md"
    page = path.read_text("utf-8")
    problems: list[str] = []
    printed: list[tuple[Fence, str]] = []
    blocks = fences(page)
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        if block.title:
            (folder / block.title).write_text(block.text, "utf-8")
        elif block.language == "sh":
            output, failed = run(block.text, folder)
            problems += [f"{name}: {line}: failed\n{output}" for line in failed]
            if after is not None and after.language == "text" and not after.title:
                printed.append((after, output))
    for block, output in reversed(printed):
        if normal(block.text) != normal(output):
            problems += [] if writes else difference(name, block.text, output)
            page = f"{page[: block.start]}{output}{page[block.end :]}" if normal(output) != normal(block.text) else page
    if writes:
        path.write_text(page, "utf-8")
    return problems


def run(text: str, folder: Path) -> tuple[str, list[str]]:
    """Run the commands of a block. Return what they print, on stdout and stderr as it came, and those that failed."""
    environment = {
        **os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder),
        "PYTHONUNBUFFERED": "1", "NO_COLOR": "1", "COLUMNS": "110",
    }  # fmt: skip
    lines = text.replace("\\\n", " ").splitlines()
    if any(try_commands.SERVER.match(line) for line in lines):
        return "", try_commands.run_block(lines, folder, environment)
    output, failed = "", list[str]()
    for line in lines:
        command = ["bash", "-o", "pipefail", "-c", line]
        said, both = subprocess.PIPE, subprocess.STDOUT
        done = subprocess.run(command, cwd=folder, env=environment, stdout=said, stderr=both, text=True, check=False)
        output += done.stdout
        if done.returncode != 0 and not (done.returncode == 1 and try_commands.DIFFERS.match(line)):
            failed.append(line)
    return output.lstrip("\n"), failed


def normal(text: str) -> str:
    """Return a text without what differs from machine to machine."""
    return "\n".join(RATES.sub("N", line).rstrip() for line in text.strip().splitlines())


def difference(name: str, shown: str, printed: str) -> Iterator[str]:
    """Yield the lines in which a page and what is printed differ."""
    before, after = normal(shown).splitlines(), normal(printed).splitlines()
    return unified_diff(before, after, f"docs/tutorial/{name}.md", "printed", lineterm="")


if __name__ == "__main__":
    if shutil.which("bash") is None:
        sys.exit("bash is needed")
    sys.exit(main(*sys.argv[1:]))
