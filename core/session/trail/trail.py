# SPDX-License-Identifier: Apache-2.0
"""The writers of a trail.

A session always has one to write to; without a reader it is silent.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pumice.core.life.task import LABELS
from pumice.core.objects.pod import Task
from pumice.core.resources.amounts import MIN_RESOURCE
from pumice.core.session.points.nodes import Volatility
from pumice.core.session.reasons import FitFailure
from pumice.core.session.search.node_search import ALL, NodeSearch
from pumice.core.session.trail.records import (
    AdmissionVotes,
    Election,
    Ended,
    Ending,
    FilterAnswer,
    Look,
    Opinion,
    Precedence,
    Turn,
)

if TYPE_CHECKING:
    from collections.abc import Container, Generator

    import numpy.typing as npt

    from pumice.core.session.points.nodes import BoolArray, FloatArray, TaskBatch
    from pumice.core.session.points.orders import JobQueue
    from pumice.core.session.points.rules import Check
    from pumice.core.session.reasons import IntArray
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job

# --- Elections


class Hearing:
    """The choice on one node, while it is being made."""

    def __init__(self, election: Election) -> None:
        self._election = election

    def gave(self, tier: int, plugin: str, answer: Sequence[Task]) -> None:
        """Note the candidates that the plugin would evict."""
        self._election.opinions.append(Opinion(tier, plugin, frozenset(task.key for task in answer)))

    def abstained(self, tier: int, plugin: str) -> None:
        """Note that the plugin abstains."""
        self._election.opinions.append(Opinion(tier, plugin, abstained=True))

    def decided(self, tier: int, victims: Sequence[Task]) -> None:
        """Note that the tier decided."""
        self._election.tier, self._election.victims = tier, tuple(task.key for task in victims)


class HearingOfMany:
    """The choices on many nodes together. `elections`: by the nodes' places in the batch."""

    def __init__(self, elections: dict[int, Election], batch: TaskBatch) -> None:
        self._elections, self._bounds = elections, batch.bounds()
        self._keys = [task.key for task in batch.facts.tasks(batch.rows)]

    def gave(self, tier: int, plugin: str, answer: BoolArray, over: BoolArray) -> None:
        """Note a plugin's answer. `answer` bool [M]; `over` bool [count]: the nodes where it does not count any
        more.
        """
        for place, election in self._elections.items():
            # The tier is decided on the other nodes; the mask has answers about them all the same.
            if not over[place]:
                election.opinions.append(Opinion(tier, plugin, frozenset(self._on(place, answer))))

    def decided(self, tier: int, victims: BoolArray) -> None:
        """Note that the tier decided. `victims` bool [M]: the candidates that may be evicted."""
        for place, election in self._elections.items():
            found = self._on(place, victims)
            if found:
                election.tier, election.victims = tier, tuple(found)

    def _on(self, place: int, mask: BoolArray) -> list[str]:
        first, last = self._bounds[place : place + 2]
        return [key for key, holds in zip(self._keys[first:last], mask[first:last].tolist(), strict=True) if holds]


class Elections:
    """The elections of a trail, in order. Merge rules report the plugins' answers to them."""

    def __init__(self, trail: Trail) -> None:
        self._trail = trail
        # In order: of two choices for one pod readers take the later one.
        self.held: list[Election] = []

    def hear(self, point: str, subject: object, candidates: Sequence[Task]) -> Hearing | None:
        """Begin a choice among candidates on one node; None without candidates or without a reader."""
        election = self._begin(point, subject, candidates) if candidates else None
        return None if election is None else Hearing(election)

    def hear_many(self, point: str, subject: object, batch: TaskBatch) -> HearingOfMany | None:
        """Begin a choice among candidates on many nodes; None without candidates or without a reader."""
        found: dict[int, Election] = {}
        for place, here in enumerate(batch.by_node()):
            election = self._begin(point, subject, here) if here else None
            if election is not None:
                found[place] = election
        return HearingOfMany(found, batch) if found else None

    def _begin(self, point: str, subject: object, candidates: Sequence[Task]) -> Election | None:
        trail = self._trail
        preemptor, job = _who(subject)
        # A brief trail keeps no elections: each has all candidates of its node, and a cycle may hold thousands.
        if trail.brief:
            return None
        if preemptor not in trail.tasks and job not in trail.jobs and not any(c.key in trail.tasks for c in candidates):
            return None
        keys = tuple(task.key for task in candidates)
        election = Election(trail.session.action, point, preemptor, keys, _node_of(trail.session, candidates))
        self.held.append(election)
        return election

    def of(self, victim: str, preemptor: str = "") -> Election | None:
        """Return the last choice that offered the pod, for that preemptor if one was for it."""
        offered = [election for election in reversed(self.held) if victim in election.candidates]
        # The choice for this preemptor; another one's is shown only where there was none for it.
        return next((election for election in offered if election.preemptor == preemptor), next(iter(offered), None))


def _who(subject: Any) -> tuple[str, str]:
    """Return the task or gang eviction that needs room, and the job; empty for evictions without a preemptor."""
    if isinstance(subject, Task):
        return subject.key, subject.job
    return ("", "") if subject is None else (subject.job.key, subject.job.key)


def _node_of(session: Session, candidates: Sequence[Task]) -> str:
    rows = {session.jobs.node[task.row] for task in candidates}
    return session.nodes.names[rows.pop()] if len(rows) == 1 and min(rows) >= 0 else ""


# --- Searches that are heard


class HeardSearch(NodeSearch):
    """A NodeSearch whose choices go to the session's trail."""

    _group: BoolArray | None = None  # the candidates of the last choice
    _seen: BoolArray | None = None  # who was looked at for it; None: all

    def choose(self) -> tuple[int, IntArray]:
        """Return the best node's row (-1 without one) and the reason numbers of the nodes that were looked at and
        refused.
        """
        self._group = self._seen = None
        node, codes = super().choose()
        self.session.trail.looked(self, self.idle if self._group is None else self._group, node, self._seen)
        return node, codes

    def look(self, feasible: BoolArray) -> tuple[BoolArray, BoolArray]:
        """Return which feasible nodes are taken and which were looked at, where not all of them are."""
        taken, self._seen = super().look(feasible)
        return taken, self._seen

    def choose_within(self, rows: npt.NDArray[np.intp]) -> tuple[int, IntArray]:
        """Choose among some rows only."""
        node, codes = super().choose_within(rows)
        assert self._group is not None
        self.session.trail.looked(self, self._group, node)
        return node, codes

    def best_of(self, group: BoolArray) -> int:
        """Return the best of a group of candidates without kept scores; -1 when it is empty or has no scores; a single
        candidate is not scored.
        """
        self._group = group
        return super().best_of(group)

    def answers(self) -> list[FilterAnswer]:
        """Return each filter's answer about each node by itself: room first (an answer a resource), then the
        filters.
        """
        found = list[FilterAnswer]()
        own = self.session.searches.hard_shard
        if own is not None:
            found.append(FilterAnswer("shard", np.where(own, 0, self.session.searches.outside_shard).astype(np.int32)))
        lacks = self.lacks(self.session.nodes.future)
        for dimension, _ in self.template.items if self._room else ():
            code = np.int32(self.session.searches.insufficient(dimension))
            found.append(FilterAnswer("resources", lacks[dimension] * code))
        for plugin, checks in self.filters.by_plugin:
            found += [FilterAnswer(plugin, self._answer(plugin, check)) for check in checks]
        return [answer for answer in found if answer.codes.any()]

    def _answer(self, plugin: str, check: Check) -> IntArray:
        """Return one filter's answer; for a filter whose answers cost questions, the given ones."""
        if check.volatility is not Volatility.MOMENT:
            return check.many(ALL).copy()
        said = [code if _has_said(code, plugin, self) else 0 for code in self.codes.tolist()]
        return np.array(said, dtype=np.int32)


def _has_said(code: int, plugin: str, search: HeardSearch) -> bool:
    return any(reason.plugin == plugin for reason in search.session.reasons.reasons(code))


def look_of(
    search: HeardSearch, group: BoolArray, node: int, seen: BoolArray | None = None, *, every_filter: bool
) -> Look:
    """Return the present answers of a search. `group`: the candidates; `node`: the row that was chosen among them, or
    -1; `seen`: which nodes were looked at, None for all.
    """
    session, fitting = search.session, np.flatnonzero(group)
    return Look(
        session.action,
        search.task.key,
        session.nodes.names,
        session.reasons,
        search.codes.copy() if seen is None else np.where(seen, search.codes, np.int32(0)),
        fitting,
        chosen=session.nodes.names[node] if node >= 0 else "",
        nominated=search.task.nominated,
        every=search.answers() if every_filter else [],
        scores=_scores(search, fitting),
        lacking=_lacking(session, search.task),
        seen=seen,
    )


def look_without_nodes(session: Session, task: Task, failure: FitFailure) -> Look:
    """Return a look without nodes: no node can fit."""
    codes = np.full(session.nodes.count, session.reasons.intern(failure.reason), dtype=np.int32)
    no_nodes = np.zeros(0, dtype=np.intp)
    look = Look(session.action, task.key, session.nodes.names, session.reasons, codes, no_nodes)
    look.nominated, look.every = task.nominated, [FilterAnswer(failure.reason.plugin, codes)]
    return look


def look_at_one(session: Session, task: Task, row: int) -> Look:
    """Return a look at the nominated node alone, which was taken."""
    name = session.nodes.names[row]
    codes, fitting = np.zeros(1, dtype=np.int32), np.zeros(1, dtype=np.intp)
    return Look(session.action, task.key, [name], session.reasons, codes, fitting, chosen=name, nominated=name)


def _scores(search: NodeSearch, fitting: npt.NDArray[np.intp]) -> dict[str, FloatArray]:
    if len(fitting) < 2:  # a single one is taken without: to score it would ask and move what no cycle does
        return {}
    found: dict[str, FloatArray] = {}
    for plugin, score in search.scoring.parts(fitting):
        found[plugin] = found[plugin] + score if plugin in found else np.broadcast_to(score, fitting.shape)
    return found


def _lacking(session: Session, task: Task) -> dict[str, tuple[float, float]]:
    future = session.nodes.future
    most = [(dimension, asked, float(future[dimension].max(initial=0.0))) for dimension, asked in task.template.items]
    return {
        session.dims.names[dimension]: (asked, amount)
        for dimension, asked, amount in most
        if asked - amount >= MIN_RESOURCE
    }


class NullTrail:
    """A trail without a reader: it keeps nothing. `listens`: True if facts should be computed only for the trail;
    `is_asking`: whether plugins are being asked just for that; `search`: how nodes are searched.
    """

    listens = is_asking = False
    search: type[NodeSearch] = NodeSearch

    def begin(self, session: Session) -> None:
        """Note that the session opens."""

    def end(self) -> None:
        """Note that the last action has ended."""

    def job_ended(self, job: Job, ending: Ending, detail: str = "", domain: str = "") -> None:
        """Note that the action is done with the job for now, or with one HyperNode for it."""

    def queue_ended(self, queue: str, ending: Ending, left: JobQueue | None = None) -> None:
        """Note that the action is done with a queue, and so with all its jobs without an ending of their own; `left`:
        those that it has not tried.
        """

    def job_turn(self, job: Job, behind: JobQueue) -> None:
        """Note that the action takes up a job; `behind`: the rest of its queue."""

    def task_ended(self, task: Task, ending: Ending, detail: str = "", node: int = -1) -> None:
        """Note that the action is done with the task, or with one node for it."""

    def looked(self, search: NodeSearch, group: BoolArray, node: int = -1, seen: BoolArray | None = None) -> None:
        """Note a search for a node for a task; `group`: the candidates, `node`: the chosen one, `seen`: the nodes
        looked at, where not all were.
        """

    def looked_at_one(self, task: Task, row: int) -> None:
        """Note that only the nominated node was looked at, and fits."""

    def found_nowhere(self, task: Task, failure: FitFailure) -> None:
        """Note that no node was looked at, since none can fit."""


class Everything:
    """A collection that contains everything."""

    def __contains__(self, name: object) -> bool:
        return True


EVERYTHING: Final = Everything()
NULL_TRAIL: Final = NullTrail()


class Trail(NullTrail):
    """The record of one session about `tasks` and `jobs`, "namespace/name" each (all of them unless named).
    `every_filter`: each filter's answer about each node, also where an earlier one had refused it already. `brief`:
    without the findings on single nodes and the tasks' statuses, for all jobs of a large cluster.

    `looks`: by task, in order; `admissions`: by job; `endings`: in order, by the job's name; `turns`: in which order
    jobs were taken up, and what put each before the next of its queue; `elections` in which one
    of the tasks might have had to go, or room was to be made for one of the tasks or jobs; `statuses`: of tasks
    after the last action.
    """

    listens = True
    search = HeardSearch

    def __init__(
        self,
        tasks: Container[str] = EVERYTHING,
        jobs: Container[str] = EVERYTHING,
        *,
        every_filter: bool = False,
        brief: bool = False,
    ) -> None:
        self.tasks, self.jobs, self.every_filter, self.brief = tasks, jobs, every_filter, brief
        self.looks: dict[str, list[Look]] = {}
        self.admissions: dict[str, AdmissionVotes] = {}
        self.endings: dict[str, list[Ended]] = {}
        self.turns: list[Turn] = []
        self.elections = Elections(self)
        self.statuses: dict[str, str] = {}
        self._of_queues: list[tuple[str, Ended]] = []
        self._rows: dict[str, int] = {}  # of jobs
        self._queues: dict[str, str] = {}  # job -> its queue
        self._session: Session | None = None

    @property
    def session(self) -> Session:
        """Return the followed session."""
        assert self._session is not None
        return self._session

    def begin(self, session: Session) -> None:
        """Follow this session from here on."""
        self._session = session
        self._rows = {job.key: job.row for job in session.jobs.in_order}
        self._queues = {job.key: job.pod_group.queue for job in session.jobs.in_order if job.key in self.jobs}
        session.points.tell(self)

    def end(self) -> None:
        """Note that the last action has ended, and drop the session."""
        session, self._session = self.session, None
        status = session.jobs.status
        tasks = (task for task in session.snapshot.tasks.handles if task is not None and task.key in self.tasks)
        self.statuses = {task.key: LABELS[status[task.row]] for task in tasks}

    @contextmanager
    def paused(self) -> Generator[None]:
        """Mark the questions to plugins meanwhile as not part of the cycle."""
        before, self.is_asking = self.is_asking, True
        try:
            yield
        finally:
            self.is_asking = before

    def of_job(self, name: str) -> list[Ended]:
        """Return where each action ended for the job or its tasks, in order; or for its whole queue."""
        own = self.endings.get(name, [])
        heard = {each.action for each in own}
        mine = self._queues.get(name)
        return [*own, *[one for queue, one in self._of_queues if queue == mine and one.action not in heard]]

    # --- what the session tells

    def job_ended(self, job: Job, ending: Ending, detail: str = "", domain: str = "") -> None:
        """Note that the action is done with the job for now, or with one HyperNode for it."""
        if job.key in self.jobs:
            self._ended(job.key, job.key, ending, detail, domain)

    def queue_ended(self, queue: str, ending: Ending, left: JobQueue | None = None) -> None:
        """Note that the action is done with a queue, and so with all its jobs without an ending of their own; `left`:
        those that it has not tried.
        """
        self._of_queues.append((queue, Ended(self.session.action, queue, ending)))
        with self.paused():
            waiting = left.in_order() if left else []
            for job, following in zip(waiting, (*waiting[1:], None), strict=False):
                self._take_turn(job, following, tried=False)

    def job_turn(self, job: Job, behind: JobQueue) -> None:
        """Note that the action takes up a job; `behind`: the rest of its queue."""
        with self.paused():
            self._take_turn(job, behind.first() if behind else None, tried=True)

    def _take_turn(self, job: Job, following: Job | None, *, tried: bool) -> None:
        if job.key not in self.jobs:
            return
        session, queue = self.session, job.pod_group.queue
        share = next((teller.share_now(queue) for teller in session.tellers.queues), None)
        ahead = None
        if following is not None:
            ahead = Precedence(following.key, *session.points.job_order.tells_apart(job, following))
        self.turns.append(Turn(session.action, job.key, queue, tried, share, ahead))

    def task_ended(self, task: Task, ending: Ending, detail: str = "", node: int = -1) -> None:
        """Note that the action is done with the task, or with one node for it."""
        if node >= 0 and self.brief and ending is not Ending.PLACEMENT_REFUSED:
            return
        if task.key in self.tasks or task.job in self.jobs:
            self._ended(task.job, task.key, ending, detail, self.session.nodes.names[node] if node >= 0 else "")

    def _ended(self, job: str, who: str, ending: Ending, detail: str, node: str) -> None:
        jobs, row = self.session.jobs, self._rows[job]
        counts = [] if self.brief else [int(line[row]) for line in jobs.counts]
        tasks = {label: number for label, number in zip(LABELS, counts, strict=not self.brief) if number}
        held = self._held(self._queues.get(job, "")) if ending is Ending.MAY_NOT_TAKE and not self.brief else {}
        ended = Ended(self.session.action, who, ending, detail, node, tasks, jobs.min_member[row], held)
        self.endings.setdefault(job, []).append(ended)

    def _held(self, queue: str) -> dict[str, float]:
        found = [teller.held_now(queue) for teller in self.session.tellers.queues] if queue else []
        return {name: held.get(name) for held in found if held is not None for name in held.resource_names()}

    def looked(self, search: NodeSearch, group: BoolArray, node: int = -1, seen: BoolArray | None = None) -> None:
        """Note a search for a node for a task; `group`: the candidates, `node`: the chosen one, `seen`: the nodes
        looked at, where not all were.
        """
        if search.task.key in self.tasks:
            assert isinstance(search, HeardSearch)
            with self.paused():
                self._keep(look_of(search, group, node, seen, every_filter=self.every_filter))

    def looked_at_one(self, task: Task, row: int) -> None:
        """Note that only the nominated node was looked at, and fits."""
        if task.key in self.tasks:
            self._keep(look_at_one(self.session, task, row))

    def found_nowhere(self, task: Task, failure: FitFailure) -> None:
        """Note that no node was looked at, since none can fit."""
        if task.key in self.tasks:
            self._keep(look_without_nodes(self.session, task, failure))

    def _keep(self, look: Look) -> None:
        self.looks.setdefault(look.task, []).append(look)

    def admission(self, job: Job) -> AdmissionVotes | None:
        """Note that a job asks for admission; None without a reader."""
        if job.key not in self.jobs:
            return None
        found = self.admissions[job.key] = AdmissionVotes(job.key)
        return found

    # --- what no action looked at

    def look_anyway(self, task: Task) -> None:
        """Record what a search for the task would see now, as if an action "" had looked."""
        session = self.session
        session.action, session.searches.current = "", task
        try:
            with self.paused():
                session.points.pre_predicate(task)
                search = HeardSearch(session, task)
        except FitFailure as failure:
            self.found_nowhere(task, failure)
            return
        self.looked(search, search.codes == 0)
