# SPDX-License-Identifier: Apache-2.0
"""The controllers of CronJobs, Kubernetes' and Volcano's: a job at each time of the schedule, and few ended ones kept.

Source: Kubernetes' cronjob controller (`syncCronJob`), Volcano's `controllers/cronjob`. Which job was made for which
time is read from the jobs themselves, so it does not matter when the status is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pumice.cluster.controllers.family import Agenda, ChildWords, OwnerRule, OwnFamily
from pumice.cluster.controllers.pods_of import is_leaving, reference
from pumice.cluster.kube.events import event
from pumice.cluster.kube.merge_patch import diff_patch
from pumice.cluster.kube.schedules import ScheduleError, TimesOfSchedule, read_schedule
from pumice.cluster.kube.statuses import timestamp
from pumice.config.time_zones import time_zone
from pumice.core.messages.commands import Create, Delete, UpdateStatus
from pumice.core.objects.metadata import Object, conditions_of, parse_time, section, text_map
from pumice.storage.codec import pack

# --- Due times

MANY = 100
"""Number of missed times that is worth a warning."""


@dataclass(frozen=True, slots=True)
class DueTime:
    """A due time. `at`: the last time up to now, in seconds; None without one. `missed`: about how many were missed."""

    at: float | None = None
    missed: int = 0


def due_time(schedule: TimesOfSchedule, since: float, now: float) -> DueTime:
    """Return the last time of a schedule after `since` and up to `now`.

    Times are not counted one by one, which would take long after years. Raises ValueError where two fall together.
    """
    first = schedule.after(since)
    # robfig/cron returns the zero time for a schedule that never comes, which Kubernetes takes for two equal times.
    if first is None:  # Go's zero time follows itself there
        raise ValueError("time difference between two schedules is less than 1 second")
    if now < first:
        return DueTime()
    second = schedule.after(first)
    if second is None or now < second:
        return DueTime(first)
    apart = round(second - first)
    if apart < 1:
        raise ValueError("time difference between two schedules is less than 1 second")
    # From the first two times alone, as Kubernetes estimates: counting each minute of a year would take long.
    missed = int(now - first) // apart + 1
    return DueTime(_last_time(schedule, first, apart, missed, now), missed)


def _last_time(schedule: TimesOfSchedule, first: float, apart: int, missed: int, now: float) -> float:
    """Return the last time up to `now`: the search begins ever further back, since later times may be less regular than
    the first two.

    Kubernetes looks back once, and passes over the time where that is not far enough.
    """
    at, back = first, 2
    while True:
        start = first + max(missed - back, 0) * apart
        coming = schedule.after(start)
        while coming is not None and coming <= now:
            at, coming = coming, schedule.after(coming)
        if at > first or start == first:
            return at
        # Twice as far: a schedule may have a gap of months, such as "on the 31st".
        back *= 2


# --- Dialects of the two kinds of CronJob


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """End of a job: its result, and the time in seconds since the epoch."""

    how: str
    succeeded: bool
    failed: bool
    at: float


@dataclass(frozen=True, slots=True)
class CronWords:
    """Texts of events; `{name}` is the job's. `stranger` and `missing`: reason and text."""

    seen: str
    stranger: tuple[str, str]
    missing: tuple[str, str]
    busy: tuple[str, str, bool]
    replaced: tuple[str, str]
    created: str
    refused: str
    deleted: str
    zone: tuple[str, str]
    schedule: tuple[str, str]
    never: str


@dataclass(frozen=True, slots=True)
class Dialect:
    """One kind of CronJob. `misses`: a time that is too late is reported as missed."""

    owner: str
    child: str
    job_version: str
    user: str
    reporter: str
    annotation: str
    words: CronWords
    misses: bool

    def finished(self, job: Object) -> FinishedJob | None:
        """Return the end of the job; None while the job runs."""
        return _finished_batch(job) if self.child == "Job.batch" else _finished_volcano(job)


def _finished_batch(job: Object) -> FinishedJob | None:
    for each in conditions_of(job):
        if (mark := each.get("type")) in ("Complete", "Failed") and each.get("status") == "True":
            done = mark == "Complete"
            at = section(job, "status").get("completionTime") if done else each.get("lastTransitionTime")
            return FinishedJob(str(mark), done, not done, parse_time(at))
    return None


def _finished_volcano(job: Object) -> FinishedJob | None:
    state: Object = section(section(job, "status"), "state")
    phase = str(state.get("phase") or "")
    if phase not in ("Completed", "Failed", "Terminated"):
        return None
    return FinishedJob(phase, phase == "Completed", phase == "Failed", parse_time(state.get("lastTransitionTime")))


KUBERNETES: Final = Dialect(
    owner="CronJob.batch",
    child="Job.batch",
    job_version="batch/v1",
    user="workload-controller",
    reporter="cronjob-controller",
    annotation="batch.kubernetes.io/cronjob-scheduled-timestamp",
    misses=True,
    words=CronWords(
        seen="Saw completed job: {name}, condition: {how}",
        stranger=("UnexpectedJob", "Saw a job that the controller did not create or forgot: {name}"),
        missing=("MissingJob", "Active job went missing: {name}"),
        busy=(
            "JobAlreadyActive",
            "Not starting job because prior execution is running and concurrency policy is Forbid",
            False,
        ),
        replaced=("", ""),
        created="Created job {name}",
        refused="Error creating job: ",
        deleted="Deleted job {name}",
        zone=("UnknownTimeZone", "invalid timeZone: {zone}: {why}"),
        schedule=("UnparseableSchedule", "unparseable schedule: {schedule} : {why}"),
        never="invalid schedule: {why}",
    ),
)
VOLCANO: Final = Dialect(
    owner="CronJob",
    child="Job",
    job_version="batch.volcano.sh/v1alpha1",
    user="workload-controller",
    reporter="vc-controller-manager",
    annotation="volcano.sh/cronjob-scheduled-timestamp",
    misses=False,
    words=CronWords(
        seen="Saw completed job: {name} in active, remove",
        stranger=("OrphanedJob", "Detected orphaned job forgotten or not managed by controller: {name} (UID: {uid})"),
        missing=("StaleReference", 'Active job "{name}" no longer exists (UID: {uid})'),
        busy=("ForbidConcurrent", "Skipping job creation because another job is already running", True),
        replaced=("ReplaceConcurrent", "Replacing active job for CronJob"),
        created="Created job {name} for CronJob {owner}",
        refused="Failed to create job: ",
        deleted='Deleted job "{name}"',
        zone=("InvalidTimeZone", 'Invalid time zone "{zone}": {why}'),
        schedule=("InvalidSchedule", "Error getting schedule time: {why}"),
        never="Error getting schedule time: {why}",
    ),
)


class CronRule(OwnerRule):
    """Rule of CronJobs, Kubernetes' and Volcano's."""

    summary = (
        "schedules as robfig/cron reads them, timeZone, concurrencyPolicy, startingDeadlineSeconds, history limits, "
        "suspend"
    )

    def __init__(self, dialect: Dialect) -> None:
        self.owner, self.children = dialect.owner, (dialect.child,)
        self.owner_type = (dialect.job_version, "CronJob")
        self.reporter, self.user = dialect.reporter, dialect.user
        self._dialect = dialect
        self._said: dict[str, set[str]] = {}
        self._removed: dict[str, set[str]] = {}

    def forget(self, mark: str) -> None:
        """Forget a removed owner."""
        # By uid: a new CronJob of the name has said nothing yet.
        self._said.pop(mark, None)
        self._removed.pop(mark, None)

    def words(self, owner: Object, child: Object) -> ChildWords:
        """Return the events about a child: for pods those of most of Kubernetes' controllers, for other kinds none."""
        words, meta = self._dialect.words, owner["metadata"]
        named = {"name": child["metadata"].get("name", ""), "owner": f"{meta['namespace']}/{meta['name']}"}
        return ChildWords(words.created.format(**named), words.refused, words.deleted.format(**named))

    def work(self, family: OwnFamily, now: float) -> Agenda:
        """Return the requests for an owner that is not being deleted."""
        cron, jobs = family.owner, family.of(self._dialect.child)
        agenda, dialect = Agenda(), self._dialect
        finished = {job["metadata"]["uid"]: how for job in jobs if (how := dialect.finished(job)) is not None}
        self._look_at_jobs(agenda, cron, jobs, finished, now)
        self._clear_up(agenda, cron, jobs, finished)
        removed = self._removed.get(cron["metadata"]["uid"], set())
        # Jobs that a person made from the CronJob (`kubectl create job --from`) have no time, and do not count as
        # active.
        ours = [job for job in jobs if self._made_for(job)]
        active = [job for job in ours if job["metadata"]["uid"] not in finished.keys() | removed]
        last = max([_last(cron), *(self._made_for(job) for job in ours)])
        if not cron["spec"].get("suspend"):
            active = self._start(agenda, cron, active, last, now)
        status = self._status(cron, active, last, finished)
        if patch := diff_patch(section(cron, "status"), status):
            meta = cron["metadata"]
            agenda.requests.append(
                UpdateStatus(dialect.owner, meta["namespace"], meta["name"], pack(patch), user=self.user)
            )
        return agenda

    # --- jobs that are there

    def _made_for(self, job: Object) -> float:
        """Return the time of the schedule for which a job was made; 0 for a job of another client."""
        text = text_map(job["metadata"].get("annotations")).get(self._dialect.annotation)
        try:
            return parse_time(text)
        except ValueError:
            return 0.0

    def _look_at_jobs(
        self, agenda: Agenda, cron: Object, jobs: Sequence[Object], finished: dict[str, FinishedJob], now: float
    ) -> None:
        """Report jobs that have ended, that are unknown, and that have gone."""
        words, active = self._dialect.words, _active(cron)
        for job in jobs:
            uid, name = job["metadata"]["uid"], job["metadata"]["name"]
            if uid in active and uid in finished:
                text = words.seen.format(name=name, how=finished[uid].how)
                self._say(agenda, cron, "SawCompletedJob", text, now, mark=uid)
            elif uid not in finished and uid not in active and not self._made_for(job):
                reason, text = words.stranger
                self._say(agenda, cron, reason, text.format(name=name, uid=uid), now, warning=True, mark=uid)
        there = {job["metadata"]["uid"] for job in jobs} | self._removed.get(cron["metadata"]["uid"], set())
        for uid, name in active.items():
            if uid not in there:
                reason, text = words.missing
                self._say(agenda, cron, reason, text.format(name=name, uid=uid), now, warning=True, mark=uid)

    def _clear_up(self, agenda: Agenda, cron: Object, jobs: Sequence[Object], finished: dict[str, FinishedJob]) -> None:
        """Delete the oldest of those that have ended, beyond as many as are to be kept."""
        ended = [job for job in jobs if job["metadata"]["uid"] in finished and not is_leaving(job)]
        for limit, which in (("successfulJobsHistoryLimit", "succeeded"), ("failedJobsHistoryLimit", "failed")):
            most: int | None = cron["spec"].get(limit)
            if most is None:
                continue
            of = [job for job in ended if getattr(finished[job["metadata"]["uid"]], which)]
            # By name within a second: creation times have whole seconds, and the order must not depend on a
            # dictionary's.
            of.sort(key=lambda job: (job["metadata"].get("creationTimestamp") or "", job["metadata"]["name"]))
            for job in of[: max(len(of) - most, 0)]:
                self._remove(agenda, cron, job)

    def _remove(self, agenda: Agenda, cron: Object, job: Object) -> None:
        meta = job["metadata"]
        # Remembered, or the controller would report its own deletion as a job that went missing.
        self._removed.setdefault(cron["metadata"]["uid"], set()).add(meta["uid"])
        agenda.requests.append(
            Delete(self._dialect.child, meta["namespace"], meta["name"], uid=meta["uid"], user=self.user)
        )

    # --- the next one

    def _start(self, agenda: Agenda, cron: Object, active: list[Object], last: float, now: float) -> list[Object]:
        """Make a job if its time has come. Returns those that stay active of the present ones."""
        schedule = self._schedule(agenda, cron, now)
        if schedule is None:
            return active
        # Set first: also a CronJob that starts nothing now must be looked at again.
        agenda.later = schedule.after(now)
        since = last or parse_time(cron["metadata"].get("creationTimestamp"))
        deadline = cron["spec"].get("startingDeadlineSeconds")
        if deadline is not None:
            # Older times are past their deadline; without this a CronJob that was suspended for a year would look at
            # all of them.
            since = max(since, now - deadline)
        try:
            due = due_time(schedule, since, now)
        except ValueError as error:
            self._say(agenda, cron, "InvalidSchedule", self._dialect.words.never.format(why=error), now, warning=True)
            return active
        agenda.later = _later(schedule, due.at or since, now)
        if due.at is None or due.at == last:
            return active
        # Only a warning: the last time is still started, as in Kubernetes.
        if due.missed > MANY:
            text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self._say(agenda, cron, "TooManyMissedTimes", text, now, warning=True, mark=str(due.at))
        if self._dialect.misses and deadline is not None and due.at + deadline < now:
            text = f"Missed scheduled time to start a job: {_in_words(due.at)}"
            self._say(agenda, cron, "MissSchedule", text, now, warning=True, mark=str(due.at))
            return active
        return self._concurrent(agenda, cron, active, due.at, now)

    def _schedule(self, agenda: Agenda, cron: Object, now: float) -> TimesOfSchedule | None:
        text, zone, words = cron["spec"].get("schedule") or "", cron["spec"].get("timeZone") or "", self._dialect.words
        try:
            return read_schedule(text, zone)
        except ScheduleError as error:
            reason, told = words.zone if str(error).startswith("unknown time zone") else words.schedule
            said = told.format(zone=zone, schedule=text, why=error)
            self._say(agenda, cron, reason, said, now, warning=True)
            return None

    def _concurrent(self, agenda: Agenda, cron: Object, active: list[Object], at: float, now: float) -> list[Object]:
        """Make the job, as far as its policy about others that run lets it."""
        policy, words = cron["spec"].get("concurrencyPolicy") or "Allow", self._dialect.words
        if active and policy == "Forbid":
            reason, text, warning = words.busy
            self._say(agenda, cron, reason, text, now, warning=warning, mark=str(at))
            return active
        if active and policy == "Replace":
            reason, text = words.replaced
            if text:
                self._say(agenda, cron, reason, text, now, warning=True, mark=str(at))
            for job in active:
                self._remove(agenda, cron, job)
            active = []
        agenda.new.append(job_of(cron, self._dialect, at))
        return active

    # --- what is written

    def _status(self, cron: Object, active: Sequence[Object], last: float, finished: dict[str, FinishedJob]) -> Object:
        old, status = section(cron, "status"), Object()
        if active:
            status["active"] = [_named(self._dialect, job) for job in active]
        if last:
            status["lastScheduleTime"] = timestamp(last)
        done = max([how.at for how in finished.values() if how.succeeded], default=0.0)
        if done := max(done, parse_time(old.get("lastSuccessfulTime"))):
            status["lastSuccessfulTime"] = timestamp(done)
        return status

    def _say(
        self, agenda: Agenda, cron: Object, reason: str, text: str, now: float, *, warning: bool = False, mark: str = ""
    ) -> None:
        """Report once for a job or a time (`mark`), however often it is seen."""
        said = self._said.setdefault(cron["metadata"]["uid"], set())
        if f"{reason} {mark}" not in said:
            said.add(f"{reason} {mark}")
            made = event(cron, reason, text, now, source=self.reporter, warning=warning)
            agenda.requests.append(Create(pack(made), user=self.user))


def _later(schedule: TimesOfSchedule, last: float, now: float) -> float | None:
    """Return the next time: for a schedule of periods, a whole number of them after the last time, whenever it is
    computed.
    """
    coming = schedule.after(last)
    return coming if coming is None or coming > now else schedule.after(now)


def job_of(cron: Object, dialect: Dialect, at: float) -> Object:
    """Return the job of a CronJob for a time, in seconds since the epoch; its name contains the minute."""
    template, zone = section(cron["spec"], "jobTemplate"), cron["spec"].get("timeZone") or ""
    meta, said = cron["metadata"], section(section(cron["spec"], "jobTemplate"), "metadata")
    local = datetime.fromtimestamp(at, time_zone(zone) if zone else UTC).isoformat()
    return {
        "apiVersion": dialect.job_version,
        "kind": "Job",
        "metadata": {
            # The minute in the name makes a second job for the same time impossible: the api refuses the name (409).
            "name": f"{meta['name']}-{int(at) // 60}",
            "namespace": meta["namespace"],
            "labels": dict(text_map(said.get("labels"))),
            "annotations": {
                **text_map(said.get("annotations")),
                dialect.annotation: local.replace("+00:00", "Z"),
            },
            "ownerReferences": [reference(cron)],
        },
        "spec": section(template, "spec"),
    }


def _active(cron: Object) -> dict[str, str]:
    """Return names of the jobs that its status calls active, by uid."""
    listed: list[Object] = section(cron, "status").get("active") or []
    return {str(each.get("uid")): str(each.get("name")) for each in listed}


def _named(dialect: Dialect, job: Object) -> Object:
    meta = job["metadata"]
    named = {"name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"]}
    return {"apiVersion": dialect.job_version, "kind": "Job", **named}


def _last(cron: Object) -> float:
    return parse_time(section(cron, "status").get("lastScheduleTime"))


def _in_words(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
