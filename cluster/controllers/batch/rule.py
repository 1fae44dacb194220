"""What the controller of batch/v1 Jobs wants: pods until enough have succeeded or too many have failed.

Source: Kubernetes' job controller (`syncJob`, `manageJob`, `trackJobStatusAndRemoveFinalizers`), its TTL controller.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pumice.cluster.controllers.adoption import Belongs, by_selector
from pumice.cluster.controllers.batch import counting, indexes
from pumice.cluster.controllers.batch.counting import GonePods, JobProgress, is_indexed
from pumice.cluster.controllers.batch.failures import past_limit, verdict_on
from pumice.cluster.controllers.batch.life import BATCH_JOB_LIFE, OVER, BatchJobState, BatchJobTrigger, state_of
from pumice.cluster.controllers.batch.pods import PodChange, changed
from pumice.cluster.controllers.batch.success import enough
from pumice.cluster.controllers.pods_of import is_leaving
from pumice.cluster.controllers.rule import Agenda, OwnerRule, OwnFamily
from pumice.cluster.kube.events import event
from pumice.cluster.kube.merge_patch import diff_patch
from pumice.cluster.kube.times import timestamp
from pumice.core.messages.commands import ApiRequest, Create, Delete, UpdateStatus
from pumice.core.objects.metadata import Object, parse_time, section
from pumice.core.objects.parts import POD_OF_NOBODY, POD_OF_WORKLOAD
from pumice.storage.codec import pack

REPORTER: Final = "job-controller"
USER: Final = "workload-controller"


@dataclass(slots=True)
class JobOutcome:
    """What a Job comes to: its next state, in what words, and which pods change with it."""

    state: BatchJobState
    reason: str = ""
    message: str = ""


class JobRule(OwnerRule):
    """What batch/v1 Jobs want."""

    owner = "Job.batch"
    owner_type = ("batch/v1", "Job")
    children = (POD_OF_WORKLOAD, POD_OF_NOBODY)
    reporter = REPORTER
    user = USER

    def __init__(self) -> None:
        self._gone: dict[str, GonePods] = {}
        self._jobs: dict[str, Object] = {}

    def belongs(self, owner: Object) -> Belongs | None:
        """Which of those that it `adopts` are the owner's, by what they are like; None: those that it has made."""
        return by_selector(owner["spec"].get("selector"))

    def gone(self, owner_uid: str, child: Object) -> None:
        """A child was removed; `child` as it was last seen."""
        if owner_uid in self._gone:
            counting.note_gone(self._gone[owner_uid], self._jobs[owner_uid], child)

    def forget(self, owner_uid: str) -> None:
        """The owner was removed."""
        self._gone.pop(owner_uid, None)
        self._jobs.pop(owner_uid, None)

    def work(self, family: OwnFamily, now: float) -> Agenda:
        """What to ask of the api for an owner that is not being deleted."""
        job, pods = family.owner, family.of("Pod")
        uid = job["metadata"]["uid"]
        if job["spec"].get("managedBy") not in (None, "kubernetes.io/job-controller"):
            return Agenda()
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
    """The next step of a Job that is not over: one trigger of its life at a time, and the pods that go with it."""
    work = Agenda()
    if state in (BatchJobState.SUCCEEDING, BatchJobState.FAILING):
        if count.active or count.terminating:
            return JobOutcome(state), PodChange(surplus=count.active), work
        return JobOutcome(_moved(job, state, BatchJobTrigger.EMPTY), *_last_words(job, state)), PodChange(), work
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
    """Reason and message of the condition that said where it was going."""
    conditions: list[Object] = section(job, "status").get("conditions") or []
    [said] = [each for each in conditions if each.get("type") == state.value]
    return str(said.get("reason") or ""), str(said.get("message") or "")


def _broken(job: Object, count: JobProgress, now: float) -> tuple[str, str] | None:
    """Why it has failed, in Kubernetes' order."""
    spec, status = job["spec"], section(job, "status")
    for pod in count.failed_pods:
        if why := verdict_on(job, pod).why:
            return "PodFailurePolicy", why
    if past_limit(job, count.failed, count.active):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    limit, started = spec.get("activeDeadlineSeconds"), status.get("startTime")
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
    """The status as it is to be."""
    old = section(job, "status")
    before, stamp = state_of(job), timestamp(now)
    status: Object = {"ready": count.ready, "terminating": len(count.terminating)}
    if outcome.state in (BatchJobState.SUCCEEDING, BatchJobState.FAILING, *OVER) or job["spec"].get("suspend"):
        status["ready"] = 0
    numbers = {"active": active, "succeeded": count.succeeded, "failed": count.failed}
    status |= {name: number for name, number in numbers.items() if number}
    if is_indexed(job):
        status["completedIndexes"] = indexes.written(count.done)
        if job["spec"].get("backoffLimitPerIndex") is not None:
            status["failedIndexes"] = indexes.written(count.failed_indexes)
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
    """A Job that is over goes some time after it ended, if it says so, with its pods."""
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
