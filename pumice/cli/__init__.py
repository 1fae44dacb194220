# SPDX-License-Identifier: Apache-2.0
"""The command line: one command a file, wired together in `application`."""

from __future__ import annotations

from pumice.cli.app import command_line


def main() -> None:
    """Run the console script `pumice`. It ends the process with the exit codes of the command line's contract."""
    raise SystemExit(command_line())
