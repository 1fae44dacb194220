# SPDX-License-Identifier: Apache-2.0
"""The reasons why a job's tasks did not fit: errors by task, the roles that failed, and the sentences made of them.

Source: Volcano `api/job_info.go` (FitError, TaskSchedulingReason, NeedContinueAllocating, FitFailedRoles).
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from pumice.core.life.task import LABELS, TaskStatus
from pumice.core.messages.decisions import PodGroupEvent
from pumice.core.session.reasons import FitErrors
from pumice.core.state.derived import memory
from pumice.core.state.sources import NOTHING as NO_PARTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.resources import Resource
    from pumice.core.session.demand import JobRows
    from pumice.core.session.jobs import SubJob
    from pumice.core.session.reasons import IntArray, Reason
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job

UNSCHEDULABLE, SCHEDULABLE = "Unschedulable", "Schedulable"
ALL_NODES_UNAVAILABLE = "all nodes are unavailable"
WAITING = {TaskStatus.PENDING: UNSCHEDULABLE, TaskStatus.PIPELINED: UNSCHEDULABLE, TaskStatus.ALLOCATED: SCHEDULABLE}
REASONS = tuple(WAITING.get(status, LABELS[status]) for status in TaskStatus)
"""The reason of a task's condition, by the status it has reached."""

PENDING: Final = TaskStatus.PENDING
NOTHING: Final[dict[str, FitErrors]] = {}


ELASTIC: Final = "beyond the minimums of jobs, which can be had back (elastic)"
"""A part that counts the other way."""


class TooLittle(NamedTuple):
    """The amount that a job made too large when it asked for admission: with the job `wanted` in all, where `most` is
    the limit; `queue`: the limit's queue, "" for the cluster. `parts`: the amounts that count before the job, by
    description; elastic amounts are negative.
    """

    wanted: Resource
    most: Resource
    queue: str = ""
    parts: tuple[tuple[str, Resource], ...] = ()


def queue_parts(allocated: Resource, inqueue: Resource, elastic: Resource) -> tuple[tuple[str, Resource], ...]:
    """Return what a queue counts as taken when a job asks to be admitted, copied at this moment."""
    named = (("allocated", allocated), ("admitted but not placed", inqueue), (ELASTIC, elastic))
    return tuple((name, amounts.clone()) for name, amounts in named)


TaskReason = tuple[str, str, str]
"""Reason and message of a task's condition, and the node that evictions make room on, or ""."""


def histogram(counts: Mapping[str, int]) -> str:
    """Return a histogram like ``1 Pending, 4 minAvailable``, sorted as text."""
    return ", ".join(sorted([f"{number} {name}" for name, number in counts.items()]))


@lru_cache(maxsize=4096)
def _state(ready: bool, counts: tuple[int, ...], minimum: int, reasons: tuple[tuple[str, int], ...]) -> str:
    """Return the state of a job. `counts`: of its tasks by status; `reasons`: the number of pending ones with each."""
    numbers = {label: number for label, number in zip(LABELS, counts, strict=True) if number}
    numbers["minAvailable"] = minimum
    sentence = f"pod group is {'' if ready else 'not '}ready, {histogram(numbers)}"
    return f"{sentence}; Pending: {histogram(dict(reasons))}" if reasons else sentence


class LastEvents:
    """The events of the cycle before, and what they were made of."""

    def __init__(self) -> None:
        self.made_of: tuple[object, ...] = ()
        self.events: tuple[PodGroupEvent, ...] = ()


@memory(NO_PARTS)
def _last_events(_nothing: None) -> LastEvents:
    """Return what the last cycle of this view said about jobs that were not admitted."""
    return LastEvents()


class Rejected(NamedTuple):
    """Jobs that one plugin rejects in equal words: the first is the one that was asked for."""

    rows: JobRows
    plugin: str
    remark: str | None
    too_little: TooLittle | None


class AdmissionAnswers:
    """The jobs that were not admitted in a session, and why.

    A thousand waiting jobs are rejected in a few groups, and in most cycles no one reads why: so groups are kept, and
    spread over the jobs when a reader asks. That takes a third off a small cycle with 1,000 waiting jobs.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._groups: list[Rejected] = []
        self._spread = 0  # so many of them are in the dictionaries
        self._not_admitted: dict[int, str] = {}
        self._remarks: dict[int, str] = {}
        self._too_little: dict[int, TooLittle] = {}

    @property
    def not_admitted(self) -> dict[int, str]:
        """Job row -> the plugin that rejected it."""
        self._read()
        return self._not_admitted

    @property
    def remarks(self) -> dict[int, str]:
        """Job row -> what the plugin that rejected it has to say."""
        self._read()
        return self._remarks

    @property
    def too_little(self) -> dict[int, TooLittle]:
        """Job row -> what was too little, where it goes by amounts."""
        self._read()
        return self._too_little

    def note(self, row: int, text: str) -> None:
        """Note what the plugin that rejects a job says."""
        self._remarks[row] = text

    def note_amounts(self, row: int, found: TooLittle) -> None:
        """Note what a job was too large for."""
        self._too_little[row] = found

    def reject(self, rows: JobRows, plugin: str) -> None:
        """The plugin rejects these jobs, as it has noted of the first."""
        first = int(rows[0])
        self._groups.append(Rejected(rows, plugin, self._remarks.get(first), self._too_little.get(first)))

    def _read(self) -> None:
        for group in self._groups[self._spread :]:
            rows: list[int] = group.rows.tolist()
            self._not_admitted.update(dict.fromkeys(rows, group.plugin))
            if group.remark is not None:
                self._remarks.update(dict.fromkeys(rows, group.remark))
            if group.too_little is not None:
                self._too_little.update(dict.fromkeys(rows, group.too_little))
        self._spread = len(self._groups)

    def events(self) -> tuple[PodGroupEvent, ...]:
        """One for each job that was not admitted and has a reason, in job order (RecordPodGroupEvent).

        While the same jobs wait for the same reasons these are the very events of the cycle before: nothing is made
        anew, and the reader that compares them with what it told last sees one object.
        """
        columns = self._session.snapshot.jobs
        if not self._remarks:
            return ()
        told = [group for group in self._groups if group.remark is not None]
        number = np.full(len(columns.phase), -1, dtype=np.intp)
        for place, group in enumerate(told):
            number[group.rows] = place  # of two rejections of one job the later counts
        rows = self._session.jobs.rows_where(number >= 0)
        of, texts = number.take(rows), [group.remark or "" for group in told]
        made_of = (columns.serial.take(rows).tobytes(), of.tobytes(), *texts)
        last = _last_events(self._session)
        if last.made_of != made_of:
            jobs = columns.named(rows)
            which: list[int] = of.tolist()
            events = [
                PodGroupEvent(job.namespace, job.name, UNSCHEDULABLE, texts[place])
                for job, place in zip(jobs, which, strict=True)
            ]
            last.made_of, last.events = made_of, tuple(events)
        return last.events


class JobFit:
    """Keeps why tasks did not fit, by job and task uid, as numbers: sentences are made of them when they are read.

    `admission`: why jobs were not admitted.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._errors: dict[int, dict[str, FitErrors]] = {}
        self._failed_roles: dict[tuple[int, str], set[str]] = {}
        self._sentence: dict[int, tuple[int, str]] = {}
        self._tried: tuple[int, set[int]] = (-1, set())
        self._found: FitErrors | None = None  # those of the newest search
        self.admission = AdmissionAnswers(session)
        self.obstacles: dict[str, str] = {}  # plugin -> why it refuses every job, whatever the job is
        self.troubles: dict[str, str] = {}  # plugin -> what it could not find out, with the process asked

    # --- during the actions

    def record(self, job: Job, sub_job: SubJob | None, task: Task, errors: FitErrors) -> None:
        """Record that the task found no node."""
        self._errors.setdefault(job.row, {})[task.uid] = errors
        self._failed_roles.setdefault((job.row, sub_job.uid if sub_job else job.key), set()).add(task.role)
        self._sentence.pop(job.row, None)

    def found(self, codes: IntArray) -> FitErrors:
        """Return the errors of a search of all nodes. While nothing is placed, equal jobs fail for equal reasons: these
        are one object, which counts the nodes and makes its sentence once.
        """
        last = self._found
        if last is None or not np.array_equal(last.codes, codes):  # type: ignore[arg-type]
            # A copy: the search goes on writing into its codes.
            last = self._found = FitErrors(self._session.reasons, codes.copy())
        return last

    def everywhere(self, reason: Reason) -> FitErrors:
        """Return one reason for every node."""
        table = self._session.reasons
        return FitErrors(table, np.full(self._session.nodes.count, table.intern(reason), dtype=np.int32))

    def at(self, node: int, reason: Reason) -> FitErrors:
        """Return the reason of one node, the only one that was looked at."""
        codes = np.zeros(self._session.nodes.count, dtype=np.int32)
        codes[node] = self._session.reasons.intern(reason)
        return FitErrors(self._session.reasons, codes)

    def of(self, job: Job, task: Task) -> FitErrors | None:
        """Return the task's errors, if it has failed."""
        return self._errors.get(job.row, NOTHING).get(task.uid)

    def errors_of(self, job: Job) -> Mapping[str, FitErrors]:
        """Return the errors of the job's tasks that have failed, by uid."""
        return self._errors.get(job.row, NOTHING)

    def role_has_failed(self, job: Job, sub_job: SubJob, task: Task) -> bool:
        """Return whether a task of that role has failed in this group (TaskHasFitErrors); never without a role."""
        return bool(task.role) and task.role in self._failed_roles.get((job.row, sub_job.uid), ())

    def reset(self, job: Job, sub_job: SubJob | None = None) -> None:
        """Forget the errors of the job, or of one of its groups."""
        self._sentence.pop(job.row, None)
        if sub_job is None:
            self._errors.pop(job.row, None)
            for key in [key for key in self._failed_roles if key[0] == job.row]:
                del self._failed_roles[key]
            return
        self._failed_roles.pop((job.row, sub_job.uid), None)
        errors = self._errors.get(job.row)
        for task in sub_job.tasks if errors else ():
            errors.pop(task.uid, None)  # type: ignore[union-attr]

    def worth_continuing(self, job: Job, sub_job: SubJob) -> bool:
        """Return whether the job could still be satisfied after a task failed (NeedContinueAllocating)."""
        jobs, spec = self._session.jobs, job.pod_group
        least = jobs.min_member[job.row]
        # Every task of the job, or of the group, is needed: the one that failed decides.
        if least == len(job.tasks) or sub_job.min_available >= len(sub_job.tasks):
            return False
        if spec.sub_group_policy:
            return True
        failed = self._failed_roles.get((job.row, sub_job.uid), set())
        if least < spec.min_task_total:
            pending = Counter(task.role for task in jobs.tasks_in(job, TaskStatus.PENDING))
            left = sum(number for role, number in pending.items() if role not in failed)
            return jobs.ready_count(job) + left >= least
        allocated = jobs.allocated_roles(job)
        return all(allocated[role] >= spec.min_task_member.get(role, 0) for role in failed)

    # --- at the end --------------------------------------------------------------------------------------------------

    def remark(self, job: Job, text: str, verb: str = "", names: Sequence[str] = ()) -> None:
        """Note why a plugin rejects a job: the text, and each resource with the verb (FormatResourceNames)."""
        listed = ", ".join(f"{verb} {name}" for name in names)
        self.admission.note(job.row, f"{text}: {listed}" if listed else text)

    def task_reason(self, job: Job, task: Task) -> TaskReason:
        """Return the reason for one task, from its last transaction (TaskSchedulingReason)."""
        session = self._session
        last = session.last_transaction.get(task.row)
        status = last.status if last else session.jobs.status[task.row]
        node = last.node if last else session.jobs.node[task.row]
        if status == TaskStatus.ALLOCATED:
            where = session.nodes.names[node]
            text = f"Pod {task.key} can possibly be assigned to {where}, once minAvailable is satisfied"
            return SCHEDULABLE, text, ""
        if status == TaskStatus.PIPELINED:
            where = session.nodes.names[node]
            evicted = last.evicted if last else task.row in session.evicted_for
            when = "once resource is released and minAvailable is satisfied"
            text = f"Pod {task.key} can possibly be assigned to {where}, {when}"
            return UNSCHEDULABLE, text, where if evicted else ""
        errors = self._errors.get(job.row, NOTHING).get(task.uid) if status == TaskStatus.PENDING else None
        return REASONS[status], "" if errors is None else errors.message(), ""

    def job_sentence(self, job: Job) -> str:
        """Return a sentence like ``pod group is not ready, 4 Pending, 4 minAvailable; Pending:

        4 Unschedulable``, and the first failure (FitError).
        """
        if self._session.options.wordless:
            return ""
        generation = self._session.jobs.generation
        # One sentence serves all tasks of the job, until a task changes its status.
        cached = self._sentence.get(job.row)
        if cached and cached[0] == generation:
            return cached[1]
        sentence = self._make_sentence(job)
        self._sentence[job.row] = (generation, sentence)
        return sentence

    def is_silent_on(self, job: Job) -> bool:
        """Return whether no action has tried the job, or has a reason of its own why it waits."""
        return job.row not in self._errors and job.row not in self._tried_jobs()

    def _tried_jobs(self) -> set[int]:
        """Return the rows of the jobs whose tasks an action has tried: the others' tasks need no look."""
        generation = self._session.jobs.generation
        if self._tried[0] != generation:
            of_tasks = self._session.snapshot.tasks.job
            self._tried = generation, {int(of_tasks[row]) for row in self._session.last_transaction}
        return self._tried[1]

    def _label(self, row: int) -> str:
        last = self._session.last_transaction.get(row)
        return REASONS[PENDING if last is None else last.status]

    def _make_sentence(self, job: Job) -> str:
        jobs, row = self._session.jobs, job.row
        counts = tuple([line[row] for line in jobs.counts])
        reasons = {UNSCHEDULABLE: pending} if (pending := counts[PENDING]) else {}
        if row in self._tried_jobs():
            reasons = dict(Counter(self._label(task.row) for task in jobs.tasks_in(job, PENDING)))
        sentence = _state(jobs.is_ready(job), counts, jobs.min_member[job.row], tuple(sorted(reasons.items())))
        errors = self._errors.get(job.row)
        if errors:
            first = next(task for task in job.in_uid_order() if task.uid in errors)
            sentence += f". Origin reason is {first.name}: {errors[first.uid].message()}"
        return sentence
