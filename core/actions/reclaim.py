"""reclaim: room for starving jobs of queues that have less than they deserve, taken from other queues.

Source: Volcano `actions/reclaim` (reference section 1.5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.actions.candidates import CandidateNodes
from core.actions.screen import reclaimable, worth_trying
from core.actions.starving import pending_tasks, starving_jobs
from core.actions.victims import NEVER, add_request, available, fits, make_room, of_other_queues, tasks_that
from core.session.action_arguments import caches_errors
from core.session.reasons import FitFailure
from core.session.residents import Residents
from core.session.victim_order import victim_queue

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.objects.pod import Task
    from core.objects.queue import Queue
    from core.session.session import Session
    from core.session.statement import Statement
    from core.state.jobs import Job

NAME = "reclaim"


def execute(session: Session) -> None:
    """Queue by queue; a queue's first turn takes all its jobs, overused or not by then."""
    cache_errors = caches_errors(session, NAME)
    starving, facts = starving_jobs(session, every_queue=True), Residents(session)
    while len(starving.queues):
        queue = starving.queues.pop()
        if session.points.any_true("Overused", queue):
            continue
        jobs = starving.jobs.get(queue.name)
        while jobs:
            _reclaim_for_job(session, facts, queue, jobs.pop(), cache_errors=cache_errors)
            if len(jobs):
                starving.queues.push(queue)


def _reclaim_for_job(session: Session, facts: Residents, queue: Queue, job: Job, *, cache_errors: bool) -> None:
    """Its tasks in order, kept only if the job can then run."""
    statement, tasks = session.statement(), pending_tasks(session, job)
    while session.points.first_tier_agrees("JobStarving", job) and len(tasks):
        task = tasks.pop()
        if task.template.preemption_policy != NEVER and session.points.all_agree("Preemptive", queue, [task]):
            _reclaim_for_task(session, facts, statement, task, cache_errors=cache_errors)
    if session.job_pipelined(job):
        statement.commit()
    else:
        statement.discard()


def _reclaim_for_task(
    session: Session, facts: Residents, statement: Statement, task: Task, *, cache_errors: bool
) -> None:
    """The first node, unscored, where others can make room."""
    try:
        search = session.search_for(task, room=False)
    except FitFailure:
        return
    accepts = of_other_queues(session, task)
    movable = reclaimable(session, task)
    for nodes in CandidateNodes(session, cache_errors=cache_errors).find(task, search):
        for i in worth_trying(session, facts, task, nodes, movable, somebody=True):
            if _on_node(session, statement, task, int(nodes[i]), accepts):
                return


def _on_node(session: Session, statement: Statement, task: Task, node: int, accepts: Callable[[Task], bool]) -> bool:
    candidates = tasks_that(session, node, accepts)
    if not candidates:
        return False
    victims = session.points.tiered_intersection("Reclaimable", task, candidates)
    if not make_room(session, task, node, victims):
        return False
    room, waiting, trial = available(session, task, node, ()), victim_queue(session, victims, task), session.statement()
    while not fits(task, room) and len(waiting):
        victim = waiting.pop()
        trial.evict(victim, NAME, task.key)
        add_request(room, victim)
    if fits(task, room) and trial.pipeline(task, node, evicted=len(trial) > 0):
        statement.merge(trial)
        return True
    trial.discard()
    return False
