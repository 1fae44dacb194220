"""Where the two kinds of CronJob differ: what a job is and when it is over, and the words of events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pumice.core.objects.metadata import Object, parse_time, section


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """How a job ended, and when (seconds since the epoch)."""

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


@dataclass(frozen=True, slots=True)
class Dialect:
    """One kind of CronJob. `misses`: a time that is too late is said to be missed."""

    owner: str
    child: str
    job_version: str
    user: str
    reporter: str
    annotation: str
    words: CronWords
    misses: bool

    def finished(self, job: Object) -> FinishedJob | None:
        """How the job ended; None while it has not."""
        return _finished_batch(job) if self.child == "Job.batch" else _finished_volcano(job)


def _finished_batch(job: Object) -> FinishedJob | None:
    status = section(job, "status")
    conditions: list[Object] = status.get("conditions") or []
    for each in conditions:
        if each.get("type") in ("Complete", "Failed") and each.get("status") == "True":
            done = each["type"] == "Complete"
            at = status.get("completionTime") if done else each.get("lastTransitionTime")
            return FinishedJob(str(each["type"]), done, not done, parse_time(at))
    return None


def _finished_volcano(job: Object) -> FinishedJob | None:
    state: Mapping[str, Any] = section(section(job, "status"), "state")
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
    ),
)
