# SPDX-License-Identifier: Apache-2.0
"""Amounts that queues, namespaces and users held: exact integrals of the requests of pods, and a bill for them.

A pod holds its request from its binding to its end. Amounts are in cores, bytes and pieces, times seconds; a price is
for an hour of a core, of a GiB of memory or ephemeral storage, or of a piece of anything else.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta, Struct

from pumice.config.read import mapping, read_yaml, shaped
from pumice.core.resources.amounts import CPU, MEMORY, PODS
from pumice.load.source import read_text
from pumice.questions.measures.beginning import beginning
from pumice.questions.measures.lives import Listener, Lives
from pumice.results import Result
from pumice.storage.journal import API

if TYPE_CHECKING:
    from pathlib import Path

    from pumice.questions.measures.lives import PodLife
    from pumice.storage.journal import Journal

HOUR_S: Final = 3600.0
BYTES: Final = (MEMORY, "ephemeral-storage")
GIB: Final = float(1 << 30)
NO_USER: Final = "(none)"


class HeldGroup(StrEnum):
    """Holders that amounts are summed by."""

    QUEUE = "queue"
    NAMESPACE = "namespace"
    USER = "user"

    def of(self, pod: PodLife) -> str:
        """Return the pod's. A pod without a queue or user counts for "(none)"."""
        return {"queue": pod.queue, "namespace": pod.namespace, "user": pod.user}[self.value] or NO_USER


class Prices(Struct, forbid_unknown_fields=True):
    """Prices per hour, by resource: of a core, a GiB, a piece. `currency` is only printed."""

    prices: dict[str, Annotated[float, Meta(ge=0)]]
    currency: str = ""


class HeldRow(Struct, frozen=True):
    """Amounts that one `name` held, by resource: cores, bytes or pieces times seconds. `cost`: null without prices."""

    name: str
    held_s: dict[str, float]
    cost: float | None = None


class HeldResult(Result, kw_only=True, tag="measures/2"):
    """Amounts that each holder held between two moments (seconds since the epoch), largest cost or cpu first;
    the sum of all, and the `currency` of the prices.
    """

    by: str
    begin: float
    end: float
    rows: list[HeldRow]
    total: HeldRow
    currency: str


@dataclass
class HeldAmounts(Listener):
    """Adds up what pods hold from `begin` on and before `end`."""

    by: HeldGroup
    begin: float
    end: float

    def __post_init__(self) -> None:
        self.held: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
        self._there: dict[str, PodLife] = {}

    def pod_bound(self, pod: PodLife) -> None:
        """Note that it begins to hold something."""
        self._there[pod.uid] = pod

    def pod_ended(self, pod: PodLife) -> None:
        """Add what it held."""
        if pod.ended is not None and self._there.pop(pod.uid, None) is not None:
            self._add(pod, pod.ended)

    def to(self, at: float) -> None:
        """Add what the pods hold that are there at the end."""
        for pod in self._there.values():
            self._add(pod, at)
        self._there.clear()

    def _add(self, pod: PodLife, until: float) -> None:
        assert pod.bound is not None
        seconds = min(until, self.end) - max(pod.bound, self.begin)
        if seconds <= 0:
            return
        held = self.held[self.by.of(pod)]
        held[PODS] += seconds
        for resource, amount in pod.request.items():
            if resource != PODS:
                held[resource] += amount * seconds


def read_prices(path: Path) -> Prices:
    """Return the prices of a file. Raises InputError, ConfigError, which name the file, the place and the mistake."""
    place, said = read_yaml(read_text(path), str(path))
    return shaped(place, mapping(place, said), Prices)


async def held(
    journal: Journal, by: HeldGroup, begin: float | None, end: float | None, prices: Prices | None
) -> HeldResult:
    """Return what was held between two moments; None: from the beginning, to the end. The answer's moments are nearer
    where the journal knows less: its first records were cut off, or it ends before. Raises DamagedError.
    """
    begun = await beginning(journal)
    known = begun.at if begun.after else -inf  # nothing was held before a first record
    amounts = HeldAmounts(by, begun.at if begin is None else max(begin, known), inf if end is None else end)
    last = await begun.through(journal, Lives((amounts,)), until=amounts.end, kinds=(API,))
    amounts.end = min(amounts.end, last)  # what will be held later is not known
    amounts.begin = min(amounts.begin, amounts.end)
    amounts.to(last)
    rows = [_row(name, of, prices) for name, of in sorted(amounts.held.items())]
    total: defaultdict[str, float] = defaultdict(float)
    for of in amounts.held.values():
        for resource, value in of.items():
            total[resource] += value
    return HeldResult(
        by=by.value,
        begin=round(amounts.begin, 3),
        end=round(amounts.end, 3),
        rows=sorted(rows, key=lambda row: (-(row.cost or 0.0), -row.held_s.get(CPU, 0.0), row.name)),
        total=_row("total", total, prices),
        currency="" if prices is None else prices.currency,
    )


def _row(name: str, of: dict[str, float], prices: Prices | None) -> HeldRow:
    ordered = sorted(of, key=lambda resource: (resource != CPU, resource != MEMORY, resource == PODS, resource))
    cost = None if prices is None else sum(price_of(prices, resource, of[resource]) for resource in ordered)
    rounded = {resource: round(of[resource], 3) for resource in ordered}
    return HeldRow(name, rounded, None if cost is None else round(cost, 6))


def price_of(prices: Prices, resource: str, held_s: float) -> float:
    """Return what an amount times seconds costs; nothing for a resource without a price."""
    unit = GIB if resource in BYTES else 1.0
    return held_s / unit / HOUR_S * prices.prices.get(resource, 0.0)


def hours(resource: str, held_s: float) -> float:
    """Return core-hours, GiB-hours, or piece-hours."""
    return held_s / (GIB if resource in BYTES else 1.0) / HOUR_S
