# SPDX-License-Identifier: Apache-2.0
"""Cutting a failing storm for strangers down. A real process is not deterministic: what seems harmless is tried several
times before it is believed, and how often the rest shows the violation is a rate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from pumice import reduction
from pumice.proof.storm.script.events import Event
from pumice.proof.strangers.script import StrangerScript, is_fault
from pumice.proof.strangers.storming import StormJudgement

Run = Callable[[StrangerScript], StormJudgement]


class ReducedStorm(Struct, frozen=True):
    """The smallest storm found, in how many of its runs it broke its invariant, and one that did (None: none)."""

    script: StrangerScript
    tries: int
    shown: int
    outcome: StormJudgement | None


def reduced(script: StrangerScript, run: Run, *, tries: int, runs: int) -> ReducedStorm:
    """Return the smallest storm found that breaks `script.invariant`, with at most so many runs for the search. Each
    candidate is run `tries` times, in lockstep once.
    """
    search = _Search(script, run, 1 if script.lockstep else tries, runs)
    # Faults and objects apart: without faults a violation is another one, and the most useful to know.
    search.leave_out(is_fault)
    search.leave_out(lambda event: not is_fault(event))
    outcomes = [run(search.script) for _ in range(search.tries)]
    showing = [outcome for outcome in outcomes if shows(outcome, script.invariant)]
    return ReducedStorm(search.script, len(outcomes), len(showing), showing[0] if showing else None)


def shows(outcome: StormJudgement, invariant: str) -> bool:
    """Return whether a storm broke this invariant."""
    return any(each.invariant == invariant for each in outcome.broken)


class _Search:
    def __init__(self, script: StrangerScript, run: Run, tries: int, runs: int) -> None:
        self.script = script
        self.tries = tries
        self._run = run
        self._left = runs
        self._harmless: set[bytes] = set()

    def leave_out(self, part: Callable[[Event], bool]) -> None:
        """Leave out events of a part: all together, then in pieces."""
        if not self._take([event for event in self.script.events if not part(event)]):
            reduction.leave_out_pieces(
                lambda: len(self._of(part)),
                lambda start, end: self._without(self._of(part)[start:end]),
                lambda: self._left <= 0,
            )

    def _of(self, part: Callable[[Event], bool]) -> list[int]:
        return [number for number, event in enumerate(self.script.events) if part(event)]

    def _without(self, numbers: Sequence[int]) -> bool:
        out = set(numbers)
        return self._take([event for number, event in enumerate(self.script.events) if number not in out])

    def _take(self, events: Sequence[Event]) -> bool:
        """Go on from these events when they break the same invariant."""
        if not any(event.what == "node" for event in events):
            return False  # nothing can be bound
        tried = msgspec.structs.replace(self.script, events=tuple(events))
        key = msgspec.json.encode(tried)
        if key in self._harmless or len(events) == len(self.script.events):
            return False
        for _ in range(self.tries):
            if self._left <= 0:
                return False
            self._left -= 1
            if shows(self._run(tried), tried.invariant):
                self.script = tried
                return True
        self._harmless.add(key)
        return False
