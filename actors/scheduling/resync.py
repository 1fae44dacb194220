# SPDX-License-Identifier: Apache-2.0
"""Schedule for looking again at pods whose bind or eviction failed: exponential back-off per pod, as Volcano's queue of
errors.

Source: Volcano `pkg/scheduler/cache` (errTasks): 5 ms doubling up to 1000 s for each item, forgotten on success.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from pumice.core.messages.decisions import Evict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.core.messages.decisions import BindContext, Decision

FIRST_S = 0.005
LONGEST_S = 1000.0


@dataclass(frozen=True, order=True, slots=True)
class Due:
    """One pod to be looked at again at `at` (event-loop time, seconds)."""

    at: float
    number: int
    namespace: str = field(compare=False)
    name: str = field(compare=False)
    uid: str = field(compare=False)
    evicting: bool = field(compare=False)


class ResyncQueue:
    """Failed pods, ordered by time, then by arrival."""

    def __init__(self) -> None:
        self._heap: list[Due] = []
        self._failures: dict[str, int] = {}
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def next_at(self) -> float:
        """Return when the earliest pod is due; infinity without one."""
        return self._heap[0].at if self._heap else float("inf")

    def failed(self, now: float, namespace: str, name: str, uid: str, *, evicting: bool = False) -> float:
        """Count a failure of this pod, and return the delay (seconds) until it is looked at again."""
        failures = self._failures.get(uid, 0)
        self._failures[uid] = failures + 1
        delay = delay_s(failures)
        self._arrivals += 1
        heappush(self._heap, Due(now + delay, self._arrivals, namespace, name, uid, evicting))
        return delay

    def succeeded(self, uid: str) -> None:
        """Reset the delay of this pod to the shortest one."""
        self._failures.pop(uid, None)

    def take_due(self, now: float) -> list[Due]:
        """Take out all that are due, earliest first."""
        due: list[Due] = []
        while self._heap and self._heap[0].at <= now:
            due.append(heappop(self._heap))
        return due


class InFlight(Struct, frozen=True):
    """A bind to `node`, or an eviction, whose outcome is awaited until `deadline` (event-loop time, seconds).

    `pre_bind`: what the bind's claims were promised.
    """

    deadline: float
    namespace: str
    name: str
    uid: str
    node: str
    evicting: bool = False
    pre_bind: BindContext | None = None


class Awaited:
    """Decisions in flight by uid. An outcome that never comes (its carrier crashed) is given up after `patience_s`.

    It outlives a crash of the cache: what is on its way stays on its way, and the next view must count it.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._in_flight: dict[str, InFlight] = {}
        self._with_claims: dict[str, InFlight] = {}  # few; their patience is their own

    def __len__(self) -> int:
        return len(self._in_flight) + len(self._with_claims)

    def __contains__(self, uid: object) -> bool:
        return uid in self._in_flight or uid in self._with_claims

    def __iter__(self) -> Iterator[InFlight]:
        """Yield the oldest first, those with claims after the others."""
        return iter((*self._in_flight.values(), *self._with_claims.values()))

    @property
    def next_at(self) -> float:
        """Return when the earliest pod is given up; infinity without one."""
        first = next(iter(self._in_flight.values())).deadline if self._in_flight else float("inf")
        return min([first, *(each.deadline for each in self._with_claims.values())])

    def add(self, now: float, decision: Decision) -> None:
        """Await the outcome from now on."""
        uid, evicting = decision.uid, isinstance(decision, Evict)
        self.came(uid)  # deadlines rise in the order of insertion, except where volumes are waited for
        needs = None if isinstance(decision, Evict) else decision.pre_bind
        deadline = now + self._patience_of(needs)
        whose = (decision.namespace, decision.name, uid, decision.node, evicting)
        (self._in_flight if needs is None or not needs.waits else self._with_claims)[uid] = InFlight(
            deadline, *whose, needs
        )

    def _patience_of(self, needs: BindContext | None) -> float:
        return self._patience_s + (needs.timeout_s if needs is not None and needs.waits else 0.0)

    def came(self, uid: str) -> None:
        """Note that the outcome has come."""
        self._in_flight.pop(uid, None)
        self._with_claims.pop(uid, None)

    def put_off(self, now: float, by_s: float) -> None:
        """Extend the deadlines by a time in which no outcome could arrive. Later sends get no extension."""
        for table in (self._in_flight, self._with_claims):
            for uid, each in table.items():
                latest = now + self._patience_of(each.pre_bind)
                table[uid] = replace(each, deadline=min(each.deadline + by_s, latest))

    def take_overdue(self, now: float) -> list[InFlight]:
        """Remove and return all that are past their deadline."""
        overdue: list[InFlight] = []
        for each in self._in_flight.values():
            # deadlines rise in the order of insertion here: all others are later
            if each.deadline > now:
                break
            overdue.append(each)
        overdue += [each for each in self._with_claims.values() if each.deadline <= now]
        for each in overdue:
            self.came(each.uid)
        return overdue


def delay_s(failures: int) -> float:
    """Return the seconds to wait after so many earlier failures."""
    # the exponent is capped: a float overflows at 2**1024
    return min(FIRST_S * 2.0 ** min(failures, 60), LONGEST_S)
