# SPDX-License-Identifier: Apache-2.0
"""Case files: their form, how they are found and read, and the set-up of a case."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from pumice.config.errors import ConfigError, NotBuiltError
from pumice.config.input_file import read_bytes
from pumice.config.known import KNOWN_ACTIONS
from pumice.config.read import ValuePlace, shaped
from pumice.config.schema import SchedulerConfig
from pumice.config.yaml_tree import Document
from pumice.core.actions import ACTIONS
from pumice.core.configuration import from_parsed, parse_or_built_in
from pumice.core.objects.metadata import Object, is_mapping
from pumice.core.session.carry import SessionOptions
from pumice.questions.oneshot.cycles import Setup, run_cycles
from pumice.units import DEFAULT_NOW, parse_moment

# --- The shape of a case

Outcomes = list[Object]
Objects = list[Object]


class _Expect(Struct):
    cycles: Outcomes | None = None
    anyOf: Annotated[list[Outcomes], Meta(min_length=1)] | None = None  # noqa: N815 - as the files have it
    atOpen: Object | None = None  # noqa: N815


class _Documented(Struct):
    name: str
    objects: Objects
    documentedOrder: Object  # noqa: N815
    expect: Object


class _Story(Struct):
    name: str
    objects: Objects
    expect: _Expect
    cycles: Annotated[int, Meta(ge=1)] = 1
    documentedOrder: UnsetType = UNSET  # noqa: N815


def name_of(case: object, number: int) -> str:
    """Return the name of a case of a suite; its number from 1 where it has no name."""
    name = case.get("name") if is_mapping(case) else None
    return name if isinstance(name, str) else f"case {number}"


def misshapen(case: object) -> str:
    """Return the problem of a case, with its place; "" for a valid case."""
    documented = is_mapping(case) and "documentedOrder" in case
    try:
        found = shaped(ValuePlace(Document("", None)), case, _Documented if documented else _Story)
    except ConfigError as error:
        return str(error)
    return _counted(found) if isinstance(found, _Story) else ""


def _counted(story: _Story) -> str:
    """Check that every expected story is as long as the actual one."""
    expect = story.expect
    if expect.cycles is None and expect.anyOf is None:
        return "expect: expected cycles or anyOf, found neither"
    stories = [("expect.cycles", expect.cycles or [])] if expect.anyOf is None else []
    stories += [(f"expect.anyOf[{number}]", one) for number, one in enumerate(expect.anyOf or ())]
    wrong = [
        f"{where}: expected {story.cycles} outcomes (cycles: {story.cycles}), found {len(one)}"
        for where, one in stories
        if len(one) != story.cycles
    ]
    return "; ".join(wrong)


# --- Inherited arguments
# Volcano's actions are singletons of their process: an argument that one configuration sets stays in force under
# later ones that do not name it. A recorded case does not say what its process had run before, so these
# arguments are passed apart from its configuration.

ActionArguments = dict[str, Object]
"""Action -> argument -> value."""


def inherited(config: SchedulerConfig) -> ActionArguments:
    """Return the state that actions carry after a cycle under this configuration, in an empty cluster."""
    (cycle,) = run_cycles(Setup(objects=(), config=config, now=0.0), 1)
    carried: ActionArguments = cycle.result.carry["actions"]
    return carried


RESOURCES_SUITE = "resources"


@dataclass(frozen=True, slots=True)
class SuiteFile:
    """One case file: `suite` is its key in the score; `cases` the number of its cases; `bytes` its size."""

    path: Path
    suite: str
    cases: int
    bytes: int

    @property
    def is_resources(self) -> bool:
        return self.suite == RESOURCES_SUITE


def find_suites(paths: Iterable[Path]) -> list[SuiteFile]:
    """Return every case file under the paths, sorted. ConfigError names one that is missing or holds none."""
    found: dict[Path, SuiteFile] = {}
    for path in paths:
        if not path.exists():
            raise ConfigError("does not exist", source=str(path))
        files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
        for file in files:
            found.setdefault(file.resolve(), _describe(file))
    return list(found.values())


def read_raw(path: Path) -> Object:
    """Return the decoded file. ConfigError when it is not a JSON object."""
    try:
        return msgspec.json.decode(read_bytes(path), type=Object)
    except msgspec.DecodeError as error:
        raise ConfigError(f"not a case file: {error}", source=str(path)) from error
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", source=str(path)) from error


@lru_cache(maxsize=2)
def read_cases(path: Path) -> tuple[Object, ...]:
    """Return the cases of one suite, in order. The newest files stay decoded, since a worker takes several slices of
    one."""
    return tuple(read_raw(path)["cases"])


def setup_of(case: Object, *, close_hooks: bool, lenient: bool = False) -> Setup:
    """Return the set-up that one-shot cycles need to run this case. Raises ConfigError when its configuration is
    refused; `lenient`: not for names that do not exist.
    """
    return Setup(
        objects=case["objects"],
        config=config_of(case, lenient=lenient),
        now=parse_moment(case.get("now") or DEFAULT_NOW),
        options=options_of(case),
        close_hooks=close_hooks,
    )


def config_of(case: Object, *, lenient: bool = False) -> SchedulerConfig:
    """Return the case's scheduler configuration: text that goes through the loader, or tiers that are taken as they
    are."""
    if "confYaml" in case:
        return parse_or_built_in(case["confYaml"], source="confYaml", lenient=lenient)[0]
    refuse_unbuilt(case["conf"])
    conf = without_unregistered(case["conf"])
    return from_parsed(conf, bool(case.get("flagsDefaultOn")))


def without_unregistered(conf: Object) -> Object:
    """Return parsed tiers without the plugins that Volcano's own test did not register.

    Its tests of preempt and reclaim list both plugins that divide the cluster among queues, and register proportion;
    what was registered does not stand in the case.
    """
    tiers: list[Object] = []
    for tier in conf["tiers"]:
        both = {"proportion", "capacity"} <= {plugin["name"] for plugin in tier["plugins"]}
        tiers.append({"plugins": [p for p in tier["plugins"] if not (both and p["name"] == "capacity")]})
    return {**conf, "tiers": tiers}


def refuse_unbuilt(conf: Object) -> None:
    """Refuse parsed tiers with a Volcano action that does not exist here, since doing nothing proves nothing. Raises
    NotBuiltError.

    A plugin that is not here is left out instead, as Volcano leaves out what it does not find: many of its tests list
    plugins that play no part in them.
    """
    for action in conf["actions"]:
        if action in KNOWN_ACTIONS and action not in ACTIONS:
            raise NotBuiltError(f"the action {action!r} is not built", source="conf")


def options_of(case: Object) -> SessionOptions:
    """Return the session options of a case. Absent options mean Volcano's adaptive search."""
    options: Object = case.get("options") or {}
    shard: Object | None = case.get("shard")
    at_open: Object = case["expect"].get("atOpen") or {}
    return SessionOptions(
        percentage_of_nodes=int(options.get("percentageOfNodesToFind", 0)),
        minimum_feasible_nodes=options.get("minimumFeasibleNodes"),
        minimum_percentage=options.get("minimumPercentageOfNodesToFind"),
        shard=(shard["mode"], frozenset(shard["nodes"])) if shard else None,
        ignored_provisioners=tuple(case.get("ignoredProvisioners") or ()),
        hyper_nodes=case.get("hyperNodes"),
        node_usage=case.get("nodeUsage"),
        explain=tuple(at_open.get("tasks") or ()),
    )


def _describe(path: Path) -> SuiteFile:
    raw = read_raw(path)
    if "quantities" in raw or "operations" in raw:
        cases = len(raw.get("quantities") or ()) + len(raw.get("operations") or ())
        return SuiteFile(path, RESOURCES_SUITE, cases, path.stat().st_size)
    if not isinstance(raw.get("cases"), list):
        raise ConfigError("not a case file: expected the key cases (or quantities)", source=str(path))
    suite = "/".join(path.resolve().with_suffix("").parts[-2:])
    return SuiteFile(path, suite, len(raw["cases"]), path.stat().st_size)
