# SPDX-License-Identifier: Apache-2.0
"""The monitor of a storm: it reads the journal, and checks the invariants after every record.

The monitor keeps books of its own, from the api's mutations alone; what the scheduler could know when it decided is the
revision in the cycle's record, so a node that shrank after that is not a fault of the scheduler's.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import anyio

from pumice.core.default_scheduler.profile import NAME as DEFAULT_SCHEDULER
from pumice.core.fold.past import Flights
from pumice.core.fold.shown import Shown
from pumice.core.messages.commands import WriteStatus
from pumice.core.messages.decisions import Bind, Decision, Evict
from pumice.core.messages.events import (
    ActorCrashed,
    ActorEvent,
    AssumedCycle,
    BindRefused,
    BindTimedOut,
    Bound,
    ConfigLoaded,
    CycleDropped,
    CycleRecord,
    Evicted,
    EvictRefused,
    EvictTimedOut,
    Mutation,
    Outcome,
    ViewOperation,
)
from pumice.core.objects.metadata import Object, section
from pumice.proof.storm.invariants.budget_books import BUDGET, BudgetBooks
from pumice.proof.storm.invariants.card_books import LockBook
from pumice.proof.storm.invariants.claim_books import KINDS as CLAIM_KINDS
from pumice.proof.storm.invariants.queue_sums import wrong_sums
from pumice.proof.storm.invariants.soon import Failures
from pumice.proof.storm.invariants.statuses import JobCounts
from pumice.proof.storm.invariants.truth import StormTruth
from pumice.proof.storm.invariants.upheld import (
    BUDGETS,
    EVERY,
    GANGS,
    VICTIMS,
    Violation,
    ViolationFoundError,
    upheld_by,
)
from pumice.storage import codec
from pumice.storage.shared_objects import SharedObjects

if TYPE_CHECKING:
    from pumice.cluster.api.store import Store
    from pumice.core.messages.decisions import PodCondition
    from pumice.proof.storm.invariants.pod_book import PodBook
    from pumice.storage.journal import Record

# --- Evictions
# Each that a cycle decided has one outcome in the journal, and a pod that was evicted says so once.

OF_EVICTIONS: Final = (Evicted, EvictRefused, EvictTimedOut)
Ended = Evicted | EvictRefused | EvictTimedOut
SAID: Final = "DisruptionTarget"
BY_SCHEDULERS: Final = "PreemptionByScheduler"


@dataclass(slots=True)
class _Ordered:
    """An eviction that was decided in a `life` of the process; `outcome`: the kind of its outcome, "" before."""

    evict: Evict
    life: int
    outcome: str = ""


class EvictionBook:
    """Evictions. By cause ("cycle/uid") the decisions and their outcomes; by uid the pods' own conditions."""

    def __init__(self) -> None:
        self._ordered: dict[str, _Ordered] = {}
        self.victims: set[str] = set()
        self._said: dict[str, str] = {}

    def decided(self, cycle: int, evict: Evict, life: int) -> None:
        """Note a victim of a cycle."""
        self._ordered[f"{cycle}/{evict.uid}"] = _Ordered(evict, life)
        self.victims.add(evict.uid)

    def outcome(self, outcome: Ended, truth: StormTruth) -> str:
        """Return the problem of an outcome, in words."""
        ordered, pod = self._ordered.get(outcome.cause), f"{outcome.namespace}/{outcome.name}"
        if ordered is None:
            return f"the journal has an outcome of the eviction {outcome.cause} of {pod}, which no scheduler decided"
        if ordered.outcome:
            return f"the journal has two outcomes of the eviction {outcome.cause} of {pod}"
        ordered.outcome = type(outcome).__name__
        there = truth.pods.get(pod)
        if isinstance(outcome, Evicted) and there is not None and there.uid == outcome.uid and not there.deleting:
            return f"pod {pod} is said to be evicted, and no client deletes it"
        return ""

    def pod(self, obj: Object) -> str:
        """Return the problem of the eviction that a pod's status states, in words."""
        at = next((each for each in section(obj, "status").get("conditions") or () if each["type"] == SAID), None)
        if at is None or at["status"] != "True" or at.get("reason") != BY_SCHEDULERS:
            return ""
        meta, said = obj["metadata"], at.get("lastTransitionTime") or ""
        key, uid = f"{meta['namespace']}/{meta['name']}", meta["uid"]
        before = self._said.setdefault(uid, said)
        if uid not in self.victims:
            return f"pod {key} says that a scheduler evicted it, and no cycle did"
        return f"pod {key} says twice that it was evicted, at {before} and {said}" if before != said else ""

    def unreported(self, life: int) -> Iterator[str]:
        """Return evictions of this life of the process whose outcome the journal does not state."""
        for cause, ordered in self._ordered.items():
            if ordered.life == life and not ordered.outcome:
                pod = f"{ordered.evict.namespace}/{ordered.evict.name}"
                yield f"the journal has no outcome of the eviction {cause} of {pod}"


# --- Gangs
# By what the scheduler could know, none starts in part and none that runs is broken up.


def partial_gangs(truth: StormTruth, binds: Iterable[Bind], decided: Set[str], revision: int) -> list[str]:
    """Return sentences on gangs of a cycle's binds that started in part: a gang must start whole."""
    return [words for job in _jobs(binds) if (words := partial_gang(truth, job, decided, revision))]


def broken_gangs(
    truth: StormTruth, victims: Iterable[Evict], decided: Set[str], leaving: Set[str], revision: int
) -> list[str]:
    """Return the problems of the gangs that a cycle's victims belong to."""
    return [words for job in _jobs(victims) if (words := broken_gang(truth, job, decided, leaving, revision))]


def _jobs(decisions: Iterable[Decision]) -> dict[str, None]:
    return dict.fromkeys(decision.job for decision in decisions)


def partial_gang(truth: StormTruth, job: str, decided: Set[str], revision: int) -> str:
    """Return a sentence when the job's placed and decided pods are fewer than it needs; "" otherwise."""
    needed = _needed(truth, job, revision)
    placed = [pod for pod in truth.members(job) if pod.phase != "Failed" and (pod.node or pod.uid in decided)]
    if len(placed) + len(truth.lost_after(job, revision)) >= needed:
        return ""
    return f"gang {job} needs {needed}, {len(placed)} are placed or on their way"


def broken_gang(truth: StormTruth, job: str, decided: Set[str], leaving: Set[str], revision: int) -> str:
    """Return a sentence when a cycle took victims of the job and left it fewer pods than it needs; "" otherwise.

    `decided`, `leaving`: uids. What happened after `revision` the scheduler could not know: a pod that has failed or
    gone since, or whose deletion has begun, still counted.
    """
    needed = _needed(truth, job, revision)
    stay = [pod for pod in truth.members(job) if _counts(truth, pod, decided, revision)]
    uids = {pod.uid for pod in stay} | {uid for uid in truth.lost_after(job, revision) if truth.stayed(uid, revision)}
    left = len(uids - leaving)
    return "" if left >= needed else f"gang {job} needs {needed}, its victims leave it {left}"


def _needed(truth: StormTruth, job: str, revision: int) -> int:
    """Return the least that it has needed since then; 0 when the gang does not exist."""
    history = truth.groups.get(job)
    groups = [] if history is None else [each for each in history.since(revision) if each is not None]
    return min((each[0] for each in groups), default=0)


def _counts(truth: StormTruth, pod: PodBook, decided: Set[str], revision: int) -> bool:
    """Return whether the pod counts for its gang as Volcano's ready tasks do."""
    if pod.ended:
        return pod.phase == "Succeeded"
    return bool(pod.node or pod.uid in decided) and truth.stayed(pod.uid, revision)


# --- Nominations
# Each is kept while the victims leave, then used or given up: a cycle that has seen them gone binds the pod, makes
# room anew, or leaves it waiting for a reason that it writes. Kubernetes' own scheduler takes the name away then,
# Volcano leaves it there.

MOST: Final = 3


class NominationBook:
    """The revision that the newest cycle of each scheduler had seen."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def cycle(self, scheduler: str, revision: int) -> None:
        """Note that a cycle of a scheduler ("" for Volcano's) was decided on the state at that revision."""
        self._seen[scheduler] = max(revision, self._seen.get(scheduler, 0))

    def unfounded(self, said: Iterable[PodCondition], truth: StormTruth, revision: int) -> Iterator[str]:
        """Yield pods that a cycle which saw `revision` nominates to nodes that it cannot have seen.

        No pod need have been evicted there: Volcano also tells where it would have made room, had the rest of the gang
        found a place, and Kubernetes' own scheduler waits for those who leave anyway.
        """
        for each in said:
            history = truth.nodes.get(each.nominated) if each.nominated else None
            if each.nominated and (history is None or not any(room is not None for room in history.since(revision))):
                yield f"pod {each.namespace}/{each.name} is nominated to {each.nominated}, which does not exist"

    def left_over(self, truth: StormTruth) -> Iterator[str]:
        """Return nominations at rest, when all victims have gone, that were neither used nor given up."""
        for pod in truth.pods.values():
            if pod.node or pod.ended or pod.deleting:
                continue
            obj = truth.object_of(pod)
            node = section(obj, "status").get("nominatedNodeName")
            if not node:
                continue
            if obj["spec"].get("schedulerName") == DEFAULT_SCHEDULER:
                yield f"pod {pod.key} is nominated to {node} for ever: no victim leaves it for the pod any more"
            elif self._seen.get("", 0) < truth.left_at.get(node, 0):
                yield f"pod {pod.key} is nominated to {node}, and no cycle looked since its victims left"


log = logging.getLogger(__name__)

Pod = tuple[str, str]

MOST_RECORDS: Final = 200_000
CALM_CYCLES: Final = 1000
"""Cycles after the faults have stopped; a system that needs more never settles."""
INJECTED: Final = ("HungActorError", "ActorFailedError", "ActorStoppedError")
"""Errors of actors that a fault removed, or that had asked such an actor."""
PATIENCE_S: Final = 89.0

_OF_BINDS: Final = (Bound, BindRefused, BindTimedOut)
_read_mutation = codec.decoder(Mutation)
_read_cycle = codec.decoder(CycleRecord)
_read_decision = codec.decoder(Decision)
_read_outcome = codec.decoder(Outcome)
_read_life = codec.decoder(ActorEvent)
_read_config = codec.decoder(ConfigLoaded)
_read_statuses = codec.decoder(WriteStatus)


@dataclass(slots=True)
class Decided:
    """A decided bind, and the revision that the scheduler had seen.

    `leaving`: uids of pods whose eviction was on its way.
    """

    bind: Bind
    revision: int
    at: float
    life: int
    leaving: frozenset[str] = frozenset()
    open: bool = True


@dataclass(slots=True)
class _Cycle:
    """A cycle. `at`: when it was written, its decisions with it; `statuses`: those that it writes, None for none."""

    record: CycleRecord
    at: float
    left: int
    statuses: WriteStatus | None
    binds: list[Bind] = field(default_factory=list[Bind])
    victims: list[Evict] = field(default_factory=list[Evict])


class Monitor:
    """Sees every record; `violated` ends the storm at the next event, whichever check finds the violation.

    `patience_s`: after so long the cache may have given up an outcome, and decide again. `upheld`: what every
    configuration so far sees to, of what depends on one. `objects`: see `StormTruth`. `exact`: what pods ask for is
    known to the last unit, as in storms: no init containers, no resizes. So are the sums of queues.
    """

    def __init__(
        self,
        *,
        patience_s: float = PATIENCE_S,
        most_records: int = MOST_RECORDS,
        objects: SharedObjects | None = None,
        exact: bool = True,
    ) -> None:
        self.exact = exact
        self._patience_s = patience_s
        self._most_records = most_records
        self.truth = StormTruth(objects)
        self.budgets = BudgetBooks(self.truth.blobs, anyio.current_time, self.truth.read)
        self.locks = LockBook(self.truth.read)
        self.failures = Failures()
        self.evictions = EvictionBook()
        self.nominations = NominationBook()
        self.job_counts = JobCounts(anyio.current_time)
        self.upheld = EVERY
        self.began = 0.0
        self.events = 0
        self.cycles = 0
        self.lives = 0
        self.found: Violation | None = None
        self.tainted: set[str] = set()
        self.decided: dict[str, Decided] = {}
        self._held = Shown(Flights)
        self._decisions: dict[int, list[Decision]] = {}
        self._cycle: _Cycle | None = None
        self._calm_from: int | None = None
        self._scope: anyio.CancelScope | None = None

    # --- the life of the storm

    def begin(self, store: Store) -> None:
        """Start from what a store holds already."""
        self.truth.begin(store)
        self.budgets.begin(self.truth.revision)
        self.job_counts.begin(self.truth)

    def born(self) -> None:
        """Note that a process starts."""
        self.lives += 1

    def faults_stopped(self) -> None:
        """Note that the faults have stopped: from now on the system must settle."""
        self._calm_from = self.cycles

    def violated(self, invariant: str, words: str) -> None:
        """Remember the first violation, and end the storm."""
        if self.found is None:
            self.found = Violation(invariant, words, anyio.current_time())
        raise ViolationFoundError(self.found)

    def configured(self, config: ConfigLoaded) -> None:
        """Check from now on only the invariants that this configuration upholds, too; a refused one changes nothing."""
        if not config.error:
            self.upheld &= upheld_by(config.text)

    def acknowledged(self, revision: int, whom: str) -> None:
        """Note that the api acknowledged a request, as of a revision: it must be on disk."""
        if revision > self.truth.revision:
            words = f"{whom} got revision {revision} when the journal was at {self.truth.revision}"
            self.violated("nothing-lost", words)

    # --- records

    def see(self, records: Sequence[Record]) -> None:
        """Check the records that were just written. Raises ViolationFoundError, also for a bug of the monitor: the
        failure must not look like a lost disk."""
        if self.found is not None:
            raise ViolationFoundError(self.found)
        try:
            self._see(records)
        except ViolationFoundError:
            raise
        except Exception as error:
            log.exception("bug in the monitor")
            self.violated("monitor-works", repr(error))

    def _see(self, records: Sequence[Record]) -> None:
        self.events += len(records)
        for record in records:
            match record.kind:
                case "api":
                    self._mutation(_read_mutation(record.payload))
                case "cycle":
                    self._cycle_begins(_read_cycle(record.payload))
                case "decision":
                    self._decision(_read_decision(record.payload))
                case "outcome":
                    self._outcome(_read_outcome(record.payload))
                case "config":
                    self.configured(_read_config(record.payload))
                case "actor":
                    self._life(_read_life(record.payload))
                case _:
                    pass
        if self.events > self._most_records:
            self.violated("quiesces", f"{self.events} records and no end")

    def _mutation(self, mutation: Mutation) -> None:
        if mutation.revision != self.truth.revision + 1:
            self.violated("nothing-lost", f"revision {mutation.revision} follows {self.truth.revision} in the journal")
        bound = self.truth.apply(mutation)
        if mutation.kind == "Node":
            for words in self.locks.see(mutation):
                self.violated("locks-heeded", words)
        elif mutation.kind in CLAIM_KINDS:
            for problem in self.truth.claims.new_problems():
                self.violated(*problem)
        if mutation.kind in ("Pod", "Job"):
            self._counted(mutation)
        if mutation.kind == BUDGET or self.budgets.by_name:
            for words in self.budgets.see(mutation):
                self.violated("within-budget", words)
        if bound is None:
            return
        pod, before = bound
        if before and before != pod.node:
            self.violated("one-node", f"pod {pod.key} moved from {before} to {pod.node}")
        decided = self.decided.get(pod.uid)
        if decided is None and not self.truth.is_ours(pod):
            return
        if decided is None or decided.bind.node != pod.node:
            self.violated("decided", f"pod {pod.key} is on {pod.node}, which no scheduler decided")
            return
        for invariant, words in self.truth.judge(pod, decided.revision, decided.leaving, self.upheld):
            self.violated(invariant, words)

    def _counted(self, mutation: Mutation) -> None:
        obj = self.truth.read(mutation.blob)
        if mutation.kind == "Pod" and mutation.type != "DELETED" and (words := self.evictions.pod(obj)):
            self.violated("evictions-told-once", words)
        for words in self.job_counts.see(mutation, obj):
            self.violated("job-counts", words)

    def _cycle_begins(self, record: CycleRecord) -> None:
        self.cycles += 1
        if self._calm_from is not None and self.cycles - self._calm_from > CALM_CYCLES:
            self.violated("quiesces", f"{CALM_CYCLES} cycles after the faults stopped and no end")
        if record.revision > self.truth.revision:
            self.violated("nothing-lost", f"cycle {record.cycle} saw revision {record.revision}, not in the journal")
        now = anyio.current_time()
        statuses = _read_statuses(record.statuses) if record.statuses else None
        self._cycle = _Cycle(record, now, record.decisions, statuses)
        self.nominations.cycle(record.scheduler, record.revision)
        for words in self.failures.overdue(self.truth, now):
            self.violated("looks-again", words)
        for operation in record.operations:
            if words := self.failures.operation(operation, self.truth):
                self.violated("looks-again", words)
            self._believe(operation)
        if not record.decisions:
            self._judge_statuses(self._cycle)

    def _believe(self, operation: ViewOperation) -> None:
        """Note the decisions that the scheduler's view held to be in flight: a failed bind still counts until the cache
        looks again."""
        decided = self._decisions.get(operation.cycle, []) if isinstance(operation, AssumedCycle) else []
        self._held.operate(operation, decided)

    def _decision(self, decision: Decision) -> None:
        cycle = self._cycle
        assert cycle is not None
        cycle.left -= 1
        self._decisions.setdefault(cycle.record.cycle, []).append(decision)
        if isinstance(decision, Bind):
            cycle.binds.append(decision)
            self._decide(decision, cycle)
        else:
            cycle.victims.append(decision)
            self.evictions.decided(cycle.record.cycle, decision, self.lives)
            pod = (decision.namespace, decision.name)
            bars = BUDGETS in self.upheld and not cycle.record.scheduler  # to Kubernetes' they are a preference
            if bars and self.budgets.forbid(pod, decision.uid, cycle.record.revision):
                self.violated("spares-budgets", f"pod {'/'.join(pod)} was a victim, though its budget leaves none")
            self._held.view.evicting(*pod, decision.uid)
        if not cycle.left:
            self._judge_gangs(cycle)
            self._judge_statuses(cycle)

    def _decide(self, bind: Bind, cycle: _Cycle) -> None:
        revision, now = cycle.record.revision, cycle.at
        before = self.decided.get(bind.uid)
        if before is not None and before.open and before.life == self.lives and now - before.at < self._patience_s:
            self.violated(
                "decided-once",
                f"pod {bind.namespace}/{bind.name} was bound to {before.bind.node} without an outcome yet, "
                f"and is bound to {bind.node}",
            )
        pod = self.truth.pods.get(f"{bind.namespace}/{bind.name}")
        if pod is not None and pod.uid == bind.uid and pod.node and self.truth.bound_at.get(bind.uid, 0) <= revision:
            self.violated("decided-once", f"pod {pod.key} was on {pod.node} when it was bound to {bind.node}")
        self.decided[bind.uid] = Decided(bind, revision, now, self.lives, frozenset(self._held.view.evictions.values()))
        self._held.view.assume(bind.namespace, bind.name, bind.node, bind.pre_bind, bind.uid)

    def _outcome(self, outcome: Outcome) -> None:
        if isinstance(outcome, OF_EVICTIONS) and (words := self.evictions.outcome(outcome, self.truth)):
            self.violated("evictions-told-once", words)
        if not isinstance(outcome, _OF_BINDS):
            return
        self.failures.outcome(outcome, anyio.current_time, self.truth.revision)
        decided = self.decided.get(outcome.uid)
        if decided is not None:
            decided.open = False
        if isinstance(outcome, Bound):
            self.acknowledged(outcome.revision, f"who bound {outcome.name}")

    def _life(self, event: ActorEvent) -> None:
        """Check the life of an actor: a crash must be injected, or follow an injected one."""
        if isinstance(event, ActorCrashed) and not event.error.startswith(INJECTED):
            self.violated("actors-live", f"{event.actor} crashed: {event.error}")
        if isinstance(event, CycleDropped) and "crashed over this message" not in event.error:
            self.violated("actors-live", f"cycle {event.cycle} was lost: {event.error}")

    def _judge_gangs(self, cycle: _Cycle) -> None:
        decided, revision = set(map(itemgetter(0), self._held.view.binds.values())), cycle.record.revision
        problems = partial_gangs(self.truth, cycle.binds, decided, revision) if GANGS in self.upheld else []
        if VICTIMS in self.upheld and cycle.victims and not cycle.record.scheduler:  # Kubernetes' knows no gangs
            problems += broken_gangs(
                self.truth, cycle.victims, decided, set(self._held.view.evictions.values()), revision
            )
        for problem in problems:
            self.violated("whole-gangs", f"cycle {cycle.record.cycle}: {problem}")

    def _judge_statuses(self, cycle: _Cycle) -> None:
        if cycle.statuses is None:
            return
        for words in self.nominations.unfounded(cycle.statuses.pod_conditions, self.truth, cycle.record.revision):
            self.violated("nominations", f"cycle {cycle.record.cycle}: {words}")
        if self.exact:
            said, revision = cycle.statuses.queues, cycle.record.revision
            for words in wrong_sums(self.truth, said, revision, self.evictions.victims):
                self.violated("queue-sums", f"cycle {cycle.record.cycle}: {words}")
