# SPDX-License-Identifier: Apache-2.0
"""One cluster around one scheduler, without waiting: changes and the time go in, requests come out.

Clocks, watchers and the disk are unknown here: a shell has them (`pumice.cluster.kernel.life`, on
virtual time). A moment of it: hand in requests (`apply`); take what has changed (`drain`), make of it what you like,
then let all see it (`publish`); have a cycle where one is due (`decide`); let the others answer (`turn`); and again,
until nothing `is_stirring`. Messages that no decision reads are not written.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final

from pumice.cluster.api.store import Store
from pumice.cluster.kernel.effects import Effects
from pumice.cluster.kernel.fork import Fork
from pumice.cluster.kernel.machine_host import MachineHost, StoreApi
from pumice.cluster.kernel.roster import DECIDING, Surroundings
from pumice.core.actions import ANSWERING, PLACING
from pumice.core.cycle import Trail, close_session, open_session, run_action, run_cycle
from pumice.core.fold.shown import Shown
from pumice.core.life.task import TaskStatus
from pumice.core.messages.commands import StoreRequest
from pumice.core.messages.decisions import Bind, CycleResult
from pumice.core.messages.events import AssumedCycle, Mutation
from pumice.core.messages.replies import ApiReply
from pumice.core.objects.metadata import Object
from pumice.core.objects.parts import WATCHED
from pumice.core.objects.queue import is_counted
from pumice.core.outside import Supposing
from pumice.core.session.carry import Carry, CycleClock, SessionOptions
from pumice.core.session.trail.trail import NULL_TRAIL, NullTrail
from pumice.core.state.no_op_cycles import Recurrence, waits
from pumice.core.state.view import View
from pumice.core.state.volumes import volume_rules
from pumice.storage.shared_objects import SharedObjects

# --- Changes that cannot affect a decision

OVER: Final = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)


def stirs(shown: Shown[View], mutation: Mutation, obj: Object, own: set[int]) -> bool:
    """Show the view the changes. Return whether they may matter to a cycle without pods to place.

    `own`: revisions of what the cycle before said of PodGroups, which is forgotten as it comes back.
    """
    view, kind = shown.view, mutation.kind
    if kind == "PodGroup" and mutation.revision in own:
        own.discard(mutation.revision)
        shown.see(mutation.type, obj)
        return False
    if kind == "PodGroup" and mutation.type == "DELETED":
        # Asked before the view sees it: afterwards the job is not there to be asked.
        still = _is_over(view, f"{mutation.namespace}/{mutation.name}")
        shown.see(mutation.type, obj)
        return not still
    before = view.queues.get(mutation.name) if kind == "Queue" else None
    shown.see(mutation.type, obj)
    now = view.queues.get(mutation.name)
    return before is None or now is None or now.allocated != before.allocated or not is_counted(before, now)


def _is_over(view: View, key: str) -> bool:
    """Return whether the job has no pods, or only pods that have ended."""
    job = view.jobs.by_key.get(key)
    return job is None or view.jobs.counts[:, job.row].sum() == view.jobs.counts[OVER, job.row].sum()


IMMEDIATELY: Final = -inf
_WATCHED: Final = frozenset(WATCHED)
_UNWORDED: Final = ("PodGroup", "Queue")
"""Kinds whose changes alone do not make a cycle say otherwise why pods wait."""


class Kernel:
    """A cluster that continues from a fork: with its configuration, cycle and carry, but still without its objects.

    Times are seconds since the epoch. `trail` hears what the actions of each cycle do. `decoded`: the objects of its
    changes, shared by all who read them.
    """

    def __init__(self, fork: Fork, seed: int, trail: NullTrail = NULL_TRAIL) -> None:
        self.cycle = fork.cycle
        self.carry = Carry.from_dict(fork.carry)
        self._config, self._seed, self._trail = fork.config, seed, trail
        self._options = SessionOptions(wordless=PLACING.issuperset(fork.config.actions))
        self._only_answers = ANSWERING.issuperset(fork.config.actions)
        self.decoded = SharedObjects()
        self.store = Store(seed=fork.uid_seed(seed), written=self.decoded)
        self._shown: Shown[View] = Shown(View)
        self._effects = Effects(self.store, wordless=self._options.wordless)
        fixes = fork.config.pumice.fix
        given = Surroundings(
            unpack=self.decoded.unpack, default_duration_s=fork.default_duration_s, fixes=lambda: fixes, aloud=False
        )
        api = StoreApi(self.store, self.decoded)
        self._machines = [MachineHost(api, group.machines(given), group.waits_for) for group in DECIDING]
        # below every version: the first cycle is due, even in an empty cluster
        self._seen = -1
        self._turned = False
        self._changed: set[str] = set()
        self._due: float | None = None
        self._wake_at: float | None = None
        self._recurrence, self._in_vain = Recurrence(), False
        self._again = self._may_be_no_op = self._settled = False
        self._stirred = self._worded = self._moved = True
        self._decision: CycleResult | None = None
        self._newest: tuple[CycleClock, Carry] | None = None

    # --- what goes in

    @property
    def view(self) -> View:
        """Return the scheduler's view."""
        return self._shown.view

    @property
    def in_flight(self) -> tuple[Bind, ...]:
        """Return binds that wait for claims."""
        return self._effects.in_flight()

    def objects(self) -> list[Object]:
        """Return all objects, the longest unchanged first; they must not be changed."""
        tables = self.store.tables
        records = [record for kind in tables.kinds() for _, record in tables.of_kind(kind)]
        return [tables.seen(record) for record in sorted(records, key=lambda one: one.revision)]

    def apply(self, request: StoreRequest, now: float) -> ApiReply:
        """Ask the api."""
        return self.store.apply(request, now)

    def begin(self) -> None:
        """Take the present objects as old: all machines list them, and none sees them as changes."""
        # Each machine lists what stands when it begins; from the log it would hear all of it once more.
        self.store.log.forget_all(self.store.revision)
        for kind in WATCHED:
            for _, record in self.store.tables.of_kind(kind):
                self._shown.see("ADDED", self.store.tables.seen(record))
        for each in self._machines:
            each.begin()

    def drain(self) -> Sequence[Mutation]:
        """Take the changes; the caller must `publish` them before any other call."""
        return self.store.drain()

    def publish(self, changes: Sequence[Mutation]) -> None:
        """Publish the changes; the scheduler sees them immediately, the machines in their turn."""
        self._changed |= self.store.publish()
        for mutation in changes:
            if mutation.kind == "PodGroup" and mutation.type == "DELETED":
                self._effects.forget(mutation.namespace, mutation.name)
            if mutation.kind in _WATCHED:
                before = self.view.version
                self._worded |= mutation.kind not in _UNWORDED
                self._stirred |= stirs(self._shown, mutation, self.decoded.unpack(mutation.blob), self._effects.own)
                if mutation.revision in self._effects.quiet:
                    self._effects.quiet.discard(mutation.revision)
                    # seen already: a change that brings nothing to decide by must not make a cycle due
                    self._seen += self.view.version - before

    # --- what comes out

    @property
    def is_stirring(self) -> bool:
        """Return whether some machine has not seen a change yet."""
        return bool(self.store.outbox)

    def turn(self, now: float) -> None:
        """Let claims, node agents and controllers answer to the changes. Once they have no more requests, carry out the
        decisions, which pass through a session and to disk meanwhile.
        """
        self._effects.look(self.view, now)
        if self._changed or not self._turned or (self._due is not None and self._due <= now):
            # what they write meanwhile is published before the next turn, in which they hear of it
            changed, self._changed, self._turned = self._changed, set(), True
            for each in self._machines:
                # most rounds of a moment concern one group or two: the others would look, and rest
                if each.has_work(changed, now):
                    each.turn(now)
            self._due = min((at for each in self._machines if (at := each.next_due()) is not None), default=None)
        if self._decision is not None and not self.is_stirring:
            self._carry_out(self._decision, now)

    def next_due(self) -> float | None:
        """Return when a machine other than the scheduler has work without any change; None for never."""
        claims = self._effects.next_due()
        return self._due if claims is None else claims if self._due is None else min(claims, self._due)

    # --- cycles

    def cycle_due(self) -> float | None:
        """Return when a reason for the next cycle comes, which may be `IMMEDIATELY`; None before a change comes."""
        if self._again or self.view.version > self._seen:
            return IMMEDIATELY
        return None if self._in_vain else self._wake_at

    def decide(self, now: float) -> CycleResult | None:
        """Run a cycle; None when no input of a decision has changed, so that the result is known."""
        # a cycle that is left out counts, too: numbers are those of a run that decides every cycle
        self.cycle += 1
        idle = self._settled and not (self._wake_at and self._wake_at <= now)
        idle = idle and ((self._may_be_no_op and self.view.version == self._seen) or self._is_still())
        self._again = self._may_be_no_op = False
        if idle:
            self._seen = self.view.version
            return None
        return self._run_cycle(now)

    def _is_still(self) -> bool:
        """Return whether no pod waits for a place and the last cycle's own writes are the only news since."""
        return not self._stirred and self._only_answers and not waits(self.view)

    def _run_cycle(self, now: float) -> CycleResult:
        self._seen, self._moved = self.view.version, self._stirred and self._worded
        self._stirred = self._worded = False
        before = self.carry.to_dict()
        snapshot = self.view.snapshot(volume_rules(self._config), kept=True)
        clock = CycleClock(self.cycle, now, self._seed)
        self._newest = clock, self.carry
        result = run_cycle(snapshot, self._config, clock, self.carry, self._options, trail=self._trail, ask=Supposing())
        self._in_vain = self._recurrence.is_in_vain(result, now)
        self.carry, self._wake_at = Carry.from_dict(result.carry), result.wake_at
        # With ties by hash the cycle's number decides, too: the same input may have another result.
        self._settled = result.carry == before and self._config.pumice.ties != "hash"
        self._decision = result
        return result

    def _has_waiting(self) -> bool:
        """Return whether a pod without a gate waits: a cycle says why."""
        jobs = self.view.jobs
        return bool((jobs.counts[TaskStatus.PENDING] > jobs.gated).any())

    def look_again(self, trail: Trail) -> CycleResult:
        """Return the newest cycle, decided once more and followed. To be called before its decisions are
        carried out.
        """
        assert self._newest is not None, "a cycle has been decided"
        clock, carry = self._newest
        snapshot = self.view.snapshot(volume_rules(self._config))
        session = open_session(snapshot, self._config, clock, carry, report=True, trail=trail, ask=Supposing())
        for action in self._config.actions:
            run_action(session, action)
        return close_session(session)

    def _carry_out(self, result: CycleResult, now: float) -> None:
        self._decision = None
        if result.binds or result.evicts:
            # assumed before it is carried out: the order of the session runner
            self._shown.operate(AssumedCycle(self.store.revision, result.cycle), (*result.binds, *result.evicts))
        words = self._effects.carry_out(result, self.view, now)
        words |= self._options.wordless and self._moved and self._has_waiting()
        # a mere message wakes the scheduler, though it decides the same again unless it goes on from elsewhere;
        # where nothing had stirred, it was said before
        self._again = self._may_be_no_op = words
