# SPDX-License-Identifier: Apache-2.0
"""A job (PodGroup) as one cycle found it: its queue, its validity and admission, and the reason in a sentence."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pumice.core.life.task import LABELS
from pumice.core.objects.pod import stranger_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.core.messages.decisions import CycleResult
    from pumice.core.session.session import Session
    from pumice.core.session.trail.records import Ended
    from pumice.core.session.trail.trail import Trail
    from pumice.core.state.jobs import Job
    from pumice.questions.explain.steps import ActionSteps

WAITING = ("", "Pending")


@dataclass
class JobLook:
    """The look of a cycle at a job. `tasks`: label -> number; `valid`: why the job is not valid, "" for nothing;
    `admission`: plugin -> vote, of the asked plugins; `remark`: the cycle's words about it; `endings`: where each
    action ended for it and its tasks, in order; `short`: requested and remaining amounts, where it was not admitted;
    `steps`: see `pumice.questions.explain.steps`; `strangers`: how many of its pods wait for each scheduler that does
    not run here, and are not in its `tasks`; `confined`: the obstacle of a network topology, and `rooms`: how many of
    its pods each HyperNode could take then. `obstacles`: plugin -> why it refuses every job; `passed_over`: minimums of
    tasks that do not count. `queue_state` is "missing" where the queue does not exist.
    """

    name: str
    phase: str
    queue: str
    queue_state: str
    min_member: int
    tasks: dict[str, int] = field(default_factory=dict[str, int])
    valid: str = ""
    admission: dict[str, str] = field(default_factory=dict[str, str])
    remark: str = ""
    endings: list[Ended] = field(default_factory=list["Ended"])
    short: str = ""
    steps: list[ActionSteps] = field(default_factory=list["ActionSteps"])
    strangers: dict[str, int] = field(default_factory=dict[str, int])
    confined: str = ""
    rooms: dict[str, int] = field(default_factory=dict[str, int])
    obstacles: dict[str, str] = field(default_factory=dict[str, str])
    passed_over: str = ""


def look_at_jobs(session: Session, jobs: Iterable[str]) -> dict[str, JobLook]:
    """Return the facts about each of these jobs that the session has as it opens."""
    known = {job.key: job for job in session.snapshot.jobs.handles if job is not None and job.spec is not None}
    return {key: _look(session, known[key]) for key in jobs if key in known}


def _look(session: Session, job: Job) -> JobLook:
    spec = job.pod_group
    queue = next((one for one in session.snapshot.queues if one.name == spec.queue), None)
    state = "missing" if queue is None else queue.state
    status = session.snapshot.tasks.status
    counts = Counter(LABELS[int(status[task.row])] for task in job.tasks.values())
    look = JobLook(job.key, spec.phase, spec.queue, state, spec.min_member, dict(sorted(counts.items())))
    others = (task for task in session.snapshot.tasks.handles if task is not None and stranger_of(task) == job.key)
    look.strangers = dict(sorted(Counter(task.scheduler for task in others).items()))
    look.obstacles = dict(session.fit.obstacles)
    look.passed_over = _minimums_passed_over(session, job)
    if queue is not None:
        verdict = session.points.job_valid(job)
        look.valid = verdict.message if verdict is not None else ""
    return look


def _minimums_passed_over(session: Session, job: Job) -> str:
    """Return minimums of tasks that Volcano ignores, where the job's minimum is below their sum (job_info.go,
    CheckTaskReady).
    """
    spec, least = job.pod_group, session.jobs.min_member[job.row]
    if least >= spec.min_task_total:
        return ""
    said = ", ".join(f"{role} {count}" for role, count in sorted(spec.min_task_member.items()))
    return (
        f"the minimums of its tasks ({said}) are passed over, for minAvailable {least} is below their sum "
        f"{spec.min_task_total}, as in Volcano (the fix task-minimums-count has them count)"
    )


def conclude(looks: Mapping[str, JobLook], result: CycleResult, trail: Trail) -> None:
    """Add the results of the cycle to the looks."""
    for event in result.events:
        look = looks.get(f"{event.namespace}/{event.name}")
        if look is not None:
            look.remark = event.message
    for key, look in looks.items():
        look.phase = result.report.phases.get(key, look.phase)
        admission = trail.admissions.get(key)
        look.admission = {plugin: vote for _, plugin, vote in admission.votes} if admission is not None else {}
        look.endings = [*trail.of_job(key)]


__all__ = ["WAITING", "JobLook", "conclude", "look_at_jobs"]
