# SPDX-License-Identifier: Apache-2.0
"""One run of a sweep: settings in, figures out. It is the whole task of a worker, wherever it runs."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from pumice import __version__
from pumice.config.input_file import read_bytes
from pumice.config.load import default_text
from pumice.config.rules import VERSION
from pumice.errors import InputError
from pumice.lab.cluster import Cluster, read
from pumice.load.source import find_files, read_text
from pumice.load.traces.read import FORMATS
from pumice.plugins.loader import identities, install_plugins
from pumice.questions.sweep.spec import ARGUMENTS, Settings, inputs_of
from pumice.yaml_text import dump_yaml

WALL: Final = "wall_s"
"""The one column that two equal sweeps may differ in."""


def key_of(run: Settings, folder: Path) -> str:
    """Return the key of this run's result: a hash of its settings, the content of its files, the version of Pumice and
    those of users' plugins."""
    content = msgspec.json.encode([__version__, VERSION, identities(), run], order="sorted")
    digest = hashlib.blake2b(content, digest_size=16)
    for file in files_of(run, folder):
        digest.update(read_bytes(file))
    return digest.hexdigest()


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


def lived(run: Settings, folder: str) -> dict[str, Any]:
    """Return the figures of one run (`pumice.questions.measures`), flat: resources as `RESOURCE FIGURE`."""
    install_plugins()
    began = time.perf_counter()
    at = Path(folder)
    objects = read(*(placed(said, at) for said in inputs_of(run)))
    cluster = Cluster(
        objects,
        config=configuration(run, at),
        seed=int(run.get("seed", 0)),
        default_duration=str(run.get("default_duration", "5s")),
    )
    summary = cluster.run(str(run.get("until", "idle"))).summary
    figures = {name: value for name, value in summary.items() if name != "resources"}
    for resource, of in summary["resources"].items():
        figures |= {f"{resource} {name}": value for name, value in of.items()}
    return {**figures, WALL: round(time.perf_counter() - began, 3)}


def configuration(run: Settings, folder: Path) -> str:
    """Return the text of the configuration with the actions and arguments that the run sets."""
    text = read_text(folder / str(run["config"])) if run.get("config") else default_text()
    wanted: dict[str, Settings] = {}
    for name, value in run.items():
        if name.startswith(ARGUMENTS):
            _, plugin, argument = name.split(".", 2)
            wanted.setdefault(plugin, {})[argument] = value
    if not wanted and not run.get("actions"):
        return text
    said: Any = yaml.safe_load(text)
    said["actions"] = run.get("actions") or said.get("actions")
    for plugin, arguments in wanted.items():
        every = (one for tier in said.get("tiers") or () for one in tier.get("plugins") or ())
        options = [one for one in every if one.get("name") == plugin]
        if not options:
            raise InputError(f"the configuration has no plugin {plugin!r}", path=f"{ARGUMENTS}{plugin}")
        for option in options:
            option["arguments"] = {**(option.get("arguments") or {}), **arguments}
    return dump_yaml(said)
