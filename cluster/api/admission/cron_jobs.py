# SPDX-License-Identifier: Apache-2.0
"""CronJobs, Kubernetes' (`apis/batch/validation`) and Volcano's (its CRD and `webhooks/admission/cronjobs`)."""

from __future__ import annotations

import re
from typing import Final

from pumice.cluster.api.admission.batch_jobs import spec_problems
from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.admission.templates import number_problems, settle_template
from pumice.cluster.api.names import qualified_name_problem
from pumice.cluster.api.refusals import Cause, invalid_value, required, unsupported
from pumice.cluster.api.schema.table import enum_of
from pumice.cluster.kube.schedules import ScheduleError, read_schedule
from pumice.core.objects.metadata import Object, rows, section

LONGEST_NAME: Final = 52
"""A job's name has eleven characters more, and at most 63."""
_POLICIES: Final = enum_of("batch.v1.CronJobSpec", "concurrencyPolicy")
_NUMBERS: Final = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
# A component of a zone's name has at most 14 characters (`theory.html` of IANA's time zones).
_ZONE: Final = re.compile(r"[A-Za-z._0-9+-]{1,14}")


def default(cron: Object, _lookup: Lookup) -> None:
    """Fill in the defaults: Jobs may run concurrently; three successful ones and a failed one are kept."""
    spec: Object = cron.setdefault("spec", {})
    spec["concurrencyPolicy"] = spec.get("concurrencyPolicy") or "Allow"
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    job = section(section(spec, "jobTemplate"), "spec")
    for template in (section(job, "template"), *(section(task, "template") for task in rows(job, "tasks"))):
        settle_template(template)


def validate(cron: Object, _lookup: Lookup) -> list[Cause]:
    """Return the problems of a new Kubernetes CronJob."""
    spec = section(cron, "spec")
    found = _common_problems(spec)
    text, zone = spec.get("schedule") or "", spec.get("timeZone")
    if not text:
        found.append(required("spec.schedule"))
    elif "TZ" in text:
        why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        found.append(invalid_value("spec.schedule", text, why))
    else:
        found += _schedule_problems(text)
    if zone is not None:
        found += _zone_problems(zone)
    if len(cron["metadata"]["name"]) > LONGEST_NAME:
        why = f"must be no more than {LONGEST_NAME} characters"
        found.append(invalid_value("metadata.name", cron["metadata"]["name"], why))
    return found + _job_problems(section(section(spec, "jobTemplate"), "spec"), "spec.jobTemplate.spec")


def _job_problems(job: Object, path: str) -> list[Cause]:
    """Return rules for the Jobs that it makes: their selectors are always the server's."""
    found = spec_problems(job, path)
    if job.get("selector") is not None:
        found.append(invalid_value(f"{path}.selector", job["selector"], "`selector` will be auto-generated"))
    if job.get("manualSelector"):
        found.append(unsupported(f"{path}.manualSelector", job["manualSelector"], ("nil", "false")))
    return found


def validate_update(_old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed Kubernetes CronJob; the rules are those of a new one."""
    default(new, lookup)
    return validate(new, lookup)


def validate_volcano(cron: Object, _lookup: Lookup) -> list[Cause]:
    """Return the problems of a new Volcano CronJob, in the words of its webhook."""
    spec, found = section(cron, "spec"), list[Cause]()
    text, zone = spec.get("schedule") or "", spec.get("timeZone")
    if not text:
        found.append(required("spec.schedule", "schedule is required, but got empty"))
    elif "TZ" in text:
        why = "schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field"
        found.append(invalid_value("spec.schedule", text, why))
    elif _schedule_problems(text):
        found.append(invalid_value("spec.schedule", text, "schedule is not a valid cron expression"))
    if zone is not None and (why := _volcano_zone_problem(zone)):
        found.append(invalid_value("spec.timeZone", zone, why))
    return found + _name_problems(cron["metadata"]["name"])


def validate_volcano_update(_old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed Volcano CronJob; the rules are those of a new one."""
    default(new, lookup)
    return validate_volcano(new, lookup)


def _common_problems(spec: Object) -> list[Cause]:
    found = number_problems(spec, _NUMBERS, "spec")
    if spec.get("concurrencyPolicy") not in _POLICIES:
        found.append(unsupported("spec.concurrencyPolicy", spec.get("concurrencyPolicy"), _POLICIES))
    return found


def _schedule_problems(text: str) -> list[Cause]:
    try:
        read_schedule(text)
    except ScheduleError as error:
        return [invalid_value("spec.schedule", text, str(error))]
    return []


def _zone_problems(zone: str) -> list[Cause]:
    if not zone:
        return [invalid_value("spec.timeZone", zone, "timeZone must be nil or non-empty string")]
    if zone.lower() == "local":
        why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [invalid_value("spec.timeZone", zone, why)]
    return [invalid_value("spec.timeZone", zone, f"unknown time zone {zone}")] if not _is_known(zone) else []


def _is_known(zone: str) -> bool:
    try:
        read_schedule("* * * * *", zone)
    except ScheduleError:
        return False
    return True


def _volcano_zone_problem(zone: str) -> str:
    if not zone:
        return "timeZone must be nil or non-empty string, got empty string"
    odd = [part for part in zone.split("/") if part in (".", "..") or part[:1] == "-" or not _ZONE.fullmatch(part)]
    if odd:
        return "unknown timeZone"
    if zone.lower() == "local":
        return "timeZone can't be Local, and must be defined in https://www.iana.org/time-zones"
    return "" if _is_known(zone) else "invalid timeZone"


def _name_problems(name: str) -> list[Cause]:
    if len(name) > LONGEST_NAME:
        why = (
            f"cronJob name must be no more than {LONGEST_NAME} characters to accommodate job name suffix (max 63 total)"
        )
        return [invalid_value("metadata.name", name, why)]
    if problem := qualified_name_problem(name):
        return [invalid_value("metadata.name", name, f'invalid cronJob name "{name}": {problem}')]
    return []
