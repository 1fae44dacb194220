# SPDX-License-Identifier: Apache-2.0
"""The controllers of JobFlows and JobTemplates: Jobs from templates, each when those that it depends on are done.

Source: Volcano `controllers/jobflow`, `controllers/jobtemplate`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final

from pumice.cluster.controllers.family import Agenda, ChildName, OwnerRule, OwnFamily
from pumice.cluster.controllers.pods_of import is_leaving, reference
from pumice.cluster.kube.events import event
from pumice.cluster.kube.merge_patch import diff_patch
from pumice.cluster.kube.statuses import timestamp
from pumice.config.durations import duration_s
from pumice.core.life.cycle import LifeCycle
from pumice.core.messages.commands import Create, Delete, UpdateStatus
from pumice.core.objects.metadata import Object, parse_time, section, text_map
from pumice.storage.codec import pack

# --- The life of a JobFlow


class FlowPhase(StrEnum):
    """Phase of a flow; the CRD has TERMINATING too, which is never reached here."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEED = "Succeed"
    TERMINATING = "Terminating"
    FAILED = "Failed"


class FlowTrigger(StrEnum):
    """Trigger of a flow's transition: the state of its jobs."""

    BEGUN = "a job runs or has run, and none has failed"
    BROKEN = "a job has failed"
    STOPPED = "a job was terminated"
    DONE = "as many jobs as there are flows have completed"


_P, _T = FlowPhase, FlowTrigger

FLOW_LIFE: Final = LifeCycle(
    {
        (_P.PENDING, _T.BEGUN): _P.RUNNING,
        (_P.PENDING, _T.BROKEN): _P.FAILED,
        (_P.PENDING, _T.STOPPED): _P.FAILED,  # while it runs, a terminated job is not a failure
        (_P.RUNNING, _T.BROKEN): _P.FAILED,
        (_P.RUNNING, _T.DONE): _P.SUCCEED,
    }
)
"""Nothing follows on Succeed, Terminating and Failed."""


def trigger_of(
    jobs: Mapping[str, Collection[str]], flows: int, phase: FlowPhase, *, terminated_fails: bool = False
) -> FlowTrigger | None:
    """Return the trigger for the phases of the flow's jobs (their names by phase), in the order of Volcano's states.

    `terminated_fails`: a Job that was terminated is a failure while the flow runs, too.
    """
    running, completed = len(jobs.get("Running", ())), len(jobs.get("Completed", ()))
    failed, terminated = len(jobs.get("Failed", ())), len(jobs.get("Terminated", ()))
    # done before broken: the order in which Volcano's states ask
    if phase is FlowPhase.RUNNING and completed == flows:
        return FlowTrigger.DONE
    if failed or (terminated and terminated_fails and phase is FlowPhase.RUNNING):
        return FlowTrigger.BROKEN
    if running or completed:
        return FlowTrigger.BEGUN
    return FlowTrigger.STOPPED if terminated else None


# --- The status
# Source: Volcano `getAllJobStatus`.

LISTED: Final = {
    "Pending": "pendingJobs",
    "Running": "runningJobs",
    "Failed": "failedJobs",
    "Completed": "completedJobs",
    "Terminated": "terminatedJobs",
}
_KNOWN: Final = (*LISTED, "Completing", "Terminating")
"""Known phases; the last two stand in no list."""


def phase_of(job: Object) -> str:
    """Return the phase of a Job; "" before its controller has seen it."""
    return str(section(section(job, "status"), "state").get("phase") or "")


def by_phase(jobs: Sequence[Object]) -> dict[str, list[str]]:
    """Return names of jobs by their phase."""
    found: dict[str, list[str]] = {}
    for job in jobs:
        found.setdefault(phase_of(job), []).append(job["metadata"]["name"])
    return found


def flow_status(flow: Object, jobs: Sequence[Object], phase: str, now: float) -> Object:
    """Return the status of a flow in the phase given."""
    old, names = section(flow, "status"), by_phase(jobs)
    status: Object = {field: names[known] for known, field in LISTED.items() if known in names}
    if odd := [name for known, listed in names.items() if known not in _KNOWN for name in listed]:
        # Spelt so in Volcano's api. A Job that is Restarting, Aborting or Aborted is among them (getAllJobStatus).
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
    """Return one entry for each phase that was seen, with its time."""
    if before and before[-1].get("state") == phase:
        return before
    if not before and not phase:
        return []
    # the phase before ends as the new one is seen
    ended = [*before[:-1], {**before[-1], "endTimestamp": stamp}] if before else []
    return [*ended, {"startTimestamp": stamp, "state": phase}]


REPORTER: Final = "vc-controller-manager"
USER: Final = "workload-controller"
TEMPLATE: Final = "JobTemplate"
JOB: Final = "Job"
FOLLOWS_DELETIONS: Final = "flows-follow-deletions"
TERMINATED_FAILS: Final = "terminated-jobs-fail-flows"
BY_TEMPLATE: Final = "volcano.sh/createdByJobTemplate"
BY_FLOW: Final = "volcano.sh/createdByJobFlow"
THINK: Final = "pumice.dev/think-time"
API_VERSION: Final = "flow.volcano.sh/v1alpha1"


_SUMMARY: Final = "Jobs in their turn; phases and words are Volcano v1.15.1's"


class JobFlowRule(OwnerRule):
    """Rule of JobFlows: Jobs from templates, each made when those that it depends on are done."""

    summary = _SUMMARY
    owner = "JobFlow"
    owner_type = (API_VERSION, "JobFlow")
    children = (JOB,)
    others = (TEMPLATE,)
    reporter = REPORTER
    user = USER

    def __init__(self, fixes: Callable[[], Collection[str]] = tuple) -> None:
        self._fixes = fixes
        self._said: dict[str, set[str]] = {}
        self._heard: set[str] = set()

    def forget(self, mark: str) -> None:
        """Forget a removed owner."""
        self._said.pop(mark, None)
        self._heard.discard(mark)

    def owner_changed(self, mark: str, old: Object | None, new: Object) -> bool:
        """Note that a flow has come, or has changed."""
        if old is None:
            self._heard.add(mark)
        return True

    def child_changed(self, mark: str, name: ChildName, old: Object | None, new: Object | None) -> bool:
        """Note that a Job of a flow has come, has changed or has gone: Volcano's controller follows no deletions."""
        if old is not None and new is not None:
            self._heard.add(mark)
        return new is not None or FOLLOWS_DELETIONS in self._fixes()

    def other_changed(self, owner: Object, kind: str, other: Object, *, fresh: bool) -> bool:
        """Look again when a template has come: Volcano tries a missing one again and again."""
        return fresh

    def made_later(self, owner: Object, exists: Callable[[str, str], bool]) -> Iterator[str]:
        """Yield the Jobs that depend on others, and those whose template does not exist; a flow without a name owns
        none.
        """
        for each in section(owner, "spec").get("flows") or ():
            name = each.get("name") or ""
            if not name or exists(JOB, job_name(owner, name)):
                continue
            targets: list[str] = section(each, "dependsOn").get("targets") or []
            if not exists(TEMPLATE, name):
                yield f"JobTemplate {name} is not among the objects: no Job is made of it"
            elif targets:
                before = " and ".join(targets)
                yield f"Job {job_name(owner, name)} is made when those of {before} are Completed (dependsOn)"

    def work(self, family: OwnFamily, now: float) -> Agenda:
        """Return the requests for an owner that is not being deleted."""
        flow, jobs, agenda = family.owner, family.of(JOB), Agenda()
        self._tell_of(agenda, family, now)
        phase = _phase(flow)
        if phase in (FlowPhase.TERMINATING, FlowPhase.FAILED):
            return agenda
        if phase is FlowPhase.SUCCEED and section(flow, "spec").get("jobRetainPolicy") == "delete":
            agenda.requests += [_removal(job) for job in jobs if not is_leaving(job)]
            return agenda
        missing = self._deploy(agenda, family, now)
        # as in Volcano the status is not written before the template exists
        if missing:
            self._say_missing(agenda, flow, missing, now)
            return agenda
        flows = len(section(flow, "spec").get("flows") or ())
        trigger = trigger_of(by_phase(jobs), flows, phase, terminated_fails=TERMINATED_FAILS in self._fixes())
        after = phase if trigger is None else FLOW_LIFE.after(phase, trigger)
        status = flow_status(flow, jobs, after.value, now)
        if patch := diff_patch(section(flow, "status"), status):
            meta = flow["metadata"]
            agenda.requests.append(UpdateStatus("JobFlow", meta["namespace"], meta["name"], pack(patch), user=USER))
        return agenda

    def _deploy(self, agenda: Agenda, family: OwnFamily, now: float) -> str:
        """Make the jobs that are due, in the order of the flows. Return the first template that does not exist."""
        flow, jobs = family.owner, {job["metadata"]["name"]: job for job in family.of(JOB)}
        made = self._said[flow["metadata"]["uid"]]
        anew = self._makes_anew(flow)
        for each in section(flow, "spec").get("flows") or ():
            name = job_name(flow, each["name"])
            if name in jobs or (name in made and not anew):
                continue
            targets: list[str] = section(each, "dependsOn").get("targets") or []
            before = [jobs.get(job_name(flow, target)) for target in targets]
            # Only Completed counts: behind a Job that was Terminated or has Failed, the others wait for ever (Volcano's
            # judge).
            if not all(job is not None and phase_of(job) == "Completed" for job in before):
                continue
            template = family.world[TEMPLATE].get((flow["metadata"]["namespace"], each["name"]))
            if template is None:
                # Later flows wait, too, though their templates exist: deployJob ends with the first error.
                return str(each["name"])
            due = max((over_at(job) for job in before if job is not None), default=0.0) + think_s(template)
            if due > now:
                agenda.no_later_than(due)
            else:
                made.discard(name)
                agenda.new.append(job_of(flow, template))
        return ""

    def _makes_anew(self, flow: Object) -> bool:
        """Return whether Jobs that were made and are gone are made once more, also in a flow that has succeeded:
        syncJobFlow does so, whenever another Job of the flow has changed.
        """
        if FOLLOWS_DELETIONS in self._fixes():
            return _phase(flow) is not FlowPhase.SUCCEED
        uid = flow["metadata"]["uid"]
        anew = uid in self._heard
        self._heard.discard(uid)
        return anew

    def _tell_of(self, agenda: Agenda, family: OwnFamily, now: float) -> None:
        """Report each new Job once; those in the status were reported before."""
        flow = family.owner
        said = self._said.setdefault(flow["metadata"]["uid"], _known(flow))
        for job in family.of(JOB):
            name = job["metadata"]["name"]
            if name not in said:
                said.add(name)
                made = event(flow, "Created", f"create a job named {name}!", now, source=REPORTER)
                agenda.requests.append(Create(pack(made), user=USER))

    def _say_missing(self, agenda: Agenda, flow: Object, template: str, now: float) -> None:
        said = self._said[flow["metadata"]["uid"]]
        if f"template {template}" in said:
            return
        said.add(f"template {template}")
        name = flow["metadata"]["name"]
        why = f'sync jobflow {name} failed for jobtemplate.flow.volcano.sh "{template}" not found'
        text = f"SyncJobFlow JobFlow failed for {why}, event is OutOfSync, action is SyncJobFlow"
        made = event(flow, "SyncJobFlow", text, now, source=REPORTER, warning=True)
        agenda.requests.append(Create(pack(made), user=USER))


class JobTemplateRule(OwnerRule):
    """Rule of JobTemplates: the stored list of Jobs that were made from each."""

    summary = _SUMMARY
    owner = TEMPLATE
    owner_type = (API_VERSION, TEMPLATE)
    children = ()
    others = (JOB,)
    reporter = REPORTER
    user = USER

    def owner_changed(self, mark: str, old: Object | None, new: Object) -> bool:
        """Look at a template that has come."""
        return old is None

    def other_changed(self, owner: Object, kind: str, other: Object, *, fresh: bool) -> bool:
        """Look again when a Job has come; one that has gone stays in the list until then (jobtemplate's addJob)."""
        return fresh

    def work(self, family: OwnFamily, now: float) -> Agenda:
        """Return the requests for an owner that is not being deleted. A list that would become empty stays."""
        meta, agenda = family.owner["metadata"], Agenda()
        mark = f"{meta['namespace']}.{meta['name']}"
        names = [
            name
            for (namespace, name), job in sorted(family.world[JOB].items())
            if namespace == meta["namespace"] and text_map(job["metadata"].get("labels")).get(BY_TEMPLATE) == mark
        ]
        status = {**section(family.owner, "status"), "jobDependsOnList": names}
        # syncJobTemplate returns before its write where no Job is left.
        if names and (patch := diff_patch(section(family.owner, "status"), status)):
            agenda.requests.append(UpdateStatus(TEMPLATE, meta["namespace"], meta["name"], pack(patch), user=USER))
        return agenda


def think_s(template: Object) -> float:
    """Return how long a user thinks between the end of the Jobs that this one depends on and its submission: traces say
    so by an annotation. 0 without one.
    """
    return duration_s(text_map(template["metadata"].get("annotations")).get(THINK, "")) or 0.0


def over_at(job: Object) -> float:
    """Return when a Job came into its phase; 0 where it does not say."""
    return parse_time(section(section(job, "status"), "state").get("lastTransitionTime"))


def job_name(flow: Object, template: str) -> str:
    """Return the name of the Job that a flow makes of a template."""
    return f"{flow['metadata']['name']}-{template}"


def job_of(flow: Object, template: Object) -> Object:
    """Return the Job that a flow makes of a template."""
    meta, name = flow["metadata"], template["metadata"]["name"]
    marks = {BY_TEMPLATE: f"{meta['namespace']}.{name}", BY_FLOW: f"{meta['namespace']}.{meta['name']}"}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": JOB,
        "metadata": {
            "name": job_name(flow, name),
            "namespace": meta["namespace"],
            "labels": dict(marks),
            "annotations": dict(marks),
            "ownerReferences": [reference(flow)],
        },
        "spec": section(template, "spec"),
    }


def _phase(flow: Object) -> FlowPhase:
    phase = section(section(flow, "status"), "state").get("phase") or FlowPhase.PENDING.value
    # An unknown phase is left alone, as Terminating is: NewState in jobflow/state/factory.go has no state for it.
    return next((each for each in FlowPhase if each.value == phase), FlowPhase.TERMINATING)


def _known(flow: Object) -> set[str]:
    listed: list[Object] = section(flow, "status").get("jobStatusList") or []
    return {str(each.get("name")) for each in listed}


def _removal(job: Object) -> Delete:
    meta = job["metadata"]
    return Delete(JOB, meta["namespace"], meta["name"], uid=meta["uid"], user=USER)
