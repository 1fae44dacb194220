# SPDX-License-Identifier: Apache-2.0
"""Cutting a failing storm down to the few events that matter.

The faults that struck are written out beside the inputs, so that every event can be left out by itself. What the words
of the violation speak of is tried first; then events go by kind, by what they are about, and piece by piece, large
pieces first, as long as the same invariant breaks (delta debugging), and what is left is made smaller. An event less
changes the order in which everything else runs, and many defects show in some orders only: a short list that seems
harmless is therefore tried in several orders before it is believed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Final

import msgspec

from pumice import reduction
from pumice.core.objects.metadata import Object
from pumice.proof.storm.script.checking import JOBS, OWNERS
from pumice.proof.storm.script.events import Event, Script
from pumice.proof.storm.simulation import StormOutcome, simulate

Simulate = Callable[[Script], StormOutcome]

RUNS: Final = 400
"""Storms that may be run to cut one down; PATIENCE times as many while more than FEW events are left."""
PATIENCE: Final = 3
FEW: Final = 20
ORDERS: Final = (1, 3, 10)
"""In how many orders a candidate is tried: once everywhere, then more often in what is left."""
SHORT: Final = 30
"""Longer lists are tried in one order only."""
EVERYWHERE: Final = frozenset(("node", "queue", "priority", "crash", "power-cut"))
"""Kinds of events that belong to no job and may be needed by any."""


class Search:
    """The smallest script found so far, which breaks `script.invariant`, and how many storms may be run."""

    def __init__(self, script: Script, runs: int, simulate: Simulate) -> None:
        self.script = script
        self.orders = 1
        self._runs = runs
        self._run = 0
        self._simulate = simulate
        self._harmless: set[tuple[int, bytes]] = set()

    @property
    def events(self) -> list[Event]:
        """Return the events of the smallest script."""
        return list(self.script.events)

    @property
    def exhausted(self) -> bool:
        """Return whether no more storms may be run."""
        return self._run >= self._runs * (PATIENCE if len(self.script.events) > FEW else 1)

    def take(self, events: Sequence[Event]) -> bool:
        """Go on from these events when they break the same invariant, in one of the orders."""
        orders = self.orders if len(events) <= SHORT else 1
        seeds = dict.fromkeys((self.script.order_seed, *range(orders)))
        for seed in list(seeds)[:orders]:
            order = None if seed == self.script.seed else seed
            tried = msgspec.structs.replace(self.script, events=tuple(events), order=order)
            if self._fails(tried):
                self.script = tried
                return True
        return False

    def _fails(self, script: Script) -> bool:
        key = (script.order_seed, msgspec.json.encode(script.events))
        if self.exhausted or key in self._harmless:
            return False
        self._run += 1
        found = self._simulate(script).violations
        if found and found[0].invariant == self.script.invariant:
            return True
        self._harmless.add(key)
        return False


def written_out(script: Script, outcome: StormOutcome) -> Script:
    """Return the storm with every fault that struck as an event of its own, and no rates."""
    inputs = [event for event in script.events if not event.on]
    invariant = outcome.violations[0].invariant if outcome.violations else ""
    return msgspec.structs.replace(script, events=(*inputs, *outcome.struck), rates={}, invariant=invariant)


def shrink(script: Script, outcome: StormOutcome, *, runs: int = RUNS, simulate: Simulate = simulate) -> Script:
    """Return the smallest script found that breaks the same invariant; the written-out one when that does not
    repeat."""
    search = Search(written_out(script, outcome), runs, simulate)
    if not search.take(search.events):
        return search.script
    search.orders = ORDERS[-1]
    take_related(search, outcome.violations[0].words)
    for orders in ORDERS:
        search.orders = orders
        leave_out(search, lambda event: event.what)
        leave_out_all(search)
    return search.script


def leave_out_all(search: Search) -> None:
    """Leave out events by subject, one by one and in size, until no more can be left out."""
    while not search.exhausted:
        before = search.script.events
        leave_out(search, partial(subject, jobs=jobs_of(before)))
        leave_out_pieces(search)
        make_smaller(search)
        if search.script.events == before:
            return


def take_related(search: Search, words: str) -> None:
    """Keep only what the words name, then that with what belongs to no job."""
    named = set(re.findall(r"[\w.-]+", words))
    jobs = jobs_of(search.events)
    named |= {job for job in jobs if any(name.startswith(f"{job}-") for name in named)}
    related = [event for event in search.events if subject(event, jobs) in named]
    wider = [event for event in search.events if event.what in EVERYWHERE or subject(event, jobs) in named]
    for fewer in (related, wider):
        if len(fewer) < len(search.events) and search.take(fewer):
            return


def jobs_of(events: Sequence[Event]) -> list[str]:
    """Return their names."""
    return [event.target for event in events if event.what in OWNERS]


def subject(event: Event, jobs: Sequence[str]) -> str:
    """Return the job, node or queue of an event; a fault that strikes no job has its own occasion as subject."""
    if not event.on:
        return event.target or event.what
    for word in re.findall(r"/([\w.-]+)", event.on):
        owner = max((job for job in jobs if word == job or word.startswith(f"{job}-")), key=len, default=None)
        if owner is not None:
            return owner
    return event.on


def leave_out(search: Search, key: Callable[[Event], Hashable]) -> None:
    """Leave out all events of a key together: of half the keys, the most frequent first, then a quarter, down
    to one.
    """
    keys = [each for each, _ in Counter(map(key, search.events)).most_common()]
    size = len(keys)
    while size > 1:
        size = (size + 1) // 2
        for start in range(0, len(keys), size):
            gone = keys[start : start + size]
            rest = [event for event in search.events if key(event) not in gone]
            if len(rest) < len(search.events):
                search.take(rest)


def leave_out_pieces(search: Search) -> None:
    """Leave out pieces of the list of events."""

    def without(start: int, end: int) -> bool:
        return search.take(search.events[:start] + search.events[end:])

    reduction.leave_out_pieces(lambda: len(search.events), without, lambda: search.exhausted)


def make_smaller(search: Search) -> None:
    """Make the script smaller: fewer pods in each job, plainer details, sooner crashes."""
    for index in range(len(search.events)):
        while any(search.take(_with(search.events, index, each)) for each in simpler_events(search.events[index])):
            pass


def _with(events: list[Event], index: int, event: Event) -> list[Event]:
    return [*events[:index], event, *events[index + 1 :]]


def simpler_events(event: Event) -> Iterator[Event]:
    """Yield the event, plainer in one respect, the plainest first."""
    details = event.details
    if "pods" in details and event.what in OWNERS:
        for pods in (1, 2, int(details["pods"]) // 2):
            if 0 < pods < int(details["pods"]):
                smaller: Object = {**details, "pods": pods}
                if event.what in JOBS:
                    smaller["min"] = min(int(details.get("min", pods)), pods)
                yield msgspec.structs.replace(event, details=smaller)
    for name in ("gpus", "port", "priority", "queue"):
        if name in details:
            yield msgspec.structs.replace(event, details={key: value for key, value in details.items() if key != name})
