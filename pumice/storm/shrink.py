"""Cutting a failing storm down to the few events that matter.

The faults that struck are written out beside the inputs, so that every event can be left out by itself; then pieces are
left out, large ones first, as long as the same invariant breaks (delta debugging), and what is left is made smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from pumice.storm.script import Event, Script
from pumice.storm.simulation import Outcome, simulate

Simulate = Callable[[Script], Outcome]


@dataclass(slots=True)
class Budget:
    """How many storms may still be run."""

    left: int

    def spend(self) -> bool:
        """False when there is nothing left."""
        self.left -= 1
        return self.left >= 0


def written_out(script: Script, outcome: Outcome) -> Script:
    """The same storm with every fault that struck as an event of its own, and no rates."""
    inputs = [event for event in script.events if not event.on]
    invariant = outcome.violations[0].invariant if outcome.violations else ""
    return msgspec.structs.replace(script, events=(*inputs, *outcome.struck), rates={}, invariant=invariant)


def shrink(script: Script, outcome: Outcome, *, runs: int = 400, simulate: Simulate = simulate) -> Script:
    """The smallest script found that breaks the same invariant; the written-out one when that does not repeat."""
    budget = Budget(runs)
    whole = written_out(script, outcome)

    def fails(events: Sequence[Event]) -> bool:
        if not budget.spend():
            return False
        found = simulate(msgspec.structs.replace(whole, events=tuple(events))).violations
        return bool(found) and found[0].invariant == whole.invariant

    if not fails(whole.events):
        return whole
    events = without_pieces(list(whole.events), fails)
    events = made_smaller(events, fails)
    return msgspec.structs.replace(whole, events=tuple(without_pieces(events, fails)))


def without_pieces(events: list[Event], fails: Callable[[Sequence[Event]], bool]) -> list[Event]:
    """Leave out pieces of half the list, then a quarter, down to single events."""
    size = max(1, len(events) // 2)
    while True:
        start, before = 0, len(events)
        while start < len(events):
            rest = events[:start] + events[start + size :]
            if fails(rest):
                events = rest
            else:
                start += size
        if size > 1:
            size //= 2
        elif len(events) == before:
            return events


def made_smaller(events: list[Event], fails: Callable[[Sequence[Event]], bool]) -> list[Event]:
    """Fewer pods in each job, plainer details, rounder amounts."""
    for index in range(len(events)):
        for simpler in simpler_events(events[index]):
            tried = [*events[:index], simpler, *events[index + 1 :]]
            if fails(tried):
                events = tried
    return events


def simpler_events(event: Event) -> Iterator[Event]:
    """The same event, plainer in one respect, the plainest first."""
    details = event.details
    if "pods" in details and event.what in ("job", "vcjob"):
        for pods in (1, 2, int(details["pods"]) // 2):
            if 0 < pods < int(details["pods"]):
                smaller: dict[str, Any] = {**details, "pods": pods}
                smaller["min"] = min(int(details.get("min", pods)), pods)
                yield msgspec.structs.replace(event, details=smaller)
    for name in ("gpus", "port", "priority", "queue"):
        if name in details:
            yield msgspec.structs.replace(event, details={key: value for key, value in details.items() if key != name})
