# SPDX-License-Identifier: Apache-2.0
"""One cycle decided with a trail of its subjects."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from pumice.core.cycle import Trail, close_session, open_session, run_action
from pumice.core.default_scheduler.cycle import closed, opened
from pumice.core.devices.family import told_of
from pumice.core.life.task import TaskStatus
from pumice.core.outside import Ask, Supposing
from pumice.core.plugins import OF_DEVICES
from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.reasons import FitFailure
from pumice.core.session.search.node_search import NodeSearch
from pumice.questions.adviser.reasons import said
from pumice.questions.adviser.wait_reasons import OpeningState, ReasonFinder, WaitReasons
from pumice.questions.explain.advice.groups import EVICTING
from pumice.questions.explain.jobs import WAITING, JobLook, conclude, look_at_jobs
from pumice.questions.explain.refused import standing_locks
from pumice.questions.oneshot.cycles import decide_others, fill, together

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pumice.config.schema import SchedulerConfig
    from pumice.core.messages.decisions import CycleResult
    from pumice.core.objects.pod import Task
    from pumice.core.session.carry import Carry, CycleClock, SessionOptions
    from pumice.core.session.points.nodes import FloatArray
    from pumice.core.session.search.node_search import BoolArray
    from pumice.core.session.session import Session
    from pumice.core.session.trail.records import Look
    from pumice.core.state.hypernodes import Domain, HyperNodeTree
    from pumice.core.state.jobs import Job
    from pumice.core.state.snapshot import Snapshot
    from pumice.core.state.view import View
    from pumice.questions.explain.scene import Scene

# --- Room within a network topology

NAMED: Final = 3
"""Number of HyperNodes, and of different numbers of pods, that are named."""
PLUGIN: Final = "network-topology-aware"


@dataclass(frozen=True)
class Confined:
    """A confined job. `words`: which pods must go together and where there is how much room for them, "" where there is
    enough, or without a topology; `rooms`: HyperNode -> how many of them it could take.
    """

    words: str = ""
    rooms: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class _Crowd:
    """Waiting tasks that must go into one HyperNode up to a tier, `needed` of them together."""

    who: str
    tasks: Sequence[Task]
    needed: int
    highest: int
    occupied: str


def confined(session: Session, job: Job) -> Confined:
    """Return what the nodes have to give after the last action counts. Of several groups of a job, the first for which
    no HyperNode exists.
    """
    topology = session.topology
    if PLUGIN not in session.plugins or not topology.is_ready or not topology.is_asked_for(job):
        return Confined()
    fits: dict[int, BoolArray] = {}
    for crowd in _crowds(session, job):
        for task in crowd.tasks:
            if task.template.number not in fits:
                fits[task.template.number] = _fitting(session, task)
        domains = _allowed(topology.tree, crowd)
        rooms = {domain.name: _room(session.nodes.future[:, domain.rows], domain, crowd, fits) for domain in domains}
        if max(rooms.values(), default=0) < crowd.needed:
            return Confined(_sentence(crowd, rooms), rooms)
    return Confined()


def _crowds(session: Session, job: Job) -> Iterator[_Crowd]:
    """Yield the job itself, or where it has groups its minimum and then each of them whole, as the plugin
    checks room.
    """
    topology, whole = session.topology, not session.has_sub_job_policy(job)
    wish, waiting = topology.of_job(job), _waiting(session, list(job.tasks.values()))
    if wish is not None and wish.limit is not None and waiting:
        occupied = topology.occupied.get(job.row, "")
        missing = max(1, job.pod_group.min_member - (len(job.tasks) - len(waiting)))
        needed = len(waiting) if whole and not occupied else min(missing, len(waiting))
        yield _Crowd("it", waiting, needed, wish.limit, occupied)
    for group in () if whole else session.sub_jobs(job).values():
        wish, waiting = topology.of_sub_job(group), _waiting(session, group.tasks)
        if wish is not None and wish.limit is not None and waiting:
            occupied = group.allocated_hyper_node
            yield _Crowd(f"its group {group.uid}", waiting, 1 if occupied else len(waiting), wish.limit, occupied)


def _waiting(session: Session, tasks: Sequence[Task]) -> list[Task]:
    return [task for task in tasks if session.jobs.status[task.row] == TaskStatus.PENDING]


def _allowed(tree: HyperNodeTree, crowd: _Crowd) -> list[Domain]:
    """Return the widest HyperNodes that it may go to: others lie within them."""
    around = set(tree.ancestors(crowd.occupied)) if crowd.occupied else None
    return [
        domain
        for domain in tree.domains.values()
        if domain.tier <= crowd.highest
        and (domain.parent not in tree.domains or tree.domains[domain.parent].tier > crowd.highest)
        and (around is None or domain.name in around)
    ]


def _fitting(session: Session, task: Task) -> BoolArray:
    """Return the nodes that would do for a task alike, bool [node]."""
    session.action, session.searches.current = "", task
    try:
        session.points.pre_predicate(task)
        found: BoolArray = NodeSearch(session, task).codes == 0
    except FitFailure:
        return np.zeros(session.nodes.count, np.bool_)
    return found


def _room(future: FloatArray, domain: Domain, crowd: _Crowd, fits: dict[int, BoolArray]) -> int:
    """Return how many of the tasks find room, equal ones together; `future` float64 [resource, node of the domain]."""
    left, count = future.copy(), 0
    alike: dict[int, list[Task]] = {}
    for task in crowd.tasks:
        alike.setdefault(task.template.number, []).append(task)
    for number, tasks in alike.items():
        items = [(resource, value) for resource, value in tasks[0].template.items if value > 0]
        most = np.where(fits[number][domain.rows], len(tasks), 0)
        for resource, value in items:
            most = np.minimum(most, np.maximum(0, (left[resource] + MIN_RESOURCE) // value).astype(np.intp))
        taken = np.diff(np.minimum(np.cumsum(most), len(tasks)), prepend=0)
        for resource, value in items:
            left[resource] -= taken * value
        count += int(taken.sum())
    return count


def _sentence(crowd: _Crowd, rooms: dict[str, int]) -> str:
    asks = f"{crowd.who} must have room for {crowd.needed} pods within one HyperNode of tier {crowd.highest} at most"
    if not rooms:
        return f"{asks}, and there is none"
    numbers = sorted(set(rooms.values()), reverse=True)
    told = list[str]()
    for number in numbers[:NAMED]:
        names = [name for name, room in rooms.items() if room == number]
        listed = f"{', '.join(names[:NAMED])}{', …' * (len(names) > NAMED)}"
        told.append(f"{len(names)} {'has' if len(names) == 1 else 'have'} room for {number} ({listed})")
    less = sum(room < numbers[:NAMED][-1] for room in rooms.values())
    return f"{asks}: {', '.join(told)}{f', {less} for less' if less else ''}"


# --- Refused cards

NODES: Final = 8
"""Most nodes whose cards are listed."""


def cards_against(session: Session, trail: Trail) -> dict[str, dict[str, list[str]]]:
    """Return pod -> node -> a sentence for each card, as the last action left them."""
    if not session.devices:
        return {}
    tasks = {task.key: task for task in session.snapshot.tasks.handles if task is not None and task.key in trail.looks}
    told = {pod: _of_pod(session, task, trail.looks[pod][-1]) for pod, task in tasks.items()}
    return {pod: nodes for pod, nodes in told.items() if nodes}


def _of_pod(session: Session, task: Task, look: Look) -> dict[str, list[str]]:
    families = [family for family in session.devices if family.concerns(task)]
    refused = [node for node in look.refused() if any(r.plugin in OF_DEVICES for r in look.refusers(node))]
    found: dict[str, list[str]] = {}
    for node in refused[:NODES] if families else ():
        row = session.nodes.row[node]
        here = [(each.against(task, row), each.cards_asked(task)) for each in families if each.present[row]]
        sentences = [said for against, asked in here for said in told_of(against, asked)]
        found[node] = sentences or ["no cards of the kind"]
    return found


PLACING: Final = ("allocate", "backfill")
"""Actions that place tasks themselves; others look where evictions might help."""


class Room(NamedTuple):
    """Room on the nodes after the last action: `future` float64 [resource, node] in the scheduler's own units."""

    resources: list[str]
    row: dict[str, int]
    future: FloatArray

    @classmethod
    def of(cls, session: Session) -> Room:
        """Return the room on the nodes as it is now."""
        names = {name: row for row, name in enumerate(session.nodes.names)}
        return cls(list(session.dims.names), names, session.nodes.future.copy())

    def lacks(self, task: Task, node: str, more: int) -> dict[str, float]:
        """Return resource -> how much the node lacks for so many tasks more than it has room for."""
        asked = [(resource, value) for resource, value in task.template.items if value > 0]
        column = self.future[:, self.row[node]]
        fitting = min((int((column[resource] + MIN_RESOURCE) // value) for resource, value in asked), default=0)
        lacking = [(resource, value * (max(fitting, 0) + more) - column[resource]) for resource, value in asked]
        return {self.resources[resource]: float(value) for resource, value in lacking if value >= MIN_RESOURCE}


@dataclass
class Watched:
    """A watched cycle: its result, its trail, and the jobs ("namespace/name") in question. `cards`: for pods that were
    refused for lack of cards, the obstacle of each card, by node. `locks`: by node, a sentence on the lock that blocked
    a pod there.
    """

    result: CycleResult
    trail: Trail
    jobs: dict[str, JobLook]
    room: Room
    gauges: dict[str, dict[str, float]]
    cards: dict[str, dict[str, list[str]]]
    locks: dict[str, str] = field(default_factory=dict[str, str])
    reasons: WaitReasons = field(default_factory=lambda: WaitReasons({}, {}))

    def look(self, pod: str) -> Look | None:
        """Return the look that says most about a pod: the last that was to place it, else the last there was."""
        looks = self.trail.looks.get(pod, [])
        placing = (look for look in reversed(looks) if look.action in (*PLACING, ""))
        return next(placing, looks[-1] if looks else None)


class Subjects(NamedTuple):
    """Pods and jobs (PodGroups) in question, "namespace/name" each."""

    pods: frozenset[str]
    jobs: frozenset[str] = frozenset()


def watch_cycle(
    view: View,
    snapshot: Snapshot,
    config: SchedulerConfig,
    clock: CycleClock,
    carry: Carry,
    asked: Subjects,
    options: SessionOptions | None = None,
    ask: Ask | None = None,
) -> Watched:
    """Run the cycle. For waiting pods for which no action looked, nodes are searched after the last action. `ask`:
    without it no outside process is asked.
    """
    trail = Trail(asked.pods, asked.jobs, every_filter=True)
    session = open_session(snapshot, config, clock, carry, options, report=True, trail=trail, ask=ask or Supposing())
    with trail.paused():
        opening, jobs = OpeningState.of(session), look_at_jobs(session, sorted(asked.jobs))
    handles = {job.key: job for job in session.jobs.in_order if job.key in jobs}
    for place, action in enumerate(config.actions):
        if action in EVICTING and EVICTING.isdisjoint(config.actions[:place]):
            with trail.paused():  # a task that evictions make room for gets a node, and is not looked for afterwards
                _look_for_others(session, trail)
        run_action(session, action)
    with trail.paused():
        _look_for_others(session, trail)
        room, cards, locks = Room.of(session), cards_against(session, trail), standing_locks(session)
        reasons = ReasonFinder(session, trail, opening).reasons(view, asked.jobs)
        bounds = {key: confined(session, job) for key, job in handles.items() if not jobs[key].valid}
    result = close_session(session)
    conclude(jobs, result, trail)
    for look in jobs.values():
        wait = reasons.jobs.get(look.name)
        look.short = said(wait.numbers) if wait is not None and "rejects" in look.admission.values() else ""
        if look.name in bounds and look.phase not in WAITING:
            look.confined, look.rooms = bounds[look.name].words, bounds[look.name].rooms
    return Watched(result, trail, jobs, room, gauges_of(result), cards, locks, reasons)


def watch_other(
    snapshot: Snapshot, config: SchedulerConfig, clock: CycleClock, carry: Carry, asked: Subjects
) -> Watched:
    """Run a cycle of Kubernetes' own scheduler, which knows no jobs."""
    trail = Trail(asked.pods, asked.jobs, every_filter=True)
    turn = opened(snapshot, config, clock, carry, trail)
    turn.take_all()
    room = Room.of(turn.session)
    return Watched(closed(turn), trail, {}, room, {}, {})


def watched_by_other(scene: Scene, first: Watched, asked: Subjects) -> Watched:
    """Return the turn of Kubernetes' own scheduler after that cycle of Volcano's; that cycle where no pod waits for
    it."""
    trail = Trail(asked.pods, asked.jobs, every_filter=True)
    own = fill(scene.objects(), scene.in_flight)
    other = decide_others(own, scene.config, scene.clock, first.result, trail)
    if other is None:
        return first
    pods = {**first.reasons.pods, **other.reasons}
    result = together(first.result, other.result)
    return replace(first, result=result, trail=trail, reasons=WaitReasons(first.reasons.jobs, pods))


def gauges_of(result: CycleResult) -> dict[str, dict[str, float]]:
    """Return queue -> name -> the plugins' numbers, gauges and amounts together."""
    found: dict[str, dict[str, float]] = {}
    for table in (result.report.queues, result.report.queue_amounts):
        for place, queue in enumerate(table.queues):
            row = found.setdefault(queue, {})
            row.update({name: column[place] for name, column in table.values.items() if column[place] == column[place]})
    return found


def _look_for_others(session: Session, trail: Trail) -> None:
    for task in session.snapshot.tasks.handles:
        if task is None or task.key not in trail.tasks:
            continue
        if any(look.action in PLACING for look in trail.looks.get(task.key, ())):
            continue  # actions that evict look without room, so that full nodes seem to fit
        if session.jobs.status[task.row] == TaskStatus.PENDING:
            trail.look_anyway(task)
