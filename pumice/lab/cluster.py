# SPDX-License-Identifier: Apache-2.0
"""A cluster in a program or a notebook: submit objects, decide a cycle, let time pass, inspect, fork, and compare
futures.

It decides what `pumice run --time virtual` would decide, in the caller's own thread and without an event loop, so it
works under trio, asyncio or neither. Time is virtual and begins in November 2023 unless said otherwise.
"""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Iterable, Iterator, Mapping, MutableSequence
from dataclasses import fields, replace
from itertools import chain
from math import inf
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from pumice.actors.runtime.clock import VirtualClock
from pumice.cluster.api.kinds import kind_of
from pumice.cluster.kernel.fork import Fork
from pumice.cluster.kernel.intake import in_order
from pumice.cluster.kernel.life import Life
from pumice.collecting import rarely
from pumice.config.durations import parse_duration
from pumice.config.load import default_text, read_text
from pumice.core.configuration import parse_scheduler_config
from pumice.core.messages.decisions import CycleResult
from pumice.core.messages.events import ConfigLoaded, Mutation
from pumice.core.objects.metadata import Object, is_mapping
from pumice.core.plugins import PLUGINS
from pumice.core.plugins.plugin import PluginBuilder
from pumice.core.session.carry import Carry, CycleClock
from pumice.errors import InputError
from pumice.lab.kept import DecidedCycle, DecidedCycles, PackedObjects, Submitted
from pumice.lab.lived import LivedRun, load_fork, save_run
from pumice.load.manifests import Loaded, load, still_running
from pumice.questions.explain.account import Account, account_of
from pumice.questions.explain.scene import Scene
from pumice.questions.measures.jobs import JobRow
from pumice.questions.measures.lives import Lives
from pumice.questions.measures.measures import Measuring
from pumice.questions.oneshot.left_out import is_stock, left_out, overlooked
from pumice.questions.whatif.ask import what_if
from pumice.questions.whatif.changes import ForkChange
from pumice.questions.whatif.difference import FutureDifference
from pumice.questions.whatif.sources import arrivals, with_deadline
from pumice.storage import codec
from pumice.yaml_text import dump_yaml

Given = Object | Iterable["Given"]

_values: Final = attrgetter(*[each.name for each in fields(JobRow)])

FAR_S: Final = 10 * 365 * 86_400.0
"""Horizon of "idle": a wait that is longer never ends."""


class Cluster:
    """A cluster on virtual time.

    `objects`: manifests, as `pumice.nodes` and its kin make them. `config`: Volcano's scheduler.conf as its path, its
    text or the value of that text (None: the stock one; a text without a line end or a colon is a path). `plugins`:
    plugins of one's own by name, which the configuration may name. `default_duration` is how long a pod runs that does
    not say (`"0"`: for ever). Raises ConfigError, InputError.
    """

    def __init__(
        self,
        *objects: Given,
        config: str | Path | Mapping[str, Any] | None = None,
        plugins: Mapping[str, PluginBuilder] | None = None,
        seed: int = 0,
        start: float = VirtualClock.start,
        default_duration: str = "5s",
    ) -> None:
        install(plugins or {})
        told = _told(config)
        parsed = parse_scheduler_config(told.text, source=told.source)
        fork = Fork((), start, parsed, told, default_duration_s=_seconds(default_duration))
        self._begin(fork, seed)
        self.submit(*objects)

    def _begin(self, fork: Fork, seed: int) -> None:
        _warn(left_out(fork))
        self._from, self._seed = fork, seed
        self._submitted = Submitted()
        self._rows: list[bytes] = []
        self._measuring = Measuring(round(fork.now, 3), self._keep)
        self._lives = Lives(self._measuring.listeners())
        self.cycles = DecidedCycles()
        self._life = Life(fork, seed, self._hear, self._decide)
        self._lives.unpack = self._life.kernel.decoded.unpack

    # --- where it comes from

    @classmethod
    def of_files(cls, *paths: str | Path, **options: Any) -> Cluster:
        """Return a cluster of manifests, folders, `kubectl` dumps and traces, as `-f` takes them. InputError for
        unusable input.
        """
        return cls(_read(paths, PackedObjects()), **options)

    @classmethod
    def of_journal(cls, file: str | Path, *, cycle: int | None = None, seed: int = 0) -> Cluster:
        """Return the cluster as the journal ends, or as that cycle found it. Raises ConfigError, DamagedError,
        OpenError."""
        return cls._of(load_fork(Path(file), cycle), seed)

    @classmethod
    def _of(cls, fork: Fork, seed: int) -> Cluster:
        made = cls.__new__(cls)
        made._begin(fork, seed)
        return made

    def fork(self) -> Cluster:
        """Return an independent copy of this cluster in its present state."""
        return self._of(self._life.fork(), self._seed)

    # --- what it does

    @property
    def time(self) -> float:
        """Return seconds since the beginning."""
        return round(self._life.now - self._from.now, 3)

    def submit(self, *objects: Given) -> None:
        """Submit objects, each now or at its `pumice.dev/arrival`. Raises InputError for one that the API refuses."""
        now, later = self._parted(objects)
        # One by one: a trace has a million of them, and is packed for that reason.
        coming = chain(now, (codec.unpack(blob) for _, blob in later))
        _warn(overlooked(coming, stock=is_stock(self._from.told)))
        before = len(self._life.refused)
        self._life.submit(now)
        self._life.expect(later)
        self._submitted.add((self.time, codec.pack(obj)) for obj in now)
        self._submitted.add(later)
        for obj, answer in self._life.refused[before:]:
            raise InputError(f"{obj['kind']} {obj['metadata'].get('name')}: {answer.message}")

    def _parted(self, objects: Iterable[Given]) -> tuple[list[Object], list[tuple[float, bytes]]]:
        """Split the objects into those that exist at the beginning and those that arrive so many seconds later,
        packed.
        """
        began, elapsed = self._from.now, self.time
        now, come, coming = list[Object](), list[Object](), list[tuple[float, bytes]]()
        for each in _flat(objects):
            there, later = arrivals(still_running([with_deadline(_checked(each))]), began)
            now += there
            for after_s, obj in later:
                if after_s > elapsed:
                    coming.append((after_s, codec.pack(obj)))
                else:
                    come.append(obj)
        return [*now, *come], coming

    def step(self) -> DecidedCycle:
        """Go on until the scheduler has decided something, or nothing more will happen, and return its newest cycle."""
        count = len(self.cycles)
        for _ in self._life.moments(self._life.elapsed + FAR_S):
            if len(self.cycles) > count and (self.cycles[-1].binds or self.cycles[-1].evictions):
                break
        return self.cycles[-1] if self.cycles else DecidedCycle(0, self.time, {})

    def run(self, until: str | float) -> LivedRun:
        """Let time pass, `"idle"`, so many seconds more, or a duration such as `"2h"`, and return the results
        so far.
        """
        with rarely():
            if until == "idle":
                for _ in self._life.moments(self._life.elapsed + FAR_S):
                    pass
            else:
                self._life.run(self._life.elapsed + _seconds(until))
            return self.lived()

    # --- what one sees

    def lived(self) -> LivedRun:
        """Return the rows and measures of the run so far."""
        self._measuring.deserved.until(inf, self._life.kernel.view, self._from.config)
        rows = [JobRow(*codec.unpack(row)) for row in self._rows]
        # only what the end of a run changes is copied: lives are read by it
        lives = [*self._lives.pods.values(), *self._lives.groups.values()]
        measuring = copy.deepcopy(self._measuring, {id(each): each for each in (self, *lives)})
        measuring.each = rows.append
        return LivedRun(rows, measuring.end(round(self._life.now, 3)))

    def objects(self, kind: str) -> list[Object]:
        """Return all objects of a kind as the API has them; callers must not change them."""
        tables = self._life.kernel.store.tables
        return [tables.seen(record) for _, record in tables.of_kind(kind)]

    def pods(self) -> dict[str, tuple[str, str]]:
        """Return pod -> (phase, node), "" for none."""
        return {
            f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": (
                pod.get("status", {}).get("phase", "Pending"),
                pod.get("spec", {}).get("nodeName", ""),
            )
            for pod in self.objects("Pod")
        }

    def explain(self, name: str, kind: str = "job") -> Account:
        """Explain why a job (or pod) waits, as the next cycle would, or where it is. Raises NotFoundError."""
        kernel = self._life.kernel
        clock = CycleClock(kernel.cycle + 1, self._life.now, self._seed)
        carry = Carry.from_dict(kernel.carry.to_dict())
        return account_of(Scene(kernel.view, self._from.config, clock, carry), kind, _full(name))

    def what_if(self, *changes: ForkChange, seconds: float = 3600.0) -> FutureDifference:
        """Return both futures of so many seconds, as it is and with the changes (`pumice.changes`), and the
        difference."""
        return what_if(self._life.fork(), changes, seconds, seed=self._seed)

    def save(self, file: str | Path) -> None:
        """Save the run so far as a journal: the whole system lives through the same and writes it down."""
        there = tuple(in_order([obj for at, obj in self._submitted if at <= 0.0]))
        later = tuple((at, obj) for at, obj in self._submitted if at > 0.0)
        fork = replace(self._from, objects=(*self._from.objects, *there), later=(*self._from.later, *later))
        save_run(fork, self.time, self._seed, Path(file))

    # ---

    def _hear(self, mutation: Mutation, at: float) -> None:
        if self.cycles:
            self._measuring.deserved.until(at, self._life.kernel.view, self._from.config)
        self._lives.note(mutation, at)

    def _decide(self, result: CycleResult, at: float) -> None:
        self._measuring.deserved.decided(CycleClock(result.cycle, at, self._seed))
        for evict in result.evicts:
            self._lives.decide(evict)
        self.cycles.note(result, round(at - self._from.now, 3))

    def _keep(self, row: JobRow) -> None:
        self._rows.append(codec.pack(_values(row)))


def install(plugins: Mapping[str, PluginBuilder]) -> None:
    """Install plugins of one's own, by the names that configurations may use. InputError for a name of a
    built-in one.
    """
    for name, builder in plugins.items():
        if name in PLUGINS and PLUGINS[name] is not builder and name not in _OWN:
            raise InputError(f"{name!r} is the name of a built-in plugin")
        PLUGINS[name] = builder
        _OWN.add(name)


_OWN: Final = set[str]()


def read(*paths: str | Path) -> list[Object]:
    """Return the objects behind paths, as `-f` takes them. InputError for the first that cannot be used."""
    return [*_read(paths, [])]


def _warn(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        warnings.warn(sentence, stacklevel=3)


def _read(paths: Iterable[str | Path], into: MutableSequence[Object]) -> Iterable[Object]:
    loaded = load([str(path) for path in paths], io.StringIO(), Loaded(into))
    for problem in loaded.problems:
        raise problem
    _warn(loaded.skipped)
    return loaded.objects


def _told(config: str | Path | Mapping[str, Any] | None) -> ConfigLoaded:
    match config:
        case None:
            return ConfigLoaded("", default_text(), "default")
        case Mapping():
            return ConfigLoaded("", dump_yaml(dict(config)), "given")
        case str() if "\n" in config or ": " in config:
            return ConfigLoaded("", config, "given")
        case str() | Path():
            return ConfigLoaded("", read_text(Path(config)), str(config))
    raise InputError(f"expected a path, a text or a mapping, was {config!r}", path="config")


def _seconds(time: str | float) -> float:
    try:
        seconds = parse_duration(time) if isinstance(time, str) else float(time)
    except (TypeError, ValueError) as error:
        raise InputError(f"expected seconds or a duration such as 90s or 1h30m, was {time!r}") from error
    if not 0 <= seconds < inf:
        raise InputError(f"expected a time that can go by, was {time!r}")
    return seconds


def _flat(given: Any) -> Iterator[Object]:
    for one in given:
        if is_mapping(one):
            yield one
        elif isinstance(one, Iterable) and not isinstance(one, str | bytes):
            yield from _flat(one)
        else:
            raise InputError(f"expected an object as a mapping, or a list of such, was {one!r:.80}")


def _checked(obj: Object) -> Object:
    """Return the object with the namespace that kubectl would fill in. InputError for a value that is not an object."""
    kind = kind_of(obj.get("apiVersion"), obj.get("kind"))
    if kind is None or not is_mapping(obj.get("metadata")):
        what = f"{obj.get('apiVersion')} {obj.get('kind')}"
        raise InputError(f"expected an object of a kind that Pumice knows, with metadata, was {what}")
    if kind.namespaced and not obj["metadata"].get("namespace"):
        return {**obj, "metadata": {**obj["metadata"], "namespace": "default"}}
    return obj


def _full(name: str) -> str:
    return name if "/" in name else f"default/{name}"
