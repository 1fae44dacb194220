"""Whether a network topology is what a job waits for: how many of its pods each HyperNode that it allows could take."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.core.life.task import TaskStatus
from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.reasons import FitFailure
from pumice.core.session.search.node_search import NodeSearch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.session.points.nodes import FloatArray
    from pumice.core.session.search.node_search import BoolArray
    from pumice.core.session.session import Session
    from pumice.core.state.hypernodes import Domain, HyperNodeTree
    from pumice.core.state.jobs import Job

NAMED: Final = 3
"""So many HyperNodes, and so many different numbers of pods, are named."""
PLUGIN: Final = "network-topology-aware"


@dataclass(frozen=True)
class Confined:
    """`words`: which pods must go together and where there is how much room for them, "" where there is enough, or
    where no topology is asked for; `rooms`: HyperNode -> how many of them it could take.
    """

    words: str = ""
    rooms: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True)
class _Crowd:
    """Tasks that wait and must go into one HyperNode up to a tier, `needed` of them at once."""

    who: str
    tasks: Sequence[Task]
    needed: int
    highest: int
    occupied: str


def confined(session: Session, job: Job) -> Confined:
    """What the nodes have to give after the last action counts. Of several groups of a job, the first for which there
    is no HyperNode.
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
    """The job itself, or where it has groups its minimum and then each of them whole, as the plugin demands room."""
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
    """The widest HyperNodes that it may go to: others lie within them."""
    around = set(tree.ancestors(crowd.occupied)) if crowd.occupied else None
    return [
        domain
        for domain in tree.domains.values()
        if domain.tier <= crowd.highest
        and (domain.parent not in tree.domains or tree.domains[domain.parent].tier > crowd.highest)
        and (around is None or domain.name in around)
    ]


def _fitting(session: Session, task: Task) -> BoolArray:
    """The nodes that would do for a task alike, bool [node]."""
    session.action, session.searches.current = "", task
    try:
        session.points.pre_predicate(task)
        found: BoolArray = NodeSearch(session, task).codes == 0
    except FitFailure:
        return np.zeros(session.nodes.count, np.bool_)
    return found


def _room(future: FloatArray, domain: Domain, crowd: _Crowd, fits: dict[int, BoolArray]) -> int:
    """How many of the tasks find room, those alike at once; `future` float64 [resource, node of the domain]."""
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
