"""From a fork to its future: lived through, taken down, and at the end asked why what waits is waiting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from pumice.cluster.kernel.fork import Fork
from pumice.cluster.kernel.life import Life
from pumice.core.cycle import Trail
from pumice.core.life.task import TaskStatus
from pumice.core.messages.commands import RequestEviction, StoreRequest
from pumice.core.messages.decisions import CycleResult, Evict
from pumice.core.objects.metadata import Object
from pumice.core.session.carry import CycleClock
from pumice.core.session.fit import SCHEDULABLE
from pumice.core.state.volumes import volume_rules
from pumice.questions.explain.victims import opinions_of
from pumice.questions.explain.watch import Subjects, gauges_of, watch_cycle
from pumice.questions.oneshot.between import object_key
from pumice.questions.oneshot.supposing import unasked
from pumice.questions.whatif.chronicle import DRAIN, Chronicle
from pumice.questions.whatif.future import Future, PendingJob

UNSAID: Final = "Unschedulable"
Advance = Callable[[float], None]


def live(fork: Fork, horizon_s: float, seed: int = 0, advance: Advance = lambda seconds: None) -> Future:
    """What comes of it in so many seconds. The same fork, horizon and seed give the same future.

    `advance` hears how many seconds have gone by.
    """
    return Witness(fork, horizon_s, seed).live(advance)


class Witness:
    """One life that is watched. Whoever lost a pod to a job that had lost one to it has its votes taken down."""

    def __init__(self, fork: Fork, horizon_s: float, seed: int = 0) -> None:
        self._fork, self._horizon_s, self._seed = fork, horizon_s, seed
        self.chronicle = Chronicle(fork.now, fork.now + horizon_s)
        self.life = Life(fork, seed, self.chronicle.note, self._decided)
        self._cycles = 0
        self._drained()

    def live(self, advance: Advance) -> Future:
        """To the horizon."""
        self.life.run(self._horizon_s, advance)
        told, life = self.chronicle, self.life
        unknown = list(told.unknown.values())
        return Future(
            self._horizon_s,
            self._cycles,
            told.jobs(),
            told.told_evictions(),
            self._pending(),
            told.measured.queues(),
            told.measured.cluster(),
            told.placements(),
            tuple((named(obj), reply.message) for obj, reply in life.refused),
            tuple((_asked(ask), reply.message) for ask, reply in life.denied),
            sum(unknown),
            len(unknown) - sum(unknown),
            tuple(unasked(self._fork.config)),
            self._fork.default_duration_s,
        )

    def _drained(self) -> None:
        """Pods that were asked to go before anything happened, and that no budget keeps."""
        kept = {id(ask) for ask, _ in self.life.denied}
        asks = [ask for ask in self._fork.asks if isinstance(ask, RequestEviction) and id(ask) not in kept]
        if asks:
            pods = [obj for obj in self._fork.objects if obj["kind"] == "Pod"]
            by_name = {(obj["metadata"].get("namespace") or "default", obj["metadata"]["name"]): obj for obj in pods}
            for ask in asks:
                self.chronicle.had_to_go(by_name[ask.namespace, ask.name], self._fork.now, DRAIN)

    def _decided(self, result: CycleResult, at: float) -> None:
        self._cycles += 1
        returned = [evict for evict in result.evicts if self._comes_round(evict)]
        votes = self._votes(returned) if returned else {}
        for evict in result.evicts:
            self.chronicle.evicted(evict, at, votes.get(evict.uid, ()))

    def _comes_round(self, evict: Evict) -> bool:
        """Whether a pod of this job has had to go before."""
        return any(before.evict.job == evict.job for before in self.chronicle.evictions)

    def _votes(self, evicts: Sequence[Evict]) -> dict[str, tuple[str, ...]]:
        """By uid, what each plugin said of the pod when it was chosen."""
        names = {evict.uid: f"{evict.namespace}/{evict.name}" for evict in evicts}
        trail = Trail(frozenset(names.values()), frozenset[str]())
        view, gauges = self.life.view, gauges_of(self.life.look_again(trail))
        found: dict[str, tuple[str, ...]] = {}
        for evict in evicts:
            election = trail.elections.of(names[evict.uid], evict.preemptor)
            if election is not None:
                found[evict.uid] = tuple(opinions_of(view, election.preemptor, [election], gauges))
        return found

    def _pending(self) -> dict[str, PendingJob]:
        """Of the jobs with pods that wait, and of those that have none yet: why, as the next cycle would say it."""
        view, fork = self.life.view, self._fork
        waiting = Counter(
            task.job
            for task in view.tasks.by_key.values()
            if task.job and view.tasks.status[task.row] == TaskStatus.PENDING
        )
        empty = [key for key, job in view.jobs.by_key.items() if job.spec is not None and not job.tasks]
        asked = sorted({*waiting, *empty})
        if not asked:
            return {}
        clock = CycleClock(self.life.cycle + 1, self.life.now, self._seed)
        subjects = Subjects(frozenset(), frozenset(asked))
        snapshot = view.snapshot(volume_rules(fork.config))
        watched = watch_cycle(view, snapshot, fork.config, clock, self.life.carry, subjects)
        # pods of a gang that could go somewhere do not say what it lacks: those that could not come last, and count
        pending = sorted(watched.result.report.pending.items(), key=lambda each: each[1].reason != SCHEDULABLE)
        said = {view.tasks.by_key[pod].job: why for pod, why in pending}
        found: dict[str, PendingJob] = {}
        for key in asked:
            code, message = watched.jobs[key].reason() if key in watched.jobs else ("", "")
            if not code and key in said:
                code, message = said[key].reason, said[key].message
            if (finding := watched.findings.jobs.get(key)) is not None:
                code = finding.reason
                message = message if finding.because in message else f"{finding.because}; {message}".removesuffix("; ")
            if key in waiting or code != "NoPods":
                job = self.chronicle.measured.job_of(key)
                found[job] = PendingJob(waiting[key] + self._to_make(job), code or UNSAID, message)
        return found

    def _to_make(self, job: str) -> int:
        """How many pods a Volcano Job has yet to make, for the first time or again."""
        measured = self.chronicle.measured
        return max((measured.size(job) or 0) - measured.there(job), 0)


def named(obj: Object) -> str:
    """Kind and name, for people."""
    return f"{obj['kind']} {object_key(obj).strip('/')}"


def _asked(ask: StoreRequest) -> str:
    namespace, name = getattr(ask, "namespace", ""), getattr(ask, "name", "")
    return f"{type(ask).__name__} {namespace}{'/' if namespace else ''}{name}".strip()
