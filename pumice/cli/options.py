# SPDX-License-Identifier: Apache-2.0
"""Options that more than one command takes, written once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pumice.cli.exits import UsageError
from pumice.units import parse_moment


class Format(StrEnum):
    """Format in which a command prints its result."""

    JSON = "json"
    YAML = "yaml"
    TABLE = "table"


class LogLevel(StrEnum):
    """Level of the log on stderr."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


Output = Annotated[
    Format | None,
    typer.Option(
        "-o",
        "--output",
        metavar="json|yaml|table",
        help="Format of the result. Default: table, in a pipe too.",
        envvar="PUMICE_OUTPUT",
        show_default=False,
    ),
]
Printed = Annotated[
    Format | None,
    typer.Option(
        "--format",
        metavar="json|yaml|table",
        help="Format of the result on stdout, since -o names a file. Default: table.",
        envvar="PUMICE_OUTPUT",
        show_default=False,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no warnings.", envvar="PUMICE_QUIET")]
Level = Annotated[
    LogLevel,
    typer.Option(
        "--log-level",
        metavar="debug|info|warning|error",
        help="Least severe messages to log.",
        envvar="PUMICE_LOG_LEVEL",
    ),
]
Lenient = Annotated[
    bool,
    typer.Option(
        "--lenient",
        help="Warn of unknown keys, actions and plugins of the configuration instead of failing.",
        envvar="PUMICE_LENIENT",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="CONF",
        help="Volcano's scheduler.conf, plain or inside its ConfigMap. Default: Volcano's stock configuration.",
        envvar="PUMICE_CONFIG",
        show_default=False,
    ),
]
PluginsDir = Annotated[
    Path | None,
    typer.Option(
        "--plugins-dir",
        metavar="FOLDER",
        help="Folder with plugins of your own. Default: installed plugins only.",
        envvar="PUMICE_PLUGINS_DIR",
        show_default=False,
    ),
]
Manifests = Annotated[
    list[str] | None,
    typer.Option(
        "-f",
        "--filename",
        metavar="PATH",
        help="Manifests: a file, a folder, - for stdin, or a trace: openb:NODES.csv,PODS.csv[,times], swf:FILE,"
        " philly:FILE, csv:FILE, parquet:FILE, journal:FILE. May be repeated.",
        show_default=False,
    ),
]


Now = Annotated[
    str | None,
    typer.Option(
        "--now",
        metavar="TIME",
        help="Clock of the cycle (RFC 3339). Default: the newest time in the input, or the recorded time.",
    ),
]


def _cores() -> int:
    from pumice.executors import cores  # noqa: PLC0415 - multiprocessing

    return cores()


Workers = Annotated[
    int,
    typer.Option(
        "--workers",
        metavar="N",
        min=1,
        help="Number of processes. Default: the number of cores.",
        envvar="PUMICE_WORKERS",
        default_factory=_cores,
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        "--dask", metavar="ADDRESS", help="Use this Dask cluster instead of processes here.", show_default=False
    ),
]


def moment_said(now: str | None, option: str = "--now") -> float | None:
    """Return the option's moment in seconds since the epoch, None without it. Raises UsageError."""
    if now is None:
        return None
    try:
        return parse_moment(now)
    except ValueError as error:
        raise UsageError(f"expected a moment like 2026-11-21T02:00:00Z, was {now!r}", path=option) from error
