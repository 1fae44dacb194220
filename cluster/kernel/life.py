"""Living through a future: the api's store, the scheduler's own cycles, node agents and controllers, in one loop that
jumps from one moment at which something happens to the next.

Nothing is sent, journaled or waited for, and words that nobody decides by are not written; else it is what `pumice run
--time virtual` does. Within a moment all hear in rounds what was written in the round before: the scheduler first,
whose cycle sees the news before anybody else has answered to it, then node agents, then controllers. A cycle whose time
comes at this very moment waits until they have nothing more to say. What the cycle decided is carried out when these
have said all they have to: it is on its way through a session and to disk meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from pumice.cluster.api import refusals
from pumice.cluster.api.admission import admission_of
from pumice.cluster.api.bootstrap import assumed_queues
from pumice.cluster.api.kinds import kind_of
from pumice.cluster.api.origin import entering, is_recorded, unfinished
from pumice.cluster.api.store import Store
from pumice.cluster.api.verbs.creation import SUBMIT
from pumice.cluster.kernel.effects import Effects
from pumice.cluster.kernel.fork import Fork
from pumice.cluster.kernel.machine_host import MachineHost
from pumice.cluster.kernel.order import in_order
from pumice.cluster.kernel.roster import DECIDING, Surroundings
from pumice.cluster.kube.statuses import timestamp
from pumice.cluster.timers import moment
from pumice.core.actions import PLACING
from pumice.core.cycle import Trail, close_session, open_session, run_action, run_cycle
from pumice.core.fold.shown import Shown
from pumice.core.life.task import TaskStatus
from pumice.core.messages.commands import BindPod, Create, EvictPod, StoreRequest
from pumice.core.messages.decisions import Bind, CycleResult, Evict
from pumice.core.messages.events import Mutation
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object, section
from pumice.core.objects.queue import is_counted
from pumice.core.outside import Supposing
from pumice.core.session.carry import Carry, CycleClock, SessionOptions
from pumice.core.session.trail.trail import SILENCE, Silence
from pumice.core.state.echoes import Recurrence, waits
from pumice.core.state.view import View
from pumice.core.state.volumes import volume_rules
from pumice.core.state.watched import WATCHED
from pumice.storage import codec
from pumice.storage.shared_objects import SharedObjects

# --- What news leave everything as it was: a cycle after them, while nobody waits for a place, comes to nothing.

OVER: Final = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)


def stirs(shown: Shown[View], mutation: Mutation, obj: dict[str, Any], own: set[int]) -> bool:
    """Show the view what is new. Whether that may matter to a cycle that has nobody to place.

    `own`: revisions of what the cycle before said of PodGroups, which is forgotten as it comes back.
    """
    view, kind = shown.view, mutation.kind
    if kind == "PodGroup" and mutation.revision in own:
        own.discard(mutation.revision)
        shown.see(mutation.type, obj)
        return False
    if kind == "PodGroup" and mutation.type == "DELETED":
        still = _is_over(view, f"{mutation.namespace}/{mutation.name}")
        shown.see(mutation.type, obj)
        return not still
    before = view.queues.get(mutation.name) if kind == "Queue" else None
    shown.see(mutation.type, obj)
    now = view.queues.get(mutation.name)
    return before is None or now is None or now.allocated != before.allocated or not is_counted(before, now)


def _is_over(view: View, key: str) -> bool:
    """Whether the job has no pods, or none but pods that have ended."""
    job = view.jobs.by_key.get(key)
    return job is None or view.jobs.counts[:, job.row].sum() == view.jobs.counts[OVER, job.row].sum()


# ---

ROUNDS: Final = 10_000
"""Rounds in one moment; more is a world that talks to itself."""

Hears = Callable[[Mutation, float], None]
Decided = Callable[[CycleResult, float], None]


class Life:
    """One future, from `now` on. `hears` is told every change of an object, `decided` every cycle.

    `trail` is told what the actions of each cycle do. `refused`: objects that the api would not have, with its answer;
    `denied`: what was asked of it in vain.
    """

    def __init__(self, fork: Fork, seed: int, hears: Hears, decided: Decided, trail: Silence = SILENCE) -> None:
        self.now = fork.now
        self.cycle = fork.cycle
        self.carry = Carry.from_dict(fork.carry)
        self.refused: list[tuple[Object, Refused]] = []
        self.denied: list[tuple[StoreRequest, Refused]] = []
        self._config, self._told, self._seed = fork.config, fork.told, seed
        self._default_duration_s = fork.default_duration_s
        self._hears, self._decided, self._trail = hears, decided, trail
        self._options = SessionOptions(wordless=PLACING.issuperset(fork.config.actions))
        self._objects = SharedObjects()
        self.store = Store(seed=fork.uid_seed(seed), written=self._objects)
        self._shown: Shown[View] = Shown(View)
        self._effects = Effects(self.store, wordless=self._options.wordless)
        fixes = fork.config.pumice.fix
        given = Surroundings(
            unpack=self._objects.unpack, default_duration_s=fork.default_duration_s, fixes=lambda: fixes
        )
        self._controllers = [
            MachineHost(self.store, self._objects, group.machines(given), group.waits_for) for group in DECIDING
        ]
        self._later = list[tuple[float, Object]]()
        self.expect(fork.later)
        self._began = fork.now
        self._elapsed = 0.0  # as a loop counts it: a time of day is too coarse to add up periods
        self._earliest = -fork.config.pumice.schedule_period_s
        self._seen = -1
        self._wake_at: float | None = None
        self._recurrence, self._in_vain = Recurrence(), False
        self._again = self._echo = self._settled = False
        self._stirred = self._moved = True
        self._decision: CycleResult | None = None
        self._begin(fork)

    @property
    def view(self) -> View:
        """The scheduler's view."""
        return self._shown.view

    def _begin(self, fork: Fork) -> None:
        self._bring([*assumed_queues(fork.objects), *in_order(fork.objects)])
        for place, before in fork.before.items():
            self._judge(before, fork.objects[place])
        for number, decision in enumerate(fork.in_flight):
            self.store.apply(_landing(decision, f"{fork.cycle}/{number}"), self.now)
        for ask in fork.asks:
            reply = self.store.apply(ask, self.now)
            if isinstance(reply, Refused):
                self.denied.append((ask, reply))
        for mutation in self.store.drain():
            self._hears(mutation, self.now)
        self.store.log.forget_all(self.store.revision)
        for kind in WATCHED:
            for _, record in self.store.tables.of_kind(kind):
                self._shown.see("ADDED", self.store.tables.seen(record))
        for each in self._controllers:
            each.begin()

    def _bring(self, objects: Sequence[Object]) -> None:
        """Create what is new, load what a cluster had."""
        for obj in objects:
            self._ask(obj, entering(obj))
        for deletion in unfinished(objects):
            self.store.apply(deletion, self.now)

    def _judge(self, before: Object, after: Object) -> None:
        """Ask the rules of changes: what was loaded is not judged, but what somebody would write over it is."""
        kind = kind_of(after.get("apiVersion"), after["kind"])
        rule = admission_of(kind.key).validate_update if kind is not None else None
        if kind is not None and rule is not None and is_recorded(before):
            old, new = codec.unpack(codec.pack(before)), codec.unpack(codec.pack(after))
            if causes := rule(old, new, self.store.lookup):
                self.refused.append((after, refusals.invalid(kind, after["metadata"]["name"], causes)))

    def _ask(self, obj: Object, request: StoreRequest) -> None:
        reply = self.store.apply(request, self.now)
        if isinstance(reply, Refused) and reply.reason != "AlreadyExists":
            self.refused.append((obj, reply))

    # --- time

    def run(self, seconds: float, advance: Callable[[float], bool | None] = lambda seconds: None) -> None:
        """Live until so many seconds have gone by. `advance` hears at the end of every moment how many have; True: it
        is enough.
        """
        for elapsed in self.moments(seconds):
            if advance(elapsed):
                return
        self._to(seconds)

    def moments(self, seconds: float) -> Iterator[float]:
        """Live from one moment to the next, at most until so many seconds have gone by; how many have, after each."""
        while True:
            self._moment()
            yield self._elapsed
            due = self._next_due()
            if due is None or due > seconds:
                return
            self._to(max(due, self._elapsed))

    @property
    def elapsed(self) -> float:
        """Seconds that have gone by."""
        return self._elapsed

    def expect(self, later: Iterable[tuple[float, Object]]) -> None:
        """These come when so many seconds have gone by since the beginning."""
        coming = [*self._later, *((moment(after_s), obj) for after_s, obj in later)]
        self._later = sorted(coming, key=lambda each: each[0], reverse=True)

    def submit(self, objects: Iterable[Object]) -> None:
        """Hand these in now; what the api would not have is in `refused`."""
        self._bring(in_order([*objects]))

    def fork(self) -> Fork:
        """The cluster as it is now, to be lived through otherwise. Running pods began in whole seconds; those that do
        not say when have run since this life began, which is all that is known.
        """
        tables = self.store.tables
        records = sorted(
            (record for kind in tables.kinds() for _, record in tables.of_kind(kind)), key=lambda one: one.revision
        )
        return Fork(
            tuple(_begun(tables.seen(record), self._began) for record in records),
            self.now,
            self._config,
            self._told,
            self.cycle,
            self.carry.to_dict(),
            self._effects.in_flight(),
            self._default_duration_s,
            tuple((max(at - self._elapsed, 0.0), obj) for at, obj in reversed(self._later)),
        )

    def _to(self, elapsed: float) -> None:
        self._elapsed = moment(elapsed)
        self.now = moment(self._began + elapsed)

    def _next_due(self) -> float | None:
        times = [self._effects.next_due(), *(each.next_due() for each in self._controllers)]
        due = [moment(self._elapsed + max(at - self.now, 0.0)) for at in times if at is not None]
        cycle = self._next_cycle()
        if cycle is not None:
            due.append(cycle)
        if self._later:
            due.append(self._later[-1][0])
        return min(due, default=None)

    def _next_cycle(self) -> float | None:
        if self._again or self.view.version > self._seen:
            return self._earliest
        if self._wake_at is None or self._in_vain:
            return None
        return max(self._earliest, moment(self._elapsed + self._wake_at - self.now))

    def _is_due(self) -> bool:
        cycle = self._next_cycle()
        return cycle is not None and cycle <= self._elapsed

    def _moment(self) -> None:
        """All that happens without time going on."""
        while self._later and self._later[-1][0] <= self._elapsed:
            coming = self._later.pop()[1]
            self._ask(coming, Create(codec.pack(coming), user=SUBMIT))
        quiet = False
        for _ in range(ROUNDS):
            self._hear()
            if quiet and self._is_due():
                self._decide()
            self._effects.look(self.view, self.now)
            for each in self._controllers:
                each.turn(self.now)
            if self._decision is not None and not self.store.outbox:
                self._carry_out(self._decision)
            if not self.store.outbox and (quiet or not self._is_due()):
                return
            quiet = not self.store.outbox
        raise RuntimeError(f"bug in Pumice: the moment {self.now} does not end")

    def _hear(self) -> None:
        self.store.publish()
        for mutation in self.store.drain():
            self._hears(mutation, self.now)
            if mutation.kind == "PodGroup" and mutation.type == "DELETED":
                self._effects.forget(mutation.namespace, mutation.name)
            if mutation.kind in _WATCHED:
                before = self.view.version
                self._stirred |= stirs(self._shown, mutation, self._objects.unpack(mutation.blob), self._effects.own)
                if mutation.revision in self._effects.quiet:
                    self._effects.quiet.discard(mutation.revision)
                    self._seen += self.view.version - before

    def _decide(self) -> None:
        """A cycle; where nothing has changed by which anybody decides, what it comes to is known, and it only takes its
        time.
        """
        self.cycle += 1
        self._earliest = moment(self._elapsed + self._config.pumice.schedule_period_s)
        idle = self._settled and not (self._wake_at and self._wake_at <= self.now)
        idle = idle and ((self._echo and self.view.version == self._seen) or self._is_still())
        self._again = self._echo = False
        if idle:
            self._seen = self.view.version
        else:
            self._run_cycle()

    def _is_still(self) -> bool:
        """Nobody waits for a place, and since the last cycle nothing has come but what it said itself."""
        return not self._stirred and self._options.wordless and not waits(self.view)

    def look_again(self, trail: Trail) -> CycleResult:
        """The cycle that has just been decided, decided once more and followed. To be called by `decided` only."""
        clock = CycleClock(self.cycle, self.now, self._seed)
        snapshot = self.view.snapshot(volume_rules(self._config))
        session = open_session(snapshot, self._config, clock, self.carry, report=True, trail=trail, ask=Supposing())
        for action in self._config.actions:
            run_action(session, action)
        return close_session(session)

    def _run_cycle(self) -> None:
        self._seen, self._stirred, self._moved = self.view.version, False, self._stirred
        before = self.carry.to_dict()
        snapshot = self.view.snapshot(volume_rules(self._config))
        clock = CycleClock(self.cycle, self.now, self._seed)
        result = run_cycle(snapshot, self._config, clock, self.carry, self._options, trail=self._trail, ask=Supposing())
        self._in_vain = self._recurrence.is_in_vain(result, self.now)
        self._decided(result, self.now)
        self.carry, self._wake_at = Carry.from_dict(result.carry), result.wake_at
        self._settled = result.carry == before and self._config.pumice.ties != "hash"
        self._decision = result

    def _carry_out(self, result: CycleResult) -> None:
        self._decision = None
        for bind in result.binds:
            self.view.assume(bind.namespace, bind.name, bind.node, bind.pre_bind, bind.uid)
        for evict in result.evicts:
            self.view.evicting(evict.namespace, evict.name, evict.uid)
        words = self._effects.carry_out(result, self.view, self.now)
        words |= self._options.wordless and self._moved and bool(self.view.jobs.counts[TaskStatus.PENDING].any())
        # what was only said wakes the scheduler, though it comes to the same again unless it goes on from elsewhere;
        # where nothing had stirred, it was said before
        self._again = self._echo = words


_WATCHED: Final = frozenset(WATCHED)


def _begun(obj: Object, began: float) -> Object:
    """A pod that was handed in as running has its `startTime`: in another life it would begin anew without."""
    status = section(obj, "status")
    if obj["kind"] != "Pod" or status.get("phase") != "Running" or status.get("startTime"):
        return obj
    return {**obj, "status": {**status, "startTime": timestamp(began)}}


def _landing(decision: Bind | Evict, cause: str) -> BindPod | EvictPod:
    whose = (decision.namespace, decision.name, decision.uid)
    if isinstance(decision, Bind):
        return BindPod(*whose, decision.node, cause, 0, decision.annotations)
    return EvictPod(*whose, cause=cause)
