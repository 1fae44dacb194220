# SPDX-License-Identifier: Apache-2.0
"""The queues and the waiting jobs of one cycle: their order, its causes, and the reason of each.

The cycle is decided (again) with a trail of all jobs; the order is the order in which its actions took jobs up.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace as replace_fields

from pumice.actors.gateway.advice import AdviserQuestion
from pumice.belonging import owner_of
from pumice.cluster.controllers.unserved import SCHEDULER
from pumice.cluster.kube.statuses import timestamp
from pumice.config.errors import RequestError, nearest_names
from pumice.core.cycle import Trail, close_session, open_session, run_action
from pumice.core.life.pod_group import LABELS as PHASES
from pumice.core.life.pod_group import PodGroupPhase
from pumice.core.life.task import TaskStatus
from pumice.core.messages.queue_tables import WHOLE, told
from pumice.core.objects.metadata import Object, key_of
from pumice.core.objects.pod import GROUP_NAME
from pumice.core.plugins import record_of
from pumice.core.plugins.plugin import OrderNumber
from pumice.core.session.carry import Carry, CycleClock
from pumice.core.session.closing.close import jobs_with_waiting_tasks
from pumice.core.state.volumes import volume_rules
from pumice.questions.adviser.queues import QueueStanding, count_waiting, in_tree_order, lineage, standings_of
from pumice.questions.adviser.reasons import WaitClass, WaitCode, WaitReason
from pumice.questions.adviser.wait_reasons import OpeningState, ReasonFinder, outsider, queueless
from pumice.questions.eta.estimate import Estimate
from pumice.questions.explain.refused import refused_among
from pumice.questions.explain.room_left import amounts
from pumice.questions.explain.scene import Scene
from pumice.questions.oneshot.cycles import decide_others, fill, has_others
from pumice.questions.oneshot.supposing import supposed
from pumice.results import Result

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pumice.cluster.kernel.fork import Fork
    from pumice.core.messages.decisions import CycleResult
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session
    from pumice.core.session.trail.records import Precedence, Turn
    from pumice.core.state.jobs import Job
    from pumice.core.state.view import View


# --- The order of jobs

STAGES: Final = {"allocate": 0, "backfill": 1, "enqueue": 2}
"""Actions that take up jobs, as they matter: one that is admitted is nearer to its start than one that is not."""
CREATION: Final = OrderNumber("created", is_time=True)
LAST_TIME: Final = 253402300799.0


@dataclass(frozen=True, slots=True)
class Before:
    """The job that comes just before another in their queue: ordered `by` this plugin ("creation" or "name" where none
    does), with the numbers of that job and of the other where it orders by numbers, and a sentence.
    """

    job: str
    by: str
    its: float | None
    own: float | None
    words: str


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a job. `stage`: the action that takes the job up, "" for none; `rank` among all, -1 for none;
    `tried`: it had its turn; `queue_share`: of its queue at that moment; `before_it`: None for the first of its queue.
    """

    stage: str = ""
    rank: int = -1
    tried: bool = False
    queue_share: float | None = None
    before_it: Before | None = None


def places_of(turns: Iterable[Turn]) -> dict[str, Place]:
    """Return the places by job, from the turns of a cycle. Of several actions the one that comes nearest to a start
    counts."""
    in_order = sorted(enumerate(turns), key=lambda each: (STAGES[each[1].action], not each[1].tried, each[0]))
    found: dict[str, Place] = {}
    before: dict[tuple[str, str], Before] = {}
    for _, turn in in_order:
        ahead = turn.ahead
        if ahead is not None:
            before.setdefault((turn.action, ahead.over), _before(turn.job, ahead))
    for rank, (_, turn) in enumerate(in_order):
        if turn.job not in found:
            earlier = before.get((turn.action, turn.job))
            found[turn.job] = Place(turn.action, rank, turn.tried, turn.share, earlier)
    return found


def _before(job: str, ahead: Precedence) -> Before:
    if ahead.numbers is None:
        words = "its name comes first" if ahead.plugin == "name" else f"{ahead.plugin} puts it first"
        return Before(job, ahead.plugin, None, None, words)
    known = CREATION if ahead.plugin == "creation" else record_of(ahead.plugin).orders_by
    told = known or OrderNumber(ahead.plugin)
    its, own = (told.factor * number + 0.0 for number in ahead.numbers)  # no -0
    shown = [_time(each) if told.is_time else f"{each:.6g}" for each in (its, own)]
    return Before(job, ahead.plugin, its, own, f"{told.words} {shown[0]} before {shown[1]}")


def _time(moment: float) -> str:
    return timestamp(moment) if moment < LAST_TIME else "none"


# --- Loans between queues
# A queue that has more than deserved has it from those that use less: its sisters, then what their parent keeps
# undivided, then the parent's sisters, and so on up. Among equally near ones it is in proportion, since nothing says
# whose is whose.

Shares = dict[str, float]
LEAST: Final = 1e-9
"""Of what is matched: less than that part of it is what floats leave."""


class QueueLoan(NamedTuple):
    """An amount of a resource (in cores, bytes or pieces). `lender`: "" for an amount that no queue deserves."""

    lender: str
    borrower: str
    amount: float


def lending(standings: Mapping[str, QueueStanding]) -> dict[str, list[QueueLoan]]:
    """Return loans by resource, of the resources that some queue has more of than it deserves; by lender and
    borrower.
    """
    names = sorted({name for one in standings.values() for name in one.borrowed if name != WHOLE})
    found = {name: loans(standings, name) for name in names}
    return {name: listed for name, listed in found.items() if listed}


def loans(standings: Mapping[str, QueueStanding], resource: str) -> list[QueueLoan]:
    """Return the loans of one resource, among the queues without children; an inner queue lends its undivided part."""
    made: list[QueueLoan] = []
    within: dict[str, tuple[Shares, Shares, float]] = {}  # of each parent: who borrows, who lends, what they deserve
    for _, name in reversed(in_tree_order(standings)):  # children before parents
        one = standings[name]
        deserved = one.deserved.get(resource, 0.0)
        if name in within:
            borrowers, lenders, divided = within.pop(name)
            _lend(borrowers, lenders, made)
            undivided = {name: deserved - divided} if deserved > divided else Shares()
            _lend(borrowers, undivided, made)
            lenders |= undivided
        else:
            room = deserved - one.allocated.get(resource, 0.0)
            borrowers = {name: one.borrowed[resource]} if resource in one.borrowed else Shares()
            lenders = {name: room} if room > 0 else Shares()
        above = one.parent if one.parent in standings and one.parent != name else ""
        beside = within.get(above, (Shares(), Shares(), 0.0))
        within[above] = ({**beside[0], **borrowers}, {**beside[1], **lenders}, beside[2] + deserved)
    borrowers, lenders, _ = within.get("", (Shares(), Shares(), 0.0))
    _lend(borrowers, lenders, made)
    made += [QueueLoan("", borrower, amount) for borrower, amount in borrowers.items()]
    return sorted(made)


def _lend(borrowers: Shares, lenders: Shares, made: list[QueueLoan]) -> None:
    """Lend in proportion to each borrower's need and each lender's rest; drop queues that are done."""
    wanted, given = sum(borrowers.values()), sum(lenders.values())
    lent = min(wanted, given)
    if lent <= 0:
        return
    made += [
        QueueLoan(lender, borrower, lent * (room / given) * (more / wanted))
        for lender, room in lenders.items()
        for borrower, more in borrowers.items()
    ]
    for listed, total in ((borrowers, wanted), (lenders, given)):
        left = {name: value * (1 - lent / total) for name, value in listed.items()}
        listed.clear()
        listed |= {name: value for name, value in left.items() if value > LEAST * total}


EVERY_TASK: Final = (TaskStatus.PENDING, TaskStatus.PIPELINED, TaskStatus.ALLOCATED)


class NoSuchQueueError(RequestError):
    """No queue has that name."""

    code = 404
    reason = "NotFound"


class WaitingRow(msgspec.Struct, frozen=True, kw_only=True):
    """A waiting job, in the order in which jobs are tried: see `WaitingJob` and `Place`, whose values these are.

    `job`: the PodGroup; `made_for`: the job that owns it, else the PodGroup itself. `because`: a sentence for people;
    programs go by `reason`, the code, and its `class`; `wait`: the whole reason. `created`: seconds since the epoch.
    `eta`: when it starts, where that was asked for; null where nothing is known of it.
    """

    job: str
    queue: str
    phase: str
    position: int | None
    made_for: str
    wait_class: WaitClass = msgspec.field(name="class")
    reason: WaitCode
    because: str
    wait: WaitReason
    pods: int
    needed: int
    held: int
    min_member: int
    created: float
    asks: dict[str, float]
    stage: str
    tried: bool
    queue_share: float | None
    before_it: Before | None
    eta: Estimate | msgspec.UnsetType | None = msgspec.UNSET


class Standings(Result, kw_only=True, tag="queue/1"):
    """The queues as `cycle` opened, at the time `now` (seconds since the epoch), and the jobs that wait after it.

    `lending`: by resource, which queue has so much of what another one deserves, as [lender, borrower, amount].
    `classes`: how many jobs wait, by class. `supposed`: what was not asked of processes outside, in sentences.
    """

    cycle: int
    now: float
    queues: dict[str, QueueStanding]
    lending: dict[str, list[QueueLoan]]
    waiting: list[WaitingRow]
    classes: dict[WaitClass, int]
    supposed: list[str]


@dataclass(frozen=True, slots=True)
class WaitingJob:
    """A PodGroup with pods that have no node, or without pods. `position`: from 1, over all queues; None: no action
    takes it up.

    `pods` wait, `needed` of them so that it can start or go on, and they ask for `asks` (see `QueueStanding`); `held`
    have a node. `place`: what the order says of it. `made_for`: the job that owns the PodGroup, "" where none does.
    """

    job: str
    queue: str
    phase: str
    position: int | None
    wait: WaitReason
    pods: int
    needed: int
    held: int
    min_member: int
    created: float
    asks: dict[str, float]
    place: Place
    made_for: str = ""

    @property
    def name(self) -> str:
        """Return the job's name for people: its PodGroup's owner, else the PodGroup itself."""
        return self.made_for or self.job

    def row(self, eta: Estimate | msgspec.UnsetType | None = msgspec.UNSET) -> WaitingRow:
        """Return the printed form; the rank shows as the position in the whole list."""
        wait, place = self.wait, self.place
        return WaitingRow(
            job=self.job,
            queue=self.queue,
            phase=self.phase,
            position=self.position,
            made_for=self.name,
            wait_class=wait.wait_class,
            reason=wait.code,
            because=wait.sentence,
            wait=wait,
            pods=self.pods,
            needed=self.needed,
            held=self.held,
            min_member=self.min_member,
            created=self.created,
            asks=self.asks,
            stage=place.stage,
            tried=place.tried,
            queue_share=place.queue_share,
            before_it=place.before_it,
            eta=eta,
        )


@dataclass(frozen=True, slots=True)
class WaitingJobs:
    """The decided `cycle`, at the time `now`. `waiting`: in order, those without a position last. `supposed`: sentences
    on questions to outside processes that were not asked.
    """

    cycle: int
    now: float
    queues: dict[str, QueueStanding]
    waiting: list[WaitingJob]
    supposed: list[str]

    def within(self, queue: str) -> WaitingJobs:
        """Return the jobs of that queue and those below it. Raises NoSuchQueueError."""
        if queue not in self.queues:
            near = nearest_names(queue, self.queues)
            raise NoSuchQueueError(f"no queue {queue!r}" + (f"; near: {', '.join(near)}" if near else ""))
        inside = lineage(self.queues, queue)
        queues = {name: standing for name, standing in self.queues.items() if name in inside}
        return WaitingJobs(
            self.cycle, self.now, queues, [job for job in self.waiting if job.queue in inside], self.supposed
        )

    def classes(self) -> dict[WaitClass, dict[str, int]]:
        """Return the number of waiting jobs by class and queue; every class is a key."""
        found: dict[WaitClass, dict[str, int]] = {each: {} for each in WaitClass}
        for (kind, queue), jobs in sorted(Counter((job.wait.wait_class, job.queue) for job in self.waiting).items()):
            found[kind][queue] = jobs
        return found

    def counts(self) -> list[dict[str, str | int]]:
        """Return the number of waiting jobs by queue, class and code."""
        found = Counter((job.queue, job.wait.wait_class, job.wait.code) for job in self.waiting)
        return [
            {"queue": queue, "class": kind, "reason": code, "jobs": jobs}
            for (queue, kind, code), jobs in sorted(found.items())
        ]

    def standings(self, starts: Mapping[str, Estimate] | None = None) -> Standings:
        """Return the form that `pumice queue` prints; `starts`: when jobs start, by PodGroup or its owner."""
        return Standings(
            cycle=self.cycle,
            now=self.now,
            queues=self.queues,
            lending=lending(self.queues),
            waiting=[
                job.row() if starts is None else job.row(starts.get(job.job) or starts.get(job.name))
                for job in self.waiting
            ],
            classes={kind: sum(jobs.values()) for kind, jobs in self.classes().items()},
            supposed=self.supposed,
        )


def waiting_jobs_of(scene: Scene) -> WaitingJobs:
    """Decide the cycle of the scene, and list the waiting jobs after it."""
    ignored = scene.options.ignored_provisioners if scene.options else ()
    snapshot = scene.view.snapshot(volume_rules(scene.config, ignored))
    trail = Trail((), brief=True)
    clock, ask = scene.clock, scene.ask()
    session = open_session(snapshot, scene.config, clock, scene.carry, scene.options, trail=trail, ask=ask)
    opening = OpeningState.of(session)
    queues = standings_of(session, opening.gauges)
    for action in scene.config.actions:
        run_action(session, action)
    session.action = ""
    places = places_of(trail.turns)
    finder = ReasonFinder(session, trail, opening)
    refused = _refused(session, scene)
    with trail.paused():
        jobs = [job for job in _who_waits(session) if job.key not in refused]
        waiting = [_waiting(session, finder, job, places.get(job.key, Place())) for job in jobs]
        waiting += [
            _waiting(session, finder, job, places.get(job.key, Place()), refused[job.key])
            for job in session.jobs.in_order
            if job.key in refused
        ]
    waiting += [*_strays(session), *_groupless(scene.view)]
    result = close_session(session)
    waiting += _of_others(scene, result)
    count_waiting(queues, ((job.queue, job.pods) for job in waiting))
    order = sorted(waiting, key=lambda job: (job.place.rank < 0, job.place.rank, job.queue, job.job))
    return WaitingJobs(scene.clock.cycle, scene.clock.now, queues, list(_numbered(order)), supposed(ask, scene.config))


def with_reasons(fork: Fork, starts: Mapping[str, Estimate], *, as_files: bool = False) -> dict[str, Estimate]:
    """Add to estimates of starts the reasons of the jobs at the fork, as the next cycle gives them. `as_files`: no
    controller has acted on its objects yet.
    """
    objects = [*fork.objects]
    if as_files:
        from pumice.load.manifests import Loaded  # noqa: PLC0415 - an API, which a journal does not need
        from pumice.questions.oneshot.bring import brought  # noqa: PLC0415

        objects = brought(Loaded(objects), (), fork.now).objects
    view, clock = fill(objects, fork.in_flight), CycleClock(fork.cycle + 1, fork.now, 0)
    next_cycle = Scene(view, fork.config, clock, Carry.from_dict(fork.carry), objects=lambda: objects)
    waits = {name: job.wait for job in waiting_jobs_of(next_cycle).waiting for name in (job.job, job.name)}
    return {name: replace_fields(each, wait=waits.get(name)) for name, each in starts.items()}


def _who_waits(session: Session) -> list[Job]:
    """Return jobs with pods that have no node after the last action, and jobs without pods: those of a Job are made
    once it is admitted.
    """
    found = jobs_with_waiting_tasks(session)
    columns, order = session.snapshot.jobs, session.snapshot.jobs.order
    without = np.add.reduce(columns.counts.take(order, axis=1)) == 0
    early = without & (columns.phase[order] <= PodGroupPhase.INQUEUE.value)
    return [*found, *[session.jobs.in_order[place] for place in early.nonzero()[0].tolist()]]


def _refused(session: Session, scene: Scene) -> dict[str, WaitReason]:
    """Return jobs all of whose waiting pods have a node in this cycle, and that had a bind refused before: by name."""
    found: dict[str, WaitReason] = {}
    counts = session.jobs.counts
    for job in session.jobs.where(session.jobs.columns.counts[TaskStatus.BINDING] > 0):
        if any(counts[status][job.row] for status in EVERY_TASK):
            continue  # what its other pods wait for counts first
        binding = [task.key for task in session.jobs.tasks_in(job, TaskStatus.BINDING)]
        refused = refused_among(scene.view, binding, scene.refused)
        if refused:
            pod, bind = next(iter(refused.items()))
            found[job.key] = bind.reason(pod)
    return found


def _waiting(
    session: Session, finder: ReasonFinder, job: Job, place: Place, refused: WaitReason | None = None
) -> WaitingJob:
    jobs, row = session.jobs, job.row
    waits = EVERY_TASK if refused is None else (TaskStatus.BINDING,)
    pods = sum(int(jobs.counts[status][row]) for status in waits)
    wait, needed = refused or finder.find(job), finder.needed(job)
    phase = PHASES[jobs.phase[row]]
    held, least = jobs.allocated_count(job) - (pods if refused else 0), jobs.min_member[row]
    asks: dict[str, float] = {}
    for task in needed:
        for dimension, value in task.template.items:
            name = session.dims.names[dimension]
            asks[name] = asks.get(name, 0.0) + told(name, value)
    spec = job.pod_group
    if not job.tasks and spec.min_resources is not None:
        asks = {name: told(name, value) for name, value in amounts(spec.min_resources).items()}
    sums = {name: value for name, value in sorted(asks.items()) if value}
    wanted = len(needed) if job.tasks else least
    counts = (pods, wanted, held, least, spec.created)
    return WaitingJob(job.key, spec.queue, phase, None, wait, *counts, sums, place, owner_of(spec.pod_group))


def _strays(session: Session) -> list[WaitingJob]:
    """Return jobs that no session sees, because their queue does not exist."""
    known, found = session.queues, list[WaitingJob]()
    for job in session.snapshot.jobs.handles:
        if job is None or job.spec is None or job.spec.queue in known:
            continue
        waiting = [task for task in job.tasks.values() if task.status == TaskStatus.PENDING]
        if waiting or not job.tasks:
            spec = job.spec
            wait = queueless(spec.queue)
            waits = (len(waiting), 0, 0, spec.min_member, spec.created)
            found.append(
                WaitingJob(job.key, spec.queue, spec.phase, None, wait, *waits, {}, Place(), owner_of(spec.pod_group))
            )
    return found


def _groupless(view: View) -> list[WaitingJob]:
    """Return pods that name a PodGroup which does not exist, by that, and Volcano pods for which none was made, each by
    itself.
    """
    found: dict[str, list[Task]] = {}
    for task in view.tasks.by_key.values():
        if view.tasks.status[task.row] != TaskStatus.PENDING or task.scheduler not in ("", SCHEDULER):
            continue
        group = task.annotations.get(GROUP_NAME)
        job = view.jobs.by_key.get(task.job) if group else None
        if job is None or job.spec is None:
            found.setdefault(key_of(task.namespace, group) if group else task.key, []).append(task)
    return [
        WaitingJob(name, "", "", None, outsider(view, tasks[0]), len(tasks), 0, 0, 1, tasks[0].created, {}, Place())
        for name, tasks in sorted(found.items())
    ]


def _of_others(scene: Scene, result: CycleResult) -> list[WaitingJob]:
    """Return pods for which Kubernetes' own scheduler finds no node, each by itself. Of a recorded cycle its own cycles
    have the answer.
    """
    if scene.recorded is not None or not has_others(scene.view, scene.config):
        return []
    other = decide_others(fill(scene.objects(), scene.in_flight), scene.config, scene.clock, result)
    tasks = scene.view.tasks.by_key
    return [
        WaitingJob(pod, "", "", None, wait, 1, 1, 0, 1, tasks[pod].created, {}, Place())
        for pod, wait in sorted(other.reasons.items() if other is not None else ())
        if pod in tasks
    ]


def _numbered(waiting: list[WaitingJob]) -> Iterator[WaitingJob]:
    for position, job in enumerate(waiting, 1):
        yield job if job.place.rank < 0 else replace(job, position=position)


# --- Jobs that wait at the end of a journal, and their reasons: the newest cycle, decided again


OK: Final = 200


class WaitRow(NamedTuple):
    """A waiting job with its queue and its reason."""

    job: str
    queue: str
    wait: WaitReason

    def told(self) -> WaitTold:
        """Return it as it is printed."""
        wait = self.wait
        return WaitTold(
            queue=self.queue, wait_class=wait.wait_class, reason=wait.code, because=wait.sentence, wait=wait
        )


class WaitTold(msgspec.Struct, frozen=True, kw_only=True):
    """Reason for which a job waits: its class and code, and why in a sentence; `wait`: the whole reason."""

    queue: str
    wait_class: str = msgspec.field(name="class")
    reason: str
    because: str
    wait: WaitReason


def waits_at_the_end(db: Path, plugins_dir: str | None = None) -> list[WaitRow]:
    """Return the jobs that wait in the newest cycle, in the order in which they are tried; none where that cycle cannot
    be decided again. Not within an event loop.
    """
    from pumice.questions.adviser.answers import answer  # noqa: PLC0415 - half a second, which a run without waits does not need

    told = answer(str(db), plugins_dir, AdviserQuestion("standings"))
    waiting: list[Object] = msgspec.json.decode(told.body)["waiting"] if told.code == OK else []
    return [WaitRow(each["made_for"], each["queue"], msgspec.convert(each["wait"], WaitReason)) for each in waiting]
