# SPDX-License-Identifier: Apache-2.0
"""Options of questions about the future: a source, changes, and the options that exclude each other."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final

import anyio
import typer

from pumice.cli.exits import UsageError
from pumice.cli.inputs import in_force, told_of
from pumice.cli.manifests import load_accepted, moment_of
from pumice.cli.sources import one_source
from pumice.cli.terminal import Terminal
from pumice.cluster.kernel.fork import Fork
from pumice.config.durations import EXPECTED, parse_duration
from pumice.config.errors import nearest_name
from pumice.core.configuration import taken
from pumice.load.manifests import load
from pumice.questions.explain.server import Server, fetch
from pumice.questions.oneshot.obstacles import obstacles
from pumice.questions.replay.plugins import demand_plugins
from pumice.questions.whatif import changes
from pumice.questions.whatif.changes import ForkChange
from pumice.questions.whatif.sources import handed_in, journaled

# --- Options that exclude each other

MANY: Final = ("--add-nodes", "--submit")
"""Changes that may be made twice."""
HORIZON: Final = "1h"
WITHIN: Final = "1m"
BUDGET_S: Final = 60.0
ASSIGNING: Final = ("--set", "--scale")


def refuse_beside_search(
    job: str | None,
    kept: tuple[Path | None, str | None, str | None],
    like: Sequence[str] | None,
    within: str,
    budget_s: float,
    works: tuple[int, str | None],
) -> None:
    """Refuse options that a search for `job` does not have (`kept`: --save, --against and --horizon); `works`
    (--workers and --dask) belong to a search alone. Raises UsageError.
    """
    unknown = {"--save": kept[0] is not None, "--against": kept[1] is not None, "--horizon": kept[2] is not None}
    alone = {"--like": bool(like), "--within": within != WITHIN, "--budget": budget_s != BUDGET_S}
    alone |= {"--workers": works[0] != 1, "--dask": works[1] is not None}
    for option in [name for name, said in (alone if job is None else unknown).items() if said]:
        beside = "a search looks as far as --within says" if option == "--horizon" else "a search tries many futures"
        why = "this goes with --until-starts alone" if job is None else f"{beside}: leave it out"
        raise UsageError(why, path=option)


def to_be_made(file: Path | None) -> None:
    """Refuse a file that exists. Raises UsageError."""
    if file is not None and file.exists():
        raise UsageError("there is a file already; name one that is to be made", path=f"--save {file}")


def refuse_repetition(given: Mapping[str, Sequence[str] | None]) -> None:
    """Refuse a repeated change, or two values for one place. Raises UsageError."""
    for option, values in given.items():
        seen: dict[str, str] = {}
        for value in values or ():
            what = "--config" if option == "--config" else place_of(value) if option in ASSIGNING else value
            if what in seen and option not in MANY:
                raise UsageError(f"said twice: {seen[what]} and {value}", path=option)
            seen[what] = value


def place_of(assigned: str) -> str:
    """Return the path of an assignment: `queue/q1:spec.weight` of `queue/q1:spec.weight=3`. A = in brackets is not an
    assignment.
    """
    depth = 0
    for at, letter in enumerate(assigned):
        depth += (letter == "[") - (letter == "]")
        if letter == "=" and not depth:
            return assigned[:at]
    return assigned


Texts = list[str] | None


def _change(name: str, metavar: str, text: str) -> Any:
    return typer.Option(name, metavar=metavar, help=text, show_default=False, rich_help_panel="Changes")


Submit = Annotated[Texts, _change("--submit", "PATH", "Submit these manifests.")]
AddNodes = Annotated[Texts, _change("--add-nodes", "N:like=NODE", "Add N nodes like this one.")]
RemoveNode = Annotated[Texts, _change("--remove-node", "NODE", "Remove the node.")]
Drain = Annotated[Texts, _change("--drain", "NODE", "Cordon the node and evict its pods.")]
Cordon = Annotated[Texts, _change("--cordon", "NODE", "Cordon the node: no new pods.")]
SetField = Annotated[
    Texts, _change("--set", "KIND/NAME:PATH=VALUE", "Set a field of any object: queue/q1:spec.weight=3.")
]
DeleteObject = Annotated[Texts, _change("--delete", "KIND/NAME", "Delete the object and what it owns.")]
Scale = Annotated[
    Texts,
    _change("--scale", "KIND/NAME[:TASK]=N", "Set the replicas of a Deployment, a ReplicaSet or a task of a Job."),
]
OtherConfig = Annotated[Texts, _change("--config", "CONF", "Use another scheduler configuration.")]

At = Annotated[
    int | None, typer.Option("--cycle", "--at", metavar="N", min=1, help="Cycle of the journal. Default: its end.")
]
BaseConfig = Annotated[
    Path | None,
    typer.Option(
        "--base-config",
        metavar="CONF",
        help="With -f or --server: the configuration in force. Default: the server's, else Volcano's stock one.",
    ),
]
Horizon = Annotated[
    str | None, typer.Option("--horizon", metavar="D", help="How far ahead to look: a Go duration.", show_default="1h")
]
DefaultDuration = Annotated[
    str | None,
    typer.Option(
        "--default-duration",
        metavar="D",
        help="How long a pod runs that does not say so. Default: beyond the horizon; in a journal, as recorded.",
        show_default=False,
    ),
]
UntilStarts = Annotated[
    str | None,
    typer.Option(
        "--until-starts",
        metavar="JOB",
        help="Search for the smallest change that lets this job start.",
        show_default=False,
    ),
]
Within = Annotated[
    str, typer.Option("--within", metavar="D", help="With --until-starts: the time within which it must start.")
]
Like = Annotated[
    Texts,
    typer.Option(
        "--like", metavar="NODE", help="With --until-starts: add nodes like this one. Default: one of each sort."
    ),
]
Budget = Annotated[
    float,
    typer.Option(
        "--budget", min=0.0, metavar="S", help="With --until-starts: work for trying; a second is 10,000 units."
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Seed of generated names and of ties.")]


@dataclass(frozen=True, slots=True)
class ForkSource:
    """Source of the cluster: a journal (`db`, `at`), a server, or manifests with the configuration in force."""

    db: Path | None
    at: int | None
    server: Server | None
    manifests: Sequence[str] | None
    config: Path | None
    plugins_dir: Path | None
    lenient: bool

    def fork(self, default_duration: str | None, terminal: Terminal) -> Fork:
        """Return the cluster as it is. `default_duration`: how long a pod runs that does not say."""
        fork = self._fork(default_duration, terminal)
        for sentence in obstacles(fork.config, fork.objects):
            terminal.warn(sentence)
        return fork

    def _fork(self, default_duration: str | None, terminal: Terminal) -> Fork:
        one_source(self.db, self.server, self.manifests)
        lasts_s = None if default_duration is None else seconds_of(default_duration, "--default-duration")
        if self.server is None and not self.manifests:
            if self.config is not None:
                raise UsageError("a journal holds its own configuration", path="--base-config")
            file = self.db or Path("pumice.db")
            anyio.run(demand_plugins, file, self.plugins_dir, terminal.warn)
            return anyio.run(journaled, file, self.at, lasts_s)
        if self.at is not None:
            raise UsageError("this shows the present; a recorded cycle is in a journal: --db", path="--cycle")
        told, _ = in_force(self.config, self.server, self.plugins_dir, self.lenient, terminal.warn, "--base-config")
        if self.server is not None:
            objects, now = fetch(self.server), time.time()
        else:
            objects = load_accepted(self.manifests or (), terminal)
            now = moment_of(objects)
        return handed_in(objects, float(int(now)), told, lasts_s or 0.0)


def seconds_of(text: str, path: str) -> float:
    """Return the seconds of a Go duration. Raises UsageError."""
    try:
        found = parse_duration(text)
    except ValueError:
        found = -1.0
    if found < 0:
        raise UsageError(f"expected {EXPECTED}, was {text!r}", path=path)
    return found


# --- Changes


def _submitted(path: str) -> ForkChange:
    loaded = load([path], sys.stdin)
    if loaded.problems:
        raise loaded.problems[0]
    if not loaded.objects:
        raise UsageError("the file has no objects", path=f"--submit {path}")
    return changes.submit(loaded.objects, f"--submit {path}")


def _configured(path: str, lenient: bool, warn: Callable[[str], None]) -> ForkChange:
    told = told_of(Path(path))
    told, config = taken(told, lenient=lenient)
    for warning in config.warnings:
        warn(warning)
    return ForkChange(f"--config {path}", lambda fork: replace(fork, config=config, told=told))


CONFIG: Final = "--config"
CHANGES: Final[Mapping[str, Callable[[str], ForkChange]]] = {
    "--submit": _submitted,
    "--add-nodes": changes.add_nodes,
    "--set": changes.set_field,
    "--scale": changes.scale,
    "--cordon": changes.cordon,
    "--drain": changes.drain,
    "--remove-node": changes.remove_node,
    "--delete": changes.delete,
}
"""By option, in the order in which they are made, after a configuration; those of one option as they are given."""


def asked_for(
    values: Mapping[str, Sequence[str] | None], lenient: bool, warn: Callable[[str], None]
) -> list[ForkChange]:
    """Return the changes of the options; `lenient`: a configuration's unknown names are left out, with a warning.
    Raises InputError, ConfigError.
    """
    refuse_repetition(values)
    configured = [_configured(path, lenient, warn) for path in values.get(CONFIG) or ()]
    return [*configured, *(make(value) for option, make in CHANGES.items() for value in values.get(option) or ())]


def words_of(text: str | None) -> dict[str, list[str]]:
    """Return the options of `--against`, which are written as on the command line. Raises UsageError."""
    found: dict[str, list[str]] = {}
    try:
        words = shlex.split(text or "")
    except ValueError as error:
        raise UsageError(f"{error}: {text!r}", path="--against") from error
    while words:
        option = words.pop(0)
        known = (CONFIG, *CHANGES)
        if option not in known:
            near = nearest_name(option, known)
            hint = f", did you mean {near}?" if near else f": expected one of {', '.join(known)}"
            raise UsageError(f"not a valid change: {option!r}{hint}", path="--against")
        if not words:
            raise UsageError(f"{option} says no value", path="--against")
        found.setdefault(option, []).append(words.pop(0))
    return found
