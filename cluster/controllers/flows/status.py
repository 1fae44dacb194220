"""The status of a JobFlow: its jobs by phase, and what each has been (source: Volcano `getAllJobStatus`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pumice.cluster.kube.times import timestamp
from pumice.config.durations import duration_s
from pumice.core.objects.metadata import Object, parse_time, section

LISTED: Final = {
    "Pending": "pendingJobs",
    "Running": "runningJobs",
    "Failed": "failedJobs",
    "Completed": "completedJobs",
    "Terminated": "terminatedJobs",
}
_KNOWN: Final = (*LISTED, "Completing", "Terminating")
"""Phases that are no riddle; these last two stand in no list."""


def phase_of(job: Object) -> str:
    """The phase of a Job; "" before its controller has seen it."""
    return str(section(section(job, "status"), "state").get("phase") or "")


def by_phase(jobs: Sequence[Object]) -> dict[str, list[str]]:
    """Names of jobs by their phase."""
    found: dict[str, list[str]] = {}
    for job in jobs:
        found.setdefault(phase_of(job), []).append(job["metadata"]["name"])
    return found


def flow_status(flow: Object, jobs: Sequence[Object], phase: str, now: float) -> Object:
    """The status that a flow is to have in the phase given."""
    old, names = section(flow, "status"), by_phase(jobs)
    status: Object = {field: names[known] for known, field in LISTED.items() if known in names}
    if odd := [name for known, listed in names.items() if known not in _KNOWN for name in listed]:
        status["unKnowJobs"] = odd
    listed: list[Object] = list(old.get("jobStatusList") or [])
    places = {each.get("name"): place for place, each in enumerate(listed)}
    for job in jobs:
        name = job["metadata"]["name"]
        before = listed[places[name]] if name in places else {}
        made = _job_status(job, before, now)
        if name in places:
            listed[places[name]] = made
        else:
            listed.append(made)
    if listed:
        status["jobStatusList"] = listed
    if jobs:
        status["conditions"] = {job["metadata"]["name"]: _condition(job) for job in jobs}
    return {**status, "state": {"phase": phase}}


def _condition(job: Object) -> Object:
    status = section(job, "status")
    made: Object = {"phase": phase_of(job), "createTime": job["metadata"].get("creationTimestamp")}
    made |= {name: status[name] for name in ("runningDuration", "taskStatusCount") if status.get(name)}
    return made


def _job_status(job: Object, before: Object, now: float) -> Object:
    status, created = section(job, "status"), job["metadata"].get("creationTimestamp")
    made: Object = {"name": job["metadata"]["name"], "state": phase_of(job), "startTimestamp": created}
    ran_s = duration_s(status.get("runningDuration") or "")
    if ran_s is not None:
        made["endTimestamp"] = timestamp(parse_time(created) + ran_s)
    if status.get("retryCount"):
        made["restartCount"] = status["retryCount"]
    if history := _history(before.get("runningHistories") or [], phase_of(job), timestamp(now)):
        made["runningHistories"] = history
    return made


def _history(before: list[Object], phase: str, stamp: str) -> list[Object]:
    """One entry for each phase that was seen, with its time."""
    if before and before[-1].get("state") == phase:
        return before
    if not before and not phase:
        return []
    ended = [*before[:-1], {**before[-1], "endTimestamp": stamp}] if before else []
    return [*ended, {"startTimestamp": stamp, "state": phase}]
