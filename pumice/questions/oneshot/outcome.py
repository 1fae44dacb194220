# SPDX-License-Identifier: Apache-2.0
"""A cycle's result as an OUTCOME: the plain dictionary that `decide -o json` prints and conformance cases hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypedDict

from pumice.core.messages.decisions import Bind, CycleReport, CycleResult, TaskAtOpen
from pumice.core.objects.metadata import Object, section
from pumice.questions.oneshot.between import ToldCondition, condition_dict, object_key

# --- Statuses at opening


@dataclass(frozen=True, slots=True)
class Standing:
    """A pod's status.nominatedNodeName, and reason and message of its PodScheduled=False; empty without these."""

    nominated: str = ""
    reason: str = ""
    message: str = ""


def standings_of(objects: Iterable[Object]) -> dict[str, Standing]:
    """Return the standings by "ns/pod", for the pods with a remark."""
    found = {object_key(obj): _standing(section(obj, "status")) for obj in objects if obj.get("kind") == "Pod"}
    return {key: standing for key, standing in found.items() if standing != Standing()}


def _standing(status: Object) -> Standing:
    nominated = str(status.get("nominatedNodeName") or "")
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return Standing(nominated, str(condition.get("reason") or ""), str(condition.get("message") or ""))
    return Standing(nominated)


class ToldReason(TypedDict):
    """Reason and message of a pod's condition."""

    reason: str
    message: str


class Outcome(TypedDict):
    """One cycle as conformance cases have it (conformance/README.md); keys are "namespace/name" of pods and PodGroups.

    `binds`: pod -> node, now; `awaitingVolumes`: once its volumes are bound; `pipelined`: once room is released;
    `uncommitted`: if its gang were whole. `taskStatus`: PodGroup -> status -> how many tasks. `queueAllocated`:
    queue -> resource -> quantity.
    """

    binds: dict[str, str]
    evictions: list[str]
    pipelined: dict[str, str]
    uncommitted: dict[str, str]
    awaitingVolumes: dict[str, str]
    phases: dict[str, str]
    taskStatus: dict[str, dict[str, int]]
    nominated: dict[str, str]
    conditions: dict[str, list[ToldCondition]]
    podConditions: dict[str, ToldReason]
    podAnnotations: dict[str, dict[str, str]]
    numaAllocatable: dict[str, dict[str, str]]
    queueAllocated: dict[str, Object]


NOTHING: Final = Standing()


def outcome_of(result: CycleResult, before: Mapping[str, Standing]) -> Outcome:
    """Return the OUTCOME of one cycle; `before` is the API's state of the pods ("ns/pod") when it opened.

    An update that leaves the nomination or the condition alone still shows the old one.
    """
    report = result.report
    return {
        "binds": {f"{bind.namespace}/{bind.name}": bind.node for bind in result.binds if not waits(bind)},
        "evictions": sorted(f"{evict.namespace}/{evict.name}" for evict in result.evicts),
        "pipelined": dict(sorted(report.pipelined.items())),
        "uncommitted": dict(sorted(report.uncommitted.items())),
        "awaitingVolumes": {f"{bind.namespace}/{bind.name}": bind.node for bind in result.binds if waits(bind)},
        "phases": dict(sorted(report.phases.items())),
        "taskStatus": {job: _counts(counts) for job, counts in sorted(report.task_status.items())},
        "nominated": _nominated(result, before),
        "conditions": _conditions(report),
        "podConditions": _pod_conditions(result, before),
        "podAnnotations": {pod: _lasting(said) for pod, said in sorted(report.pod_annotations.items())},
        "numaAllocatable": dict(sorted(report.numa_allocatable.items())),
        "queueAllocated": {queue.name: dict(queue.allocated) for queue in result.queues},
    }


def _lasting(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the conditions without the times."""
    return {name: value for name, value in annotations.items() if not name.endswith("-time")}


def at_open(report: CycleReport) -> Object:
    """Return `atOpen` of a case: queue gauges, and the answers of filters and scores before any action."""
    return {
        "queues": report.queues.by_queue(),
        "tasks": {name: _task_at_open(task) for name, task in report.tasks_at_open.items()},
    }


def waits(bind: Bind) -> bool:
    """Return whether the pod's volumes must be bound first: the pod is on its way to its node, and not bound in this
    cycle.
    """
    return bind.pre_bind is not None and bind.pre_bind.waits


def _counts(counts: Mapping[str, int]) -> dict[str, int]:
    return {status: count for status, count in sorted(counts.items()) if count}


def _nominated(result: CycleResult, before: Mapping[str, Standing]) -> dict[str, str]:
    after: dict[str, str] = {}
    for update in result.pod_conditions:
        name = f"{update.namespace}/{update.name}"
        node = before.get(name, NOTHING).nominated if update.nominated == "" else update.nominated
        if node:
            after[name] = node
    return after


def _conditions(report: CycleReport) -> dict[str, list[ToldCondition]]:
    return {job: [condition_dict(one) for one in listed] for job, listed in sorted(report.conditions.items()) if listed}


def _pod_conditions(result: CycleResult, before: Mapping[str, Standing]) -> dict[str, ToldReason]:
    after: dict[str, ToldReason] = {}
    for update in result.pod_conditions:
        name = f"{update.namespace}/{update.name}"
        shown = update if update.reason or update.message else before.get(name, NOTHING)
        if shown.reason or shown.message:
            after[name] = {"reason": shown.reason, "message": shown.message}
    return after


def _task_at_open(task: TaskAtOpen) -> Object:
    seen: Object = {"rejected": task.rejected, "scores": task.scores}
    if task.pre_predicate:
        seen["prePredicate"] = task.pre_predicate
    return seen
