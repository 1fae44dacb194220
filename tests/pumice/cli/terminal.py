"""Running commands in tests: in process, with stdout, stderr and exit code apart."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from pumice.cli.app import app


@dataclass
class Said:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def pumice(*arguments: object, stdin: str | None = None, env: dict[str, str] | None = None) -> Said:
    """Run one command in this process. An exception that is not an exit fails the test."""
    result = CliRunner().invoke(app, [str(one) for one in arguments], input=stdin, env=env, prog_name="pumice")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Said(result.exit_code, result.stdout, result.stderr)


def has_cycles(db: Path) -> bool:
    """Whether a journal that another process writes has come that far; it may be in the making, and nothing yet."""
    said = pumice("journal", db, "-o", "json")
    return said.code == 0 and said.json["cycles"] > 0
