# SPDX-License-Identifier: Apache-2.0
"""A policy file names the workloads by which a cluster's policy is judged, and the expectations.

    policy: cluster            # folder of the policy in the repository, for git revisions and for head
    workloads:
    - name: monday
      input: [monday.yaml]     # as -f takes them: manifests, dumps, traces, journals
      until: 24h               # or idle
    expect:
    - name: urgent jobs start within 10 s
      measure: wait.max[name=urgent-*]
      op: <=
      value: 10s

Paths are relative to the file. `docs/reference/gate.md` describes every key.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from msgspec import Meta, Struct, field

from pumice.config.durations import duration_s
from pumice.config.errors import ConfigError
from pumice.config.read import ValuePlace, mapping, read_yaml, shaped
from pumice.config.scalars import resolve_true_false
from pumice.core.errors import QuantityError
from pumice.core.objects.metadata import Object, is_list, parse_time
from pumice.core.resources.lists import whole_of
from pumice.load.source import read_text
from pumice.questions.gate.expectations import Expectation, expectation_of
from pumice.questions.gate.scopes import MeasureError

if TYPE_CHECKING:
    from collections.abc import Mapping

IDLE: Final = "idle"

Operator = Literal["<=", ">=", "==", "<", ">", "!="]
Fraction = Annotated[float, Meta(ge=0, le=1, description="a part between 0 and 1")]
Draws = Annotated[int, Meta(ge=1, le=1000, description="a number of draws from 1 to 1000")]
Text = Annotated[str, Meta(min_length=1)]
Texts = Annotated[list[Text], Meta(min_length=1, description="a list of at least one text")]
Pods = Annotated[list[Annotated[int, Meta(ge=1)]], Meta(min_length=1, description="a list of numbers from 1 on")]
Cores = Annotated[list[Annotated[float, Meta(ge=0)]], Meta(min_length=1, description="a list of numbers from 0 on")]
Cards = Annotated[list[Annotated[int, Meta(ge=0)]], Meta(min_length=1, description="a list of whole numbers from 0 on")]
Count = Annotated[int, Meta(ge=0, le=100_000, description="a number from 0 to 100000")]
SHORTEST_DAY_S: Final = 60.0
"""Shortest duration that is drawn anew, in seconds."""
DEFAULT_NAMES: Final = (
    "no-eviction-for-an-equal",
    "nobody-evicted-again-soon",
    "nothing-of-kube-system-evicted",
    "no-eviction-loop",
    "nothing-unstarted-that-base-starts",
    "nothing-refused",
    "no-pod-where-base-refuses-it",
)
"""Names of the defaults, as `defaults.off` takes them."""


class GeneratedJobs(Struct, forbid_unknown_fields=True):
    """Asks for random jobs where there is no record: a number, in the queues and classes in turn, over a time."""

    jobs: Annotated[int, Meta(ge=1, le=100_000, description="a number of jobs from 1 to 100000")]
    over: str = "1h"
    pods: Pods = field(default_factory=lambda: [1, 2, 4, 8])
    cpu: Cores = field(default_factory=lambda: [1.0, 2.0, 4.0])
    gpu: Cards = field(default_factory=lambda: [0])
    duration: Texts = field(default_factory=lambda: ["1m", "5m", "20m"])
    queues: Texts = field(default_factory=lambda: ["default"])
    classes: list[Text] = field(default_factory=list[str])
    nodes: Count = 0
    node_cpu: Annotated[float, Meta(gt=0, description="a number above 0")] = 8
    node_memory: str = "32Gi"
    node_gpu: Count = 0
    seed: int = 0


class WrittenWorkload(Struct, forbid_unknown_fields=True):
    """Contains one workload as the file has it."""

    name: str = ""
    input: list[str] | str = field(default_factory=list[str])
    generate: GeneratedJobs | None = None
    start: str = ""
    until: str = IDLE
    default_duration: str = "5s"


class Noise(Struct, forbid_unknown_fields=True, frozen=True):
    """Varies a workload from draw to draw; the first draw is the workload as it stands.

    `arrivals`: each job comes at most so much sooner or later; `durations`: each job runs at most that part shorter or
    longer; `days`: stretches of so long are drawn anew, with replacement, from those of the workload ("" for none).
    """

    draws: Draws = 1
    arrivals: str = "2s"
    durations: Fraction = 0.0
    days: str = ""
    seed: int = 0


class DefaultLimits(Struct, forbid_unknown_fields=True, frozen=True):
    """Sets the defaults of every policy. `evicted_again_within`: a pod may lose its node once in so long; `off`:
    defaults by name that do not hold here.
    """

    evicted_again_within: str = "10m"
    off: tuple[str, ...] = ()


class WrittenExpectation(Struct, forbid_unknown_fields=True):
    """Contains one expectation as the file has it. `words` is another name for `name`."""

    measure: str
    op: Operator
    value: float | str
    name: str = ""
    words: str = ""


class WrittenPolicy(Struct, forbid_unknown_fields=True):
    """Contains the file as it is written."""

    policy: str = ""
    base: str = ""
    head: str = ""
    workloads: list[WrittenWorkload] = field(default_factory=list[WrittenWorkload])
    cases: list[str] | str = field(default_factory=list[str])
    expect: list[WrittenExpectation] | str = field(default_factory=list[WrittenExpectation])
    renamed: dict[str, str] = field(default_factory=dict[str, str])
    noise: Noise = field(default_factory=Noise)
    defaults: DefaultLimits = field(default_factory=DefaultLimits)
    both_fail: Literal["pass", "fail"] = "pass"
    empty: Literal["pass", "fail"] = "pass"


@dataclass(frozen=True, slots=True)
class Workload:
    """Describes a workload of a policy file. `input`: paths as `-f` takes them; `start` in RFC 3339, "" for the moment
    the input stands for; `until_s`: its horizon in seconds, None: until nothing more happens.
    """

    name: str
    input: tuple[str, ...]
    generate: GeneratedJobs | None = None
    start: str = ""
    until_s: float | None = None
    default_duration: str = "5s"


@dataclass(frozen=True, slots=True)
class GatePolicy:
    """Contains a policy file after it was read. `folder`: its folder; `policy`: the folder of the cluster's policy
    beside it.
    """

    folder: Path = Path()
    policy: str = ""
    base: str = ""
    head: str = ""
    workloads: tuple[Workload, ...] = ()
    cases: tuple[str, ...] = ()
    expect: tuple[Expectation, ...] = ()
    renamed: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])
    noise: Noise = dataclasses.field(default_factory=Noise)
    defaults: DefaultLimits = dataclasses.field(default_factory=DefaultLimits)
    both_fail: bool = False
    empty_fails: bool = False


def read_policy(path: Path) -> GatePolicy:
    """Return the policy of a file. Raises InputError, ConfigError, which name the file, the place and the mistake."""
    place, said = _document(path)
    written = shaped(place, said, WrittenPolicy)
    expected = written.expect
    if isinstance(expected, str):
        at, expected = _expectations_in(path.parent / expected)
    else:
        at = place.at("expect")
    _check(written, place)
    return GatePolicy(
        path.parent,
        written.policy,
        written.base,
        written.head,
        tuple(workload_of(one, place.at("workloads").at(number)) for number, one in enumerate(written.workloads)),
        tuple(_listed(written.cases)),
        tuple(read_expectation(one, at.at(number)) for number, one in enumerate(expected)),
        written.renamed,
        written.noise,
        written.defaults,
        written.both_fail == "fail",
        written.empty == "fail",
    )


def _document(path: Path) -> tuple[ValuePlace, Object]:
    place, said = read_yaml(read_text(path), str(path), resolve_true_false)
    return place, {key: found for key, found in mapping(place, said).items() if found is not None}


def _expectations_in(path: Path) -> tuple[ValuePlace, list[WrittenExpectation]]:
    place, said = read_yaml(read_text(path), str(path), resolve_true_false)
    return place, shaped(place, said, list[WrittenExpectation])


def _check(written: WrittenPolicy, place: ValuePlace) -> None:
    if not written.workloads and not written.cases:
        raise place.error(ConfigError, "expected workloads or cases: there is nothing to judge by")
    noise = place.at("noise")
    demand_duration(noise.at("arrivals"), written.noise.arrivals)
    if written.noise.days and demand_duration(noise.at("days"), written.noise.days) < SHORTEST_DAY_S:
        raise noise.at("days").wrong("a duration of at least 1m", written.noise.days)
    for number, name in enumerate(written.defaults.off):
        if name not in DEFAULT_NAMES:
            raise place.at("defaults").at("off").at(number).unknown("default", name, DEFAULT_NAMES)
    demand_duration(place.at("defaults").at("evicted_again_within"), written.defaults.evicted_again_within)
    names = [one.name for one in written.workloads]
    for number, name in enumerate(names):
        if name and name in names[:number]:
            raise place.at("workloads").at(number).at("name").error(ConfigError, f"{name!r} is given twice")


def demand_duration(place: ValuePlace, said: str) -> float:
    """Return the duration in seconds, 0 at least. Raises ConfigError, which names the place."""
    seconds = duration_s(said)
    if seconds is None or seconds < 0:
        raise place.wrong("a duration such as 90s or 1h30m", said)
    return seconds


def demand_horizon(place: ValuePlace, said: str) -> float | None:
    """Return a horizon in seconds, None for idle. Raises ConfigError, which names the place."""
    if said == IDLE:
        return None
    seconds = demand_duration(place, said)
    if not seconds:
        raise place.wrong("a duration of more than 0s, or idle", said)
    return seconds


def demand_time(place: ValuePlace, said: str) -> None:
    """Raise ConfigError at the place for a time that is not in RFC 3339; "" stands for no time."""
    try:
        if said:
            parse_time(said)
    except ValueError as error:
        raise place.wrong("a time like 2026-01-02T03:04:05Z", said) from error


def workload_of(written: WrittenWorkload, place: ValuePlace) -> Workload:
    """Return a workload from its place in a file. Raises ConfigError, which names the place."""
    paths = _listed(written.input)
    if bool(paths) == (written.generate is not None):
        raise place.error(ConfigError, "expected either `input` or `generate`")
    if written.generate is not None:
        _check_generated(written.generate, place.at("generate"))
    demand_duration(place.at("default_duration"), written.default_duration)
    demand_time(place.at("start"), written.start)
    until_s = demand_horizon(place.at("until"), written.until)
    name = written.name or (Path(paths[0].partition(":")[2].partition(",")[0] or paths[0]).stem if paths else "jobs")
    return Workload(name, tuple(paths), written.generate, written.start, until_s, written.default_duration)


def _check_generated(asked: GeneratedJobs, place: ValuePlace) -> None:
    demand_duration(place.at("over"), asked.over)
    for number, said in enumerate(asked.duration):
        demand_duration(place.at("duration").at(number), said)
    try:
        memory = whole_of(asked.node_memory)
    except QuantityError:
        memory = 0.0
    if memory <= 0:
        raise place.at("node_memory").wrong("an amount of memory such as 32Gi", asked.node_memory)
    cores = {"node_cpu": [asked.node_cpu], "cpu": asked.cpu}
    for key, values in cores.items():
        if not all(map(isfinite, values)):
            raise place.at(key).wrong("a number of cores", max(values, key=abs))


def read_expectation(written: WrittenExpectation, place: ValuePlace) -> Expectation:
    """Return an expectation from its place in a file. Raises ConfigError, which names the place."""
    try:
        return expectation_of(written.name or written.words, written.measure, written.op, written.value)
    except MeasureError as error:
        raise place.at(error.key).error(ConfigError, str(error)) from error


def _listed(said: list[str] | str) -> list[str]:
    return [str(one) for one in said] if is_list(said) else [str(said)] if said else []
