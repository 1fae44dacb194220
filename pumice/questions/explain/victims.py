# SPDX-License-Identifier: Apache-2.0
"""Votes of the tiers on victims, over all the nodes where victims were chosen for one task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from pumice.core.actions.gangs.bundles import may_lose_tasks
from pumice.core.life.task import ALLOCATED_STATUSES, TaskStatus
from pumice.core.plugins import record_of
from pumice.core.plugins.plugin import Limit
from pumice.units import amounts_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.core.session.trail.records import Election
    from pumice.core.state.jobs import Job
    from pumice.core.state.view import View

NAMED: Final = 3
"""Number of the kept pods that are named."""
GANGS: Final = ("gangpreempt", "gangreclaim")
NO_CANDIDATES: Final = "there were no candidates"


def opinions_of(
    view: View, preemptor: str, elections: Sequence[Election], gauges: Mapping[str, Mapping[str, float]]
) -> list[str]:
    """Return one sentence a plugin that was asked, tier by tier: how many pods it gave, how many it kept, and why."""
    asked: dict[tuple[int, str], tuple[set[str], set[str]]] = {}
    for election in elections:
        for each in election.opinions:
            gave, candidates = asked.setdefault((each.tier, each.plugin), (set(), set()))
            candidates |= set(election.candidates)
            gave |= set(election.candidates) if each.abstained else each.gave
    said = list[str]()
    for (tier, plugin), (gave, candidates) in sorted(asked.items(), key=lambda item: item[0][0]):
        kept = sorted(candidates - gave)
        of_queues = plugin == "drf" and "reclaim" in elections[0].action  # there it goes by a hierarchy of queues
        why = "" if of_queues else _why_kept(view, plugin, preemptor, kept, gauges)
        names = f", kept {', '.join(kept[:NAMED])}{', …' * (len(kept) > NAMED)}" if kept else ""
        said.append(f"tier {tier}: {plugin} gave {len(gave)} of {len(candidates)}{names}{f' ({why})' if why else ''}")
    return said


def _why_kept(
    view: View, plugin: str, preemptor: str, kept: Sequence[str], gauges: Mapping[str, Mapping[str, float]]
) -> str:
    jobs, known = _jobs_of(view, kept), record_of(plugin)
    if not jobs:
        return ""
    if plugin == "gang":
        named = [f"{job.key} would fall below its minimum {job.pod_group.min_member}" for job in jobs[:NAMED]]
        return "; ".join([*named, *([f"and {len(jobs) - NAMED} more jobs"] if len(jobs) > NAMED else [])])
    if known.protects:
        return known.protects
    if plugin == "priority":
        own = _priority(view, preemptor)
        least = min(int(view.jobs.priority[job.row]) for job in jobs)
        return f"priority {least} and more, {preemptor} has {own}"
    if plugin == "drf":
        names = ", ".join(job.key for job in jobs[:NAMED]) + ", …" * (len(jobs) > NAMED)
        return f"less would be left to {names} than the share that the job of {preemptor} would have"
    if known.limits is Limit.QUEUE:
        queues = dict.fromkeys(job.pod_group.queue for job in jobs)
        return "; ".join(standing_of(name, gauges.get(name, {})) for name in queues)
    return ""


def _jobs_of(view: View, pods: Iterable[str]) -> list[Job]:
    tasks = (view.tasks.by_key.get(pod) for pod in pods)
    names = dict.fromkeys(task.job for task in tasks if task is not None and task.job)
    return [job for name in names if (job := view.jobs.by_key[name]).spec is not None]


def _priority(view: View, pod: str) -> int:
    jobs = _jobs_of(view, [pod])
    return int(view.jobs.priority[jobs[0].row]) if jobs else 0


def standing_of(queue: str, gauges: Mapping[str, float], now: str | None = None) -> str:
    """Return a queue's amounts (`now`, or when the cycle began) and its deserved ones."""
    has = (amounts_of(gauges, "allocated") if now is None else now) or "nothing"
    deserves = amounts_of(gauges, "deserved") or "nothing"
    return f"queue {queue} has {has} and deserves {deserves}"


def who_could_go(view: View, job: Job, action: str, closed: Mapping[str, str]) -> str:
    """Explain why no victim was considered: the number of running tasks where the action may look, the number that may
    not be evicted at all, and the tasks on nodes that are `closed` to the task (each with a reason) whatever is
    evicted.
    """
    inside = "preempt" in action
    others = [task for task in view.tasks.by_key.values() if task.job and task.job != job.key]
    known = [(task, view.jobs.by_key[task.job]) for task in others]
    queue = job.pod_group.queue
    placed = [
        (task, other)
        for task, other in known
        if other.spec is not None
        and view.tasks.status[task.row] in ALLOCATED_STATUSES
        and (other.pod_group.queue == queue) == inside
    ]
    where = f"other jobs of queue {queue}" if inside else "other queues"
    if not placed:
        return f"{NO_CANDIDATES}: no pods of {where} run"
    counts, elsewhere = Counter[str](), Counter[str]()
    for task, other in placed:
        status = view.tasks.status[task.row]
        if status != TaskStatus.RUNNING and (status, action) != (TaskStatus.BOUND, "gangpreempt"):
            counts["not running yet"] += 1
        elif not task.preemptable:
            counts["not preemptable"] += 1
        elif action in GANGS and not may_lose_tasks(other.pod_group):
            counts["of a PodGroup that is not preemptable"] += 1
        elif action == "gangpreempt" and view.jobs.priority[other.row] >= view.jobs.priority[job.row]:
            counts[f"of no lower priority than {int(view.jobs.priority[job.row])}"] += 1
        elif not inside and (found := view.queues.get(other.pod_group.queue)) is not None and not found.reclaimable:
            counts[f"in queue {other.pod_group.queue}, which is not reclaimable"] += 1
        elif (node := view.tasks.resides[task.row]) in closed:
            elsewhere[closed[node]] += 1
    told = "".join(f", {number} {what}" for what, number in counts.items())
    hold = f"{len(placed)} pods of {where} hold room{told}"
    if not elsewhere:
        return f"{NO_CANDIDATES}: {hold}"
    reasons = ", ".join(f"{number}: {reason}" for reason, number in elsewhere.most_common(NAMED))
    return f"the candidates stand where it may not run ({reasons}): {hold}"
