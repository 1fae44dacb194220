# SPDX-License-Identifier: Apache-2.0
"""One run of a sweep: settings in, figures out. It is the whole task of a worker, wherever it runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pumice.actors.runtime.clock import VirtualClock
from pumice.config.durations import parse_duration
from pumice.config.input_file import read_bytes
from pumice.config.load import default_text
from pumice.core.objects.metadata import Object
from pumice.errors import InputError
from pumice.lab.cluster import FAR_S, read
from pumice.load.source import find_files, read_text
from pumice.load.traces.read import FORMATS
from pumice.plugins.loader import identities
from pumice.questions.evaluation.kept import content_key
from pumice.questions.evaluation.policy import configured
from pumice.questions.gate.run import RunTask, WantedFacts
from pumice.questions.gate.run import run as simulated
from pumice.questions.sweep.spec import ARGUMENTS, Settings, inputs_of
from pumice.storage import codec

WALL: Final = "wall_s"
"""The one column that two equal sweeps may differ in."""


def key_of(run: Settings, folder: Path) -> str:
    """Return the key of this run's result: a hash of its settings, the content of its files, the version of Pumice and
    those of users' plugins."""
    return content_key(identities(), run, files=map(read_bytes, files_of(run, folder)))


def files_of(run: Settings, folder: Path) -> Iterator[Path]:
    """Yield the files that the run reads. Raises InputError for a file that does not exist."""
    if run.get("config"):
        yield _there(folder / str(run["config"]))
    for said in inputs_of(run):
        for name in _named(said):
            yield from find_files(str(folder / name))


def _there(path: Path) -> Path:
    if not path.is_file():
        raise InputError("does not exist", source=str(path))
    return path


def _named(said: str) -> list[str]:
    """Return the files that an argument of `-f` names; a trace may have options after its files."""
    form, colon, rest = said.partition(":")
    if not colon or form not in ("openb", *FORMATS):
        return [said]
    return [part for part in rest.split(",") if part != "times" and "=" not in part]


def placed(said: str, folder: Path) -> str:
    """Return an argument with its files where they lie."""
    names = _named(said)
    form, colon, rest = said.partition(":")
    if names == [said] or not colon:
        return str(folder / said)
    parts = [str(folder / part) if part in names else part for part in rest.split(",")]
    return f"{form}:{','.join(parts)}"


def lived(run: Settings, folder: str) -> Object:
    """Return the figures of one run (`pumice.questions.measures`), flat: resources as `RESOURCE FIGURE`."""
    began = time.perf_counter()
    at, until = Path(folder), str(run.get("until", "idle"))
    record = simulated(
        RunTask(
            codec.pack(read(*(placed(said, at) for said in inputs_of(run)))),
            configuration(run, at),
            str(run.get("config") or "default"),
            VirtualClock.start,
            None if until == "idle" else parse_duration(until),
            parse_duration(str(run.get("default_duration", "5s"))),
            int(run.get("seed", 0)),
            WantedFacts(summary=True),
            longest_s=FAR_S,
        )
    )
    if record.refused:
        raise InputError(record.refused[0])
    assert record.summary is not None
    figures: Object = {name: value for name, value in record.summary.items() if name != "resources"}
    for resource, of in record.summary["resources"].items():
        figures |= {f"{resource} {name}": value for name, value in of.items()}
    return {**figures, WALL: round(time.perf_counter() - began, 3)}


def configuration(run: Settings, folder: Path) -> str:
    """Return the text of the configuration with the actions and arguments that the run sets."""
    text = read_text(folder / str(run["config"])) if run.get("config") else default_text()
    arguments = {name.removeprefix(ARGUMENTS): value for name, value in run.items() if name.startswith(ARGUMENTS)}
    return configured(text, str(run.get("actions") or ""), arguments)
