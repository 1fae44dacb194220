"""Deployments, replica sets and the other kinds that make pods from a template."""

from __future__ import annotations

from typing import Any, Final

from pumice.actors.gateway.tables.ages import age, human_duration, since
from pumice.actors.gateway.tables.column import (
    AGE,
    CONTAINERS,
    IMAGES,
    NAME,
    NONE,
    SELECTOR,
    UNSET,
    Printer,
    number,
    text,
)
from pumice.actors.gateway.tables.words import (
    containers,
    count,
    deleted,
    label_map,
    label_selector,
    name_of,
    spec_of,
    status_of,
)
from pumice.cluster.api.fields import rows
from pumice.core.objects.metadata import Object, parse_time, section

_TEMPLATE: Final = (CONTAINERS, IMAGES, SELECTOR)
_JOB_STATES: Final = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def _template(spec: Object) -> list[str]:
    return [*containers(spec), label_selector(spec.get("selector")) or NONE]


def _deployment(obj: Object, now: float) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    ready = f"{count(status, 'readyReplicas')}/{count(spec, 'replicas', 1)}"
    updated, available = count(status, "updatedReplicas"), count(status, "availableReplicas")
    wide = [*containers(spec), label_selector(spec.get("selector"))]
    return [name_of(obj), ready, updated, available, age(obj, now), *wide]


def _replicas(obj: Object, now: float) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    current, ready = count(status, "replicas"), count(status, "readyReplicas")
    return [name_of(obj), count(spec, "replicas", 1), current, ready, age(obj, now)]


def _replica_set(obj: Object, now: float) -> list[Any]:
    return [*_replicas(obj, now), *_template(spec_of(obj))]


def _replication_controller(obj: Object, now: float) -> list[Any]:
    spec = spec_of(obj)
    return [*_replicas(obj, now), *containers(spec), label_map(spec.get("selector"))]


def _stateful_set(obj: Object, now: float) -> list[Any]:
    spec = spec_of(obj)
    ready = f"{count(status_of(obj), 'readyReplicas')}/{count(spec, 'replicas', 1)}"
    return [name_of(obj), ready, age(obj, now), *containers(spec)]


def _daemon_set(obj: Object, now: float) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    fields = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    nodes = section(section(section(obj, "spec"), "template"), "spec").get("nodeSelector")
    counts = [count(status, field) for field in fields]
    return [name_of(obj), *counts, label_map(nodes), age(obj, now), *_template(spec)]


def _job(obj: Object, now: float) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    wide = _template(spec)
    return [name_of(obj), _job_state(obj), _completions(spec, status), _job_duration(status, now), age(obj, now), *wide]


def _completions(spec: Object, status: Object) -> str:
    done = count(status, "succeeded")
    if spec.get("completions") is not None:
        return f"{done}/{spec['completions']}"
    parallelism = count(spec, "parallelism")
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _job_duration(status: Object, now: float) -> str:
    started = status.get("startTime")
    if not started:
        return ""
    ended = status.get("completionTime")
    return human_duration((parse_time(ended) if ended else now) - parse_time(started))


def _job_state(obj: Object) -> str:
    holds = {one.get("type") for one in rows(status_of(obj), "conditions") if one.get("status") == "True"}
    for condition, word in _JOB_STATES:
        if condition in holds or (not condition and deleted(obj)):
            return word
    return "Running"


def _cron_job(obj: Object, now: float) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    last = status.get("lastScheduleTime")
    suspended = spec.get("suspend")
    return [
        name_of(obj),
        spec.get("schedule") or "",
        spec.get("timeZone") or NONE,
        UNSET if suspended is None else str(bool(suspended)),
        len(rows(status, "active")),
        since(last, now) if last else NONE,
        age(obj, now),
        *_template(section(section(spec, "jobTemplate"), "spec")),
    ]


DEPLOYMENTS: Final = Printer(
    (
        NAME,
        text("Ready", "Pods that are ready, of those wanted."),
        text("Up-to-date", "Pods of the newest template."),
        text("Available", "Pods that have been ready for long enough."),
        AGE,
        *_TEMPLATE,
    ),
    _deployment,
)

_REPLICAS: Final = (
    NAME,
    number("Desired", "Pods wanted."),
    number("Current", "Pods there."),
    number("Ready", "Pods that are ready."),
    AGE,
)

REPLICA_SETS: Final = Printer((*_REPLICAS, *_TEMPLATE), _replica_set)
REPLICATION_CONTROLLERS: Final = Printer((*_REPLICAS, *_TEMPLATE), _replication_controller)
STATEFUL_SETS: Final = Printer(
    (NAME, text("Ready", "Pods that are ready, of those wanted."), AGE, CONTAINERS, IMAGES), _stateful_set
)

DAEMON_SETS: Final = Printer(
    (
        NAME,
        number("Desired", "Nodes that should run a pod of it."),
        number("Current", "Nodes that do."),
        number("Ready", "Nodes whose pod is ready."),
        number("Up-to-date", "Nodes whose pod is of the newest template."),
        number("Available", "Nodes whose pod has been ready for long enough."),
        text("Node Selector", "Which nodes."),
        AGE,
        *_TEMPLATE,
    ),
    _daemon_set,
)

JOBS: Final = Printer(
    (
        NAME,
        text("Status", "The job's state."),
        text("Completions", "Pods that have succeeded, of those wanted."),
        text("Duration", "How long it took, or has taken so far."),
        AGE,
        *_TEMPLATE,
    ),
    _job,
)

CRON_JOBS: Final = Printer(
    (
        NAME,
        text("Schedule", "When, in cron's format."),
        text("Timezone", "Whose clock the schedule follows."),
        text("Suspend", "Whether it is held."),
        number("Active", "Jobs of it that run."),
        text("Last Schedule", "Time since the last job was made."),
        AGE,
        *_TEMPLATE,
    ),
    _cron_job,
)
