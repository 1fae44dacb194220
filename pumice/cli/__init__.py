"""The command line: one command a file, wired together in `application`."""

from __future__ import annotations

from pumice.cli.app import command_line


def main() -> None:
    """The console script `pumice`. Ends the process with the exit codes of the command line's contract."""
    raise SystemExit(command_line())
