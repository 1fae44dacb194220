# SPDX-License-Identifier: Apache-2.0
"""The controller of batch/v1 Jobs: pods until enough have succeeded or too many have failed.

Source: Kubernetes' job controller (`syncJob`, `manageJob`, `trackJobStatusAndRemoveFinalizers`), its TTL controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import Final

from pumice.cluster.controllers.batch import counting
from pumice.cluster.controllers.batch.counting import (
    INDEX,
    GonePods,
    JobProgress,
    index_of,
    is_indexed,
    read_indexes,
    replaces_failed_only,
    written_indexes,
)
from pumice.cluster.controllers.batch.failures import (
    FAILURES,
    IGNORED,
    again_at,
    failures_before,
    past_limit,
    verdict_on,
)
from pumice.cluster.controllers.family import Agenda, ChildName, OwnerRule, OwnFamily
from pumice.cluster.controllers.pods_of import Belongs, by_selector, is_leaving, least_missed, pod_from
from pumice.cluster.kube.events import event
from pumice.cluster.kube.merge_patch import diff_patch
from pumice.cluster.kube.statuses import timestamp
from pumice.core.life.cycle import LifeCycle
from pumice.core.messages.commands import ApiRequest, Create, Delete, UpdateStatus
from pumice.core.objects.metadata import Object, conditions_of, parse_time, rows, section
from pumice.core.objects.parts import ORPHAN_POD, POD_OF_WORKLOAD
from pumice.storage.codec import pack

# --- The life of a batch/v1 Job
# A Job that has enough, or has failed, is not over before its last pod has gone; so says the pair of conditions
# SuccessCriteriaMet and Complete, FailureTarget and Failed (source: Kubernetes' job controller).


class BatchJobState(StrEnum):
    """State of a Job, read from its conditions."""

    ACTIVE = "Active"
    SUSPENDED = "Suspended"
    SUCCEEDING = "SuccessCriteriaMet"
    FAILING = "FailureTarget"
    COMPLETE = "Complete"
    FAILED = "Failed"


class BatchJobTrigger(StrEnum):
    """Trigger of a Job's transition."""

    SUSPENDED = "suspended"
    RESUMED = "resumed"
    ENOUGH = "enough pods have succeeded"
    BROKEN = "it cannot succeed any more"
    EMPTY = "no pod of it is left running"


_S, _E = BatchJobState, BatchJobTrigger

BATCH_JOB_LIFE: Final = LifeCycle(
    {
        (_S.ACTIVE, _E.SUSPENDED): _S.SUSPENDED,
        (_S.ACTIVE, _E.ENOUGH): _S.SUCCEEDING,
        (_S.ACTIVE, _E.BROKEN): _S.FAILING,
        (_S.SUSPENDED, _E.RESUMED): _S.ACTIVE,
        (_S.SUSPENDED, _E.ENOUGH): _S.SUCCEEDING,  # its last pods ended well before they were asked to stop
        (_S.SUSPENDED, _E.BROKEN): _S.FAILING,
        (_S.SUCCEEDING, _E.EMPTY): _S.COMPLETE,
        (_S.FAILING, _E.EMPTY): _S.FAILED,
    }
)
"""What is not here does not happen: a Job that is over stays as it is, and one that ends is not suspended any more."""

OVER: Final = frozenset((_S.COMPLETE, _S.FAILED))
_MARKS: Final = (_S.COMPLETE, _S.FAILED, _S.FAILING, _S.SUCCEEDING, _S.SUSPENDED)


def state_of(job: Object) -> BatchJobState:
    """Return the state that the conditions describe."""
    holds = {each.get("type") for each in conditions_of(job) if each.get("status") == "True"}
    return next((mark for mark in _MARKS if mark.value in holds), BatchJobState.ACTIVE)


# --- Pods to make and to take away

VARIABLE: Final = "JOB_COMPLETION_INDEX"


@dataclass(slots=True)
class PodChange:
    """The pods to create and delete. `again_at`: pods are missing, and may come no sooner (0: none waits)."""

    new: list[Object] = field(default_factory=list[Object])
    surplus: list[Object] = field(default_factory=list[Object])
    again_at: float = 0.0


def wanted_active(job: Object, count: JobProgress) -> int:
    """Return the number of pods that are to run at a time now."""
    spec = job["spec"]
    most: int = spec["parallelism"]
    if spec.get("completions") is None:  # a queue of work: once one has succeeded, no more are made
        return min(len(count.active), most) if count.succeeded else most
    # a failed index is over: no pod is made for it again
    left: int = spec["completions"] - count.succeeded - len(count.failed_indexes)
    return max(min(left, most), 0)


def changed(job: Object, count: JobProgress, now: float) -> PodChange:
    """Return the pods to make and to delete."""
    wanted, change = wanted_active(job, count), PodChange()
    change.surplus = _surplus(job, count, wanted)
    taken = {pod["metadata"]["uid"] for pod in change.surplus}
    active = [pod for pod in count.active if pod["metadata"]["uid"] not in taken]
    # with podReplacementPolicy Failed a pod that is being deleted still holds its place
    coming = len(count.terminating) if replaces_failed_only(job) else 0
    missing = wanted - len(active) - coming
    if missing <= 0:
        return change
    if is_indexed(job):
        return _with_indexes(job, count, change, active, missing, now)
    at = again_at(count.failed_pods, count.succeeded_pods)
    if at > now:
        change.again_at = at
    else:
        change.new = [pod_from(job["spec"]["template"], job) for _ in range(missing)]
    return change


def _surplus(job: Object, count: JobProgress, wanted: int) -> list[Object]:
    """Return the surplus: pods without an index, or with one that is done or has another pod, then the least missed."""
    found: list[Object] = []
    kept = count.active
    if is_indexed(job):
        below: int = job["spec"].get("completions") or 0
        seen = count.done | count.failed_indexes
        kept = list[Object]()
        # the most missed first: of two pods of one index it keeps the index
        for pod in sorted(count.active, key=least_missed, reverse=True):
            index = index_of(pod)
            if index is None or index >= below or index in seen:
                found.append(pod)
            else:
                seen = seen | {index}
                kept.append(pod)
    return found + sorted(kept, key=least_missed)[: max(len(kept) - wanted, 0)]


def _with_indexes(
    job: Object, count: JobProgress, change: PodChange, active: Sequence[Object], missing: int, now: float
) -> PodChange:
    """Return the lowest free indexes; each waits for its own failures where each has its own limit."""
    busy = active if not replaces_failed_only(job) else [*active, *count.terminating]
    taken = count.done | count.failed_indexes | {index for pod in busy if (index := index_of(pod)) is not None}
    alone = job["spec"].get("backoffLimitPerIndex") is not None
    waits: list[float] = []
    free = (index for index in range(job["spec"].get("completions") or 0) if index not in taken)
    # lazily: a Job may have many more indexes than pods at a time
    for index in islice(free, missing):
        failed = [pod for pod in count.failed_pods if not alone or index_of(pod) == index]
        at = again_at(failed, () if alone else count.succeeded_pods)
        if at > now:
            waits.append(at)
        else:
            change.new.append(_indexed_pod(job, index, failed if alone else None))
    change.again_at = min(waits, default=0.0)
    return change


def _indexed_pod(job: Object, index: int, failed: Sequence[Object] | None) -> Object:
    """Return a pod of an index. `failed`: failed pods of the index, where it has a limit of its own."""
    pod = pod_from(job["spec"]["template"], job)
    meta, spec = pod["metadata"], pod["spec"]
    meta["generateName"] = f"{job['metadata']['name']}-{index}-"
    meta["annotations"][INDEX] = meta["labels"][INDEX] = str(index)
    if failed is not None:
        last = max(failed, key=lambda each: failures_before(each) + failures_before(each, IGNORED), default=None)
        # the annotation tells only what had failed before that pod: its own failure comes on top
        counts = last is not None and verdict_on(job, last).counts
        meta["annotations"][FAILURES] = str((failures_before(last) + counts) if last else 0)
        ignored = (failures_before(last, IGNORED) + (not counts)) if last else 0
        if ignored:
            meta["annotations"][IGNORED] = str(ignored)
    spec["hostname"] = f"{job['metadata']['name']}-{index}"
    told = {"name": VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}}
    for group in ("initContainers", "containers"):
        if spec.get(group):
            spec[group] = [_told(container, told) for container in spec[group]]
    return pod


def _told(container: Object, variable: Object) -> Object:
    named: list[Object] = container.get("env") or []
    # a variable of the user's own is kept
    if any(each.get("name") == VARIABLE for each in named):
        return container
    return {**container, "env": [*named, variable]}


# --- The end of a Job
# Source: Kubernetes' job controller and its `success_policy`.

REACHED: Final = ("CompletionsReached", "Reached expected number of succeeded pods")


def enough(job: Object, count: JobProgress) -> tuple[str, str] | None:
    """Return reason and message of the Job's success; None before."""
    rule = _met(job, count)
    if rule is not None:
        return "SuccessPolicy", f"Matched rules at index {rule}"
    completions = job["spec"].get("completions")
    if completions is None:
        return REACHED if count.succeeded and not count.active and not count.terminating else None
    return REACHED if count.succeeded >= completions else None


def _met(job: Object, count: JobProgress) -> int | None:
    """Return the first rule of its successPolicy that holds, if any."""
    for number, rule in enumerate(rows(section(job["spec"], "successPolicy"), "rules")):
        text, least = rule.get("succeededIndexes"), rule.get("succeededCount")
        wanted = read_indexes(text, job["spec"].get("completions") or 0) if text else None
        done = count.done if wanted is None else count.done & wanted
        if len(done) >= least if least is not None else wanted is not None and done == wanted:
            return number
    return None


REPORTER: Final = "job-controller"
USER: Final = "workload-controller"


@dataclass(slots=True)
class JobOutcome:
    """Outcome of a look at a Job: its next state, the reason and message, and the pods that change with it."""

    state: BatchJobState
    reason: str = ""
    message: str = ""


class JobRule(OwnerRule):
    """Rule of batch/v1 Jobs."""

    summary = (
        "completions, parallelism, Indexed, backoffLimit (and per index), podFailurePolicy, successPolicy, suspend, "
        "activeDeadlineSeconds, ttlSecondsAfterFinished, podReplacementPolicy"
    )
    owner = "Job.batch"
    owner_type = ("batch/v1", "Job")
    children = (POD_OF_WORKLOAD, ORPHAN_POD)
    reporter = REPORTER
    user = USER

    def __init__(self) -> None:
        self._gone: dict[str, GonePods] = {}
        self._jobs: dict[str, Object] = {}

    def belongs(self, owner: Object) -> Belongs | None:
        """Return a test that picks the owner's children among those that it `adopts`; None: those that the owner
        made.
        """
        return by_selector(owner["spec"].get("selector"))

    def child_changed(self, mark: str, name: ChildName, old: Object | None, new: Object | None) -> bool:
        """Note that a child has come (`old` is None), has changed, has another under its name, or has gone (`new` is
        None).
        """
        stays = old is None or (new is not None and old["metadata"]["uid"] == new["metadata"]["uid"])
        if old is not None and not stays and mark in self._gone:
            counting.note_gone(self._gone[mark], self._jobs[mark], old)
        return True

    def forget(self, mark: str) -> None:
        """Forget a removed owner."""
        self._gone.pop(mark, None)
        self._jobs.pop(mark, None)

    def work(self, family: OwnFamily, now: float) -> Agenda:
        """Return the requests for an owner that is not being deleted."""
        job, pods = family.owner, family.of("Pod")
        uid = job["metadata"]["uid"]
        if job["spec"].get("managedBy") not in (None, "kubernetes.io/job-controller"):
            return Agenda()
        # the first look since the start: pods that are missing by the status must not be counted anew
        if uid not in self._gone:
            self._gone[uid] = counting.first_gone(job, pods)
        self._jobs[uid] = job
        state = state_of(job)
        if state in OVER:
            return _clean_up(job, now)
        gone = self._gone[uid]
        count = counting.counted(job, pods, gone)
        outcome, change, work = decide(job, state, count, now)
        if outcome.state is not BatchJobState.FAILING:  # what a failed Job takes away with it has failed, too
            gone.spared.update(pod["metadata"]["uid"] for pod in change.surplus)
        work.new = change.new
        # creations are not among these: the machine holds them back after a refusal
        work.requests += [_removal(pod) for pod in change.surplus]
        left = len(count.active) - len(change.surplus)
        status = status_after(job, count, left, outcome, now)
        if patch := diff_patch(section(job, "status"), status):
            meta = job["metadata"]
            work.requests.append(UpdateStatus("Job.batch", meta["namespace"], meta["name"], pack(patch), user=USER))
        if outcome.state is not state:
            work.requests += _said(job, state, outcome, now)
        return work


def decide(job: Object, state: BatchJobState, count: JobProgress, now: float) -> tuple[JobOutcome, PodChange, Agenda]:
    """Return the next step of a Job that has not ended: one trigger of its life at a time, and the pods that go with
    it.
    """
    work = Agenda()
    if state in (BatchJobState.SUCCEEDING, BatchJobState.FAILING):
        if count.active or count.terminating:
            return JobOutcome(state), PodChange(surplus=count.active), work
        return JobOutcome(_moved(job, state, BatchJobTrigger.EMPTY), *_last_words(job, state)), PodChange(), work
    # failure before success, as in Kubernetes' `syncJob`
    if broken := _broken(job, count, now):
        return JobOutcome(_moved(job, state, BatchJobTrigger.BROKEN), *broken), PodChange(surplus=count.active), work
    if met := enough(job, count):
        return JobOutcome(_moved(job, state, BatchJobTrigger.ENOUGH), *met), PodChange(surplus=count.active), work
    if job["spec"].get("suspend"):
        after = BATCH_JOB_LIFE.after(state, BatchJobTrigger.SUSPENDED)
        return JobOutcome(after, "JobSuspended", "Job suspended"), PodChange(surplus=count.active), work
    if state is BatchJobState.SUSPENDED:
        return JobOutcome(_moved(job, state, BatchJobTrigger.RESUMED), "JobResumed", "Job resumed"), PodChange(), work
    change = changed(job, count, now)
    if change.again_at:
        work.no_later_than(change.again_at)
    limit = job["spec"].get("activeDeadlineSeconds")
    if limit is not None:
        started = section(job, "status").get("startTime")
        work.no_later_than((parse_time(started) if started else now) + limit)
    return JobOutcome(state), change, work


def _moved(job: Object, state: BatchJobState, trigger: BatchJobTrigger) -> BatchJobState:
    return BATCH_JOB_LIFE.move(state, trigger, f"Job {job['metadata']['name']}")


def _last_words(job: Object, state: BatchJobState) -> tuple[str, str]:
    """Return reason and message of the condition that announced the end."""
    [said] = [each for each in rows(section(job, "status"), "conditions") if each.get("type") == state.value]
    return str(said.get("reason") or ""), str(said.get("message") or "")


def _broken(job: Object, count: JobProgress, now: float) -> tuple[str, str] | None:
    """Return why the Job has failed, in Kubernetes' order."""
    spec, status = job["spec"], section(job, "status")
    for pod in count.failed_pods:
        if why := verdict_on(job, pod).why:
            return "PodFailurePolicy", why
    if past_limit(job, count.failed, count.active):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    limit, started = spec.get("activeDeadlineSeconds"), status.get("startTime")
    # a suspended Job has no deadline: its start is noted anew when it goes on
    if limit is not None and started and not spec.get("suspend") and now >= parse_time(started) + limit:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    if not is_indexed(job) or spec.get("backoffLimitPerIndex") is None:
        return None
    most = spec.get("maxFailedIndexes")
    if most is not None and len(count.failed_indexes) > most:
        return "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
    if count.failed_indexes and len(count.failed_indexes | count.done) >= (spec.get("completions") or 0):
        return "FailedIndexes", "Job has failed indexes"
    return None


def status_after(job: Object, count: JobProgress, active: int, outcome: JobOutcome, now: float) -> Object:
    """Return the new status."""
    old = section(job, "status")
    before, stamp = state_of(job), timestamp(now)
    status: Object = {"ready": count.ready, "terminating": len(count.terminating)}
    if outcome.state in (BatchJobState.SUCCEEDING, BatchJobState.FAILING, *OVER) or job["spec"].get("suspend"):
        status["ready"] = 0
    numbers = {"active": active, "succeeded": count.succeeded, "failed": count.failed}
    status |= {name: number for name, number in numbers.items() if number}
    if is_indexed(job):
        status["completedIndexes"] = written_indexes(count.done)
        if job["spec"].get("backoffLimitPerIndex") is not None:
            status["failedIndexes"] = written_indexes(count.failed_indexes)
        status = {name: value for name, value in status.items() if value != "" or name == "failedIndexes"}
    resumed = before is BatchJobState.SUSPENDED and outcome.state is BatchJobState.ACTIVE
    if old.get("startTime") and not resumed:
        status["startTime"] = old["startTime"]
    elif not job["spec"].get("suspend"):
        status["startTime"] = stamp
    if outcome.state is BatchJobState.COMPLETE:
        status["completionTime"] = stamp
    conditions = _conditions(old.get("conditions") or [], before, outcome, stamp)
    return {**status, "conditions": conditions} if conditions else status


def _conditions(old: list[Object], before: BatchJobState, outcome: JobOutcome, stamp: str) -> list[Object]:
    if outcome.state is before:
        return old
    named = outcome.state.value
    status = "True"
    if outcome.state is BatchJobState.ACTIVE:
        named, status = BatchJobState.SUSPENDED.value, "False"
    made = {
        "type": named,
        "status": status,
        "lastProbeTime": stamp,
        "lastTransitionTime": stamp,
        "reason": outcome.reason,
        "message": outcome.message,
    }
    if any(each.get("type") == named for each in old):
        return [made if each.get("type") == named else each for each in old]
    return [*old, made]


def _said(job: Object, before: BatchJobState, outcome: JobOutcome, now: float) -> list[ApiRequest]:
    match outcome.state:
        case BatchJobState.COMPLETE:
            said = ("Completed", "Job completed", False)
        case BatchJobState.FAILED:
            said = (outcome.reason, outcome.message, True)
        case BatchJobState.SUSPENDED:
            said = ("Suspended", "Job suspended", False)
        case BatchJobState.ACTIVE if before is BatchJobState.SUSPENDED:
            said = ("Resumed", "Job resumed", False)
        case _:
            return []
    reason, message, warning = said
    return [Create(pack(event(job, reason, message, now, source=REPORTER, warning=warning)), user=USER)]


def _removal(pod: Object) -> Delete:
    meta = pod["metadata"]
    return Delete("Pod", meta["namespace"], meta["name"], uid=meta["uid"], user=USER)


def _clean_up(job: Object, now: float) -> Agenda:
    """Return the deletion of an ended Job with its pods, once its time to live is over."""
    after, work = job["spec"].get("ttlSecondsAfterFinished"), Agenda()
    if after is None or is_leaving(job):
        return work
    ended = _ended_at(job) + after
    if ended > now:
        work.no_later_than(ended)
    else:
        meta = job["metadata"]
        work.requests.append(
            Delete("Job.batch", meta["namespace"], meta["name"], uid=meta["uid"], user=USER, propagation="Foreground")
        )
    return work


def _ended_at(job: Object) -> float:
    marks = {state.value for state in OVER}
    conditions: list[Object] = section(job, "status").get("conditions") or []
    times = [each.get("lastTransitionTime") for each in conditions if each.get("type") in marks]
    return max(map(parse_time, times), default=0.0)
