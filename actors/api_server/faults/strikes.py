# SPDX-License-Identifier: Apache-2.0
"""Choice of the fault that strikes a request of the api: from a seed and rates, or from a list. Pure;
`pumice.actors.api_server.faults.faulty_server` carries it out.

A fault waits for an *occasion*: what is asked about what, for the n-th time ("bind default/web-0 #2"). Whether one
strikes there depends on the seed and the occasion alone and not on what came before, so a storm that is cut down still
meets the faults that are left of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Protocol, assert_never

from pumice.cluster.faults.decisions import chance
from pumice.config.errors import ConfigError
from pumice.core.messages import commands
from pumice.core.messages.commands import ReadRevision, Reflect
from pumice.storage import codec

# --- Occasions: "bind default/web-0 #2"

SCHEDULER: Final = "scheduler"
PRE_BINDER: Final = "pre-bind-worker"


class Occasions:
    """Names occasions, and counts how often each came up."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def count(self, what: str) -> str:
        """Return the occasion's name, `what #n`."""
        times = self._seen[what] = self._seen.get(what, 0) + 1
        return f"{what} #{times}"


_SORTS: Final[dict[type[commands.StoreRequest], tuple[str, str]]] = {
    commands.UpdateStatus: ("status", SCHEDULER),
    commands.Patch: ("status", SCHEDULER),
    commands.ReportStatus: ("status", ""),
    commands.BindPod: ("bind", ""),
    commands.EvictPod: ("evict", ""),
    commands.RequestEviction: ("evict", ""),
    commands.Update: ("claim", PRE_BINDER),
    commands.Create: ("submit", "submit"),
}
"""By class: the sort, and the user whose request is of it ("": any user's)."""
_OTHER: Final = ("other", "")


def sort_of(request: commands.StoreRequest) -> str:
    """Return the sort of a request: the same kinds of faults can strike all of one sort."""
    sort, user = _SORTS.get(type(request), _OTHER)
    return sort if not user or getattr(request, "user", "") == user else "other"


def watching(kinds: Sequence[str]) -> str:
    """Return a text for a watch of these kinds that tells watchers apart."""
    return f"watch {'+'.join(kinds[:2])}"


def subject(request: commands.StoreRequest) -> str:
    """Return the verb and object of a request, in words that stay the same when other events of a storm are left
    out.
    """
    match request:
        case commands.UpdateStatus():
            return f"status {request.kind} {request.namespace}/{request.name} by {request.user}"
        case commands.ReportStatus():
            return f"status {request.kind} {request.namespace}/{request.name} by {SCHEDULER}"
        case commands.BindPod():
            return f"bind {request.namespace}/{request.name}"
        case commands.EvictPod():
            return f"evict {request.namespace}/{request.name}"
        case commands.Patch():
            return f"patch {request.kind} {request.namespace}/{request.name} by {request.user}"
        case commands.Delete() | commands.Get() | Reflect():
            return f"{type(request).__name__.lower()} {request.kind} {request.namespace}/{request.name}"
        case commands.List() | commands.OpenListing():
            return f"list {request.kind}"
        case ReadRevision():
            return "revision"
        case commands.RequestEviction():
            return f"eviction {request.namespace}/{request.name}"
        case commands.Update() if request.user == PRE_BINDER:
            # An Update has a blob alone, so the claim is named by what is in it.
            obj = codec.unpack(request.blob)
            return f"claim {obj['kind']} {obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"
        case commands.Create() | commands.LoadObject() | commands.Update():
            # Not the object: its name may be generated, or follow from what a shorter storm leaves out.
            return f"{type(request).__name__.lower()} by {request.user}"
        case _:
            assert_never(request)


BIND: Final = (
    "bind-refused",
    "bind-lost",
    "bind-unanswered",
    "bind-dropped",
    "bind-delayed",
    "bind-reordered",
    "bind-duplicated",
    "bind-answered-late",
    "bind-node-removed",
    "bind-node-cordoned",
    "bind-node-shrunk",
    "bind-pod-deleted",
)
EVICT: Final = ("evict-blocked", "evict-lost", "evict-delayed", "evict-duplicated")
STATUS: Final = ("status-conflict", "status-lost", "status-delayed")
CLAIM: Final = ("claim-conflict", "claim-lost", "claim-delayed")
"""Writes to claims and volumes before a pod is bound."""
WATCH: Final = ("watch-broken", "watch-replayed", "watch-gone")
CRASH: Final = "crash"
JOURNAL: Final = ("journal-slow", "journal-failing", "journal-unsure", "journal-torn")
OUTSIDE: Final = ("outside-refused", "outside-late", "outside-garbage", "outside-failing")
"""Faults of an extender instead of an answer: it does not listen, takes too long, says nonsense, or 500."""
TURN: Final = ("held",)
"""An actor that could go on is passed over for so many turns of the loop: others run before it, however often."""

KINDS: Final = frozenset((*BIND, *EVICT, *STATUS, *CLAIM, *WATCH, *JOURNAL, *OUTSIDE, *TURN, CRASH))
MOST_TURNS: Final = 60
LONGEST_S: Final = 8.0
"""Delays stay below the time after which an answer is given up: a bind that comes later than that is another world."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: `what` at the occasion `on`. `amount`: seconds for delays, steps until a crash, turns of the loop to
    be held for; `target`: the actor to crash.
    """

    what: str
    on: str
    amount: float = 0.0
    target: str = ""


class Faults(Protocol):
    """Source of faults. `struck`: those so far, in order."""

    struck: list[Fault]

    def strike(self, request: commands.StoreRequest) -> Fault | None:
        """Return the fault of this request; None without a fault."""
        ...

    def strike_watch(self, kinds: Sequence[str]) -> Fault | None:
        """Return the fault of this reading of a watch of these kinds."""
        ...

    def strike_append(self) -> Fault | None:
        """Return the fault of this write to the journal."""
        ...

    def strike_outside(self, asked: str) -> Fault | None:
        """Return the fault of this question to an extender: the verb, and the extender."""
        ...

    @property
    def holds(self) -> bool:
        """Return whether any request may be held."""
        ...

    def strike_turn(self, who: str) -> int:
        """Return for how many turns of the loop this ready actor is held; 0 when it goes on."""
        ...

    def stop(self) -> None:
        """Stop all faults from now on."""
        ...


class SeededFaults:
    """Faults from rates: the probability of each kind on each occasion that it can strike.

    A request that no kind with a rate can strike is not counted. `crashable`: the actors that may crash.
    """

    def __init__(
        self,
        seed: int,
        rates: Mapping[str, float],
        *,
        longest_s: float = LONGEST_S,
        crashable: Sequence[str],
    ) -> None:
        if unknown := sorted(rates.keys() - KINDS):
            raise ConfigError(f"unknown fault {unknown[0]!r}; known: {', '.join(sorted(KINDS))}")
        self.struck: list[Fault] = []
        self._seed = seed
        self._odds = {sort: _parts(kinds, rates) for sort, kinds in POSSIBLE.items()}
        self._longest_s = longest_s
        self._crashable = crashable
        self._occasions = Occasions()
        self._stopped = not rates

    def strike(self, request: commands.StoreRequest) -> Fault | None:
        """Return the fault of this request; None without a fault."""
        if self._stopped:
            return None
        odds = self._odds[sort_of(request)]
        return self._first(odds, self._occasions.count(subject(request))) if odds else None

    def strike_watch(self, kinds: Sequence[str]) -> Fault | None:
        """Return the fault of this reading of a watch of these kinds."""
        if self._stopped:
            return None
        odds = self._odds["watch"]
        return self._first(odds, self._occasions.count(watching(kinds))) if odds else None

    def strike_append(self) -> Fault | None:
        """Return the fault of this write to the journal."""
        if self._stopped:
            return None
        odds = self._odds["append"]
        return self._first(odds, self._occasions.count("append")) if odds else None

    def strike_outside(self, asked: str) -> Fault | None:
        """Return the fault of this question to an extender: the verb, and the extender."""
        if self._stopped:
            return None
        odds = self._odds["outside"]
        return self._first(odds, self._occasions.count(f"outside {asked}")) if odds else None

    @property
    def holds(self) -> bool:
        """Return whether any request may be held."""
        return bool(self._odds["turn"])

    def strike_turn(self, who: str) -> int:
        """Return for how many turns of the loop this ready actor is held; 0 when it goes on."""
        if self._stopped:
            return 0
        fault = self._first(self._odds["turn"], self._occasions.count(f"turn {who}"))
        return int(fault.amount) if fault is not None else 0

    def stop(self) -> None:
        """Stop all faults from now on."""
        self._stopped = True

    def _first(self, odds: list[tuple[str, float]], on: str) -> Fault | None:
        """Return one throw for all kinds: each has its own part of the interval from 0 to 1."""
        thrown = chance(self._seed, on)
        # Nearly every throw strikes nothing: one comparison finds that.
        if thrown >= odds[-1][1]:
            return None
        for what, end in odds:
            if thrown < end:
                fault = self._made(what, on)
                self.struck.append(fault)
                return fault
        return None

    def _made(self, what: str, on: str) -> Fault:
        # A throw of its own: the amount must not follow from how narrowly the first one struck.
        share = chance(self._seed, f"{on}\0{what}\0amount")
        if what == CRASH:
            who = self._crashable[int(chance(self._seed, f"{on}\0{what}\0target") * len(self._crashable))]
            return Fault(what, on, float(int(share * 40)), who)
        if what in TURN:
            return Fault(what, on, float(1 + int(share * share * MOST_TURNS)))
        longest = 0.05 if what.endswith("reordered") else self._longest_s
        # Squared: most delays are short and a few are long.
        return Fault(what, on, round(share * share * longest, 4))


class ListedFaults:
    """Exactly the listed faults, each at its occasion."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.struck: list[Fault] = []
        # By occasion, since a storm that is cut down meets the same occasions in another order.
        self._by_occasion = {fault.on: fault for fault in faults}
        self._occasions = Occasions()
        self._stopped = False

    def strike(self, request: commands.StoreRequest) -> Fault | None:
        """Return the fault of this request; None without a fault."""
        return self._take(self._occasions.count(subject(request)))

    def strike_watch(self, kinds: Sequence[str]) -> Fault | None:
        """Return the fault of this reading of a watch of these kinds."""
        return self._take(self._occasions.count(watching(kinds)))

    def strike_append(self) -> Fault | None:
        """Return the fault of this write to the journal."""
        return self._take(self._occasions.count("append"))

    def strike_outside(self, asked: str) -> Fault | None:
        """Return the fault of this question to an extender: the verb, and the extender."""
        return self._take(self._occasions.count(f"outside {asked}"))

    @property
    def holds(self) -> bool:
        """Return whether any request may be held."""
        return any(fault.what in TURN for fault in self._by_occasion.values())

    def strike_turn(self, who: str) -> int:
        """Return for how many turns of the loop this ready actor is held; 0 when it goes on."""
        fault = self._take(self._occasions.count(f"turn {who}"))
        return int(fault.amount) if fault is not None else 0

    def stop(self) -> None:
        """Stop all faults from now on."""
        self._stopped = True

    def _take(self, on: str) -> Fault | None:
        fault = None if self._stopped else self._by_occasion.get(on)
        if fault is not None:
            self.struck.append(fault)
        return fault


def _parts(kinds: Sequence[str], rates: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return the kinds that have a rate, with the ends of their parts of the interval from 0 to 1."""
    able = [what for what in kinds if rates.get(what)]
    return list(zip(able, accumulate(rates[what] for what in able), strict=True))


POSSIBLE: Final = {
    "bind": (*BIND, CRASH),
    "evict": (*EVICT, CRASH),
    "status": (*STATUS, CRASH),
    "claim": (*CLAIM, CRASH),
    "watch": (*WATCH, CRASH),
    "append": JOURNAL,
    "turn": TURN,
    "outside": OUTSIDE,
    "submit": (),
    "other": (CRASH,),
}
"""The kinds of faults that can strike, by the sort of request; a write to the journal is one of them."""
