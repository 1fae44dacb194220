# SPDX-License-Identifier: Apache-2.0
"""The loop on virtual time, a thin shell around the kernel: it jumps from one event to the next, and adds only the
passing of time, later arrivals and the end.

Nothing is sent, journaled or waited for; else it is what `pumice run --time virtual` does. Within a moment all hear in
rounds what was written in the round before: the scheduler first, so that its cycle sees the news before any other
machine has answered to it, then node agents, then controllers. A cycle whose time comes at this very moment waits until
they have nothing more to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from pumice.cluster.api.bootstrap import assumed_queues
from pumice.cluster.api.checks import rules_of_change
from pumice.cluster.api.kinds import kind_of
from pumice.cluster.api.origin import entering, is_recorded, unfinished
from pumice.cluster.api.registry import FoundObject
from pumice.cluster.api.verbs.requests import SUBMIT
from pumice.cluster.kernel.fork import Fork
from pumice.cluster.kernel.intake import in_order
from pumice.cluster.kernel.kernel import Kernel
from pumice.cluster.kube.statuses import timestamp
from pumice.cluster.timers import moment
from pumice.core.messages.commands import BindPod, Create, EvictPod, StoreRequest
from pumice.core.messages.decisions import Bind, CycleResult, Evict
from pumice.core.messages.events import Mutation
from pumice.core.messages.replies import ApiReply, Refused
from pumice.core.objects.metadata import Object, section
from pumice.core.session.trail.trail import NULL_TRAIL, NullTrail
from pumice.storage import codec

ROUNDS: Final = 10_000
"""Rounds in one moment; more is a world that talks to itself."""

Hears = Callable[[Mutation, float], None]
"""Receives a change and its time; `Kernel.decoded` has its object."""
Decided = Callable[[CycleResult, float], None]


class Life:
    """One future, from `now` on. `hears` is called with every change of an object before any machine sees it, `decided`
    with every cycle before it is carried out.

    `trail` hears what the actions of each cycle do. `refused`: objects that the api would not have, with its answer;
    `denied`: what was asked of it in vain.
    """

    def __init__(self, fork: Fork, seed: int, hears: Hears, decided: Decided, trail: NullTrail = NULL_TRAIL) -> None:
        self.kernel = Kernel(fork, seed, trail)
        self.now = fork.now
        self.refused: list[tuple[Object, Refused]] = []
        self.denied: list[tuple[StoreRequest, Refused]] = []
        self._hears, self._decided = hears, decided
        self._from = replace(fork, objects=(), later=(), asks=(), before={})
        self._period_s = fork.config.pumice.schedule_period_s
        self._later = list[tuple[float, bytes]]()
        self.expect([(after_s, codec.pack(obj)) for after_s, obj in fork.later])
        self._elapsed = 0.0  # as a loop counts it: a time of day is too coarse to add up periods
        # the first cycle does not wait for a period to pass
        self._earliest = -self._period_s
        with self.kernel.decoded.keeping_all():
            self._begin(fork)

    def _begin(self, fork: Fork) -> None:
        self._bring([*assumed_queues(fork.objects), *in_order(fork.objects)])
        for place, before in fork.before.items():
            self._judge(before, fork.objects[place])
        for number, decision in enumerate(fork.in_flight):
            self.kernel.apply(_landing(decision, f"{fork.cycle}/{number}"), self.now)
        for ask in fork.asks:
            reply = self.kernel.apply(ask, self.now)
            if isinstance(reply, Refused):
                self.denied.append((ask, reply))
        for mutation in self.kernel.drain():
            self._hears(mutation, self.now)
        self.kernel.begin()

    def _bring(self, objects: Sequence[Object]) -> None:
        """Create new objects, and load those that a cluster had."""
        for obj in objects:
            self._note(self.kernel.apply(entering(obj), self.now), obj)
        for deletion in unfinished(objects):
            self.kernel.apply(deletion, self.now)

    def _judge(self, before: Object, after: Object) -> None:
        """Ask the rules of changes: loaded objects are not judged, later writes to them are."""
        kind = kind_of(after.get("apiVersion"), after["kind"])
        if kind is not None and is_recorded(before):
            # copies: the rules of a change fill in defaults
            old, new = codec.unpack(codec.pack(before)), codec.unpack(codec.pack(after))
            meta = after["metadata"]
            found = FoundObject((kind.key, meta.get("namespace") or "", meta["name"]), kind, old)
            if refused := rules_of_change(self.kernel.store.registry, found, new):
                self.refused.append((after, refused))

    def _note(self, reply: ApiReply, asked: Object | bytes) -> None:
        if isinstance(reply, Refused) and reply.reason != "AlreadyExists":
            self.refused.append((codec.unpack(asked) if isinstance(asked, bytes) else asked, reply))

    # --- time

    def run(self, seconds: float, advance: Callable[[float], bool | None] = lambda seconds: None) -> None:
        """Run for so many seconds. `advance` is called at the end of every moment with the seconds so far; it returns
        True to stop.
        """
        for elapsed in self.moments(seconds):
            if advance(elapsed):
                return
        self._to(seconds)

    def moments(self, seconds: float) -> Iterator[float]:
        """Run from one moment to the next, at most for so many seconds, and yield the seconds so far after each."""
        while True:
            self._moment()
            yield self._elapsed
            due = self._next_due()
            if due is None or due > seconds:
                return
            self._to(max(due, self._elapsed))

    @property
    def elapsed(self) -> float:
        """Return the seconds so far."""
        return self._elapsed

    def expect(self, later: Iterable[tuple[float, bytes]]) -> None:
        """Expect these objects, packed, so many seconds after the beginning: a trace has a million of them, and as
        dictionaries each takes three kilobytes.
        """
        coming = [*reversed(self._later), *((moment(after_s), blob) for after_s, blob in later)]
        # the latest first, so that the next one is popped from the end: of one moment the first given comes first
        self._later = sorted(coming, key=lambda each: each[0])[::-1]

    def submit(self, objects: Iterable[Object]) -> None:
        """Submit these objects now; `refused` has those that the api refused."""
        self._bring(in_order([*objects]))

    def fork(self) -> Fork:
        """Return the cluster as it is now, to be run differently. Running pods began in whole seconds; those without a
        start time have run since this life began, as far as is known.
        """
        kernel, began = self.kernel, self._from.now
        return replace(
            self._from,
            objects=tuple(_begun(obj, began) for obj in kernel.objects()),
            now=self.now,
            cycle=kernel.cycle,
            carry=kernel.carry.to_dict(),
            in_flight=kernel.in_flight,
            later=tuple((max(at - self._elapsed, 0.0), codec.unpack(blob)) for at, blob in reversed(self._later)),
        )

    def _to(self, elapsed: float) -> None:
        self._elapsed = moment(elapsed)
        self.now = moment(self._from.now + elapsed)

    def _next_due(self) -> float | None:
        others, cycle = self.kernel.next_due(), self._next_cycle()
        due = [] if others is None else [moment(self._elapsed + max(others - self.now, 0.0))]
        if cycle is not None:
            due.append(cycle)
        if self._later:
            due.append(self._later[-1][0])
        return min(due, default=None)

    def _next_cycle(self) -> float | None:
        """Return the time of the next cycle: a reason exists, and the period of the cycle before is over."""
        due = self.kernel.cycle_due()
        return None if due is None else max(self._earliest, moment(self._elapsed + due - self.now))

    def _is_due(self) -> bool:
        cycle = self._next_cycle()
        return cycle is not None and cycle <= self._elapsed

    def _moment(self) -> None:
        """Do everything that happens at this moment."""
        while self._later and self._later[-1][0] <= self._elapsed:
            coming = self._later.pop()[1]
            self._note(self.kernel.apply(Create(coming, user=SUBMIT), self.now), coming)
        quiet = False
        for _ in range(ROUNDS):
            self._hear()
            # not before a round in which nothing stirred: the others have answered by then
            if quiet and self._is_due():
                self._decide()
            self.kernel.turn(self.now)
            stirring = self.kernel.is_stirring
            if not stirring and (quiet or not self._is_due()):
                return
            quiet = not stirring
        raise RuntimeError(f"bug in Pumice: the moment {self.now} does not end")

    def _hear(self) -> None:
        changes = self.kernel.drain()
        for mutation in changes:
            self._hears(mutation, self.now)
        self.kernel.publish(changes)

    def _decide(self) -> None:
        self._earliest = moment(self._elapsed + self._period_s)
        result = self.kernel.decide(self.now)
        if result is not None:
            self._decided(result, self.now)


def _begun(obj: Object, began: float) -> Object:
    """Return a pod that was submitted as running with its `startTime`: without it the pod would begin anew in another
    life.
    """
    status = section(obj, "status")
    if obj["kind"] != "Pod" or status.get("phase") != "Running" or status.get("startTime"):
        return obj
    return {**obj, "status": {**status, "startTime": timestamp(began)}}


def _landing(decision: Bind | Evict, cause: str) -> BindPod | EvictPod:
    whose = (decision.namespace, decision.name, decision.uid)
    if isinstance(decision, Bind):
        return BindPod(*whose, decision.node, cause, 0, decision.annotations)
    return EvictPod(*whose, cause=cause)
