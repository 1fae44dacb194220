# SPDX-License-Identifier: Apache-2.0
"""The account of one pod or job: state, reason, counts that add up, one sentence, and remedies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypedDict

import msgspec
from msgspec import field

from pumice.cluster.controllers.unserved import SCHEDULER
from pumice.config.errors import RequestError
from pumice.core.default_scheduler.profile import NAME as DEFAULT_SCHEDULER
from pumice.core.life.task import TaskStatus
from pumice.core.messages.decisions import Bind, CycleResult, Evict
from pumice.core.objects.metadata import Object
from pumice.core.objects.pod import Task
from pumice.core.plugins import given_cards
from pumice.core.session.fit import UNSCHEDULABLE
from pumice.core.session.trail.records import FITS, Election, Ending, Look
from pumice.core.state.view import View
from pumice.core.state.volumes import volume_rules
from pumice.questions.adviser.reasons import WaitReason
from pumice.questions.explain.ended import ENDS
from pumice.questions.explain.refused import RefusedBind, refused_among
from pumice.questions.explain.scene import Scene, jobs_of, near, pods_of
from pumice.questions.explain.steps import HOPES, steps_of, undone
from pumice.questions.explain.watch import Subjects, Watched, watch_cycle, watch_other, watched_by_other
from pumice.questions.oneshot.supposing import supposed
from pumice.questions.replay.agreement import differences
from pumice.questions.replay.compare import CycleDifference, compare
from pumice.results import Result
from pumice.storage.history import RecordedCycle
from pumice.units import counted

if TYPE_CHECKING:
    from pumice.questions.explain.advice.advise import Advice

# --- Placements and evictions


def of_other(pod: str, task: Task) -> tuple[str, str]:
    """Return the reason of a pod that is not Volcano's; its own scheduler states it."""
    reason, message = task.condition or ("Waiting", "it has not looked at the pod yet")
    return reason, f"{pod} is {task.scheduler}'s: {message}"


def placed(pod: str, node: str, look: Look | None) -> str:
    """Return where a pod was placed, and why there, as far as the cycle was watched."""
    if look is None:
        return f"{pod} was placed on {node}"
    if look.nominated == node:
        return f"{pod} was placed on {node}: it was nominated, for room had been made there; no other node was asked"
    totals, fitting = look.totals(), look.by_reason().get(FITS, 0)
    nodes = counted(look.looked_at, "node") + (" that were looked at" if look.looked_at < look.nodes else "")
    if node not in totals and len(look.fitting) == 1:
        fit = "fit, one of them now" if fitting > 1 else "fits"
        return f"{pod} was placed on {node}: {fitting} of {nodes} {fit}, and a single one is not scored"
    if node not in totals:
        return f"{pod} was placed on {node}, one of {fitting} of {nodes} that could take it"
    best = sum(total == totals[node] for total in totals.values())
    among = f", the first by name of {best} with that score" if best > 1 else ""
    return f"{pod} was placed on {node}: {fitting} of {nodes} fit, it scored {totals[node]:g}{among}"


def evicted(pod: str, evict: Evict) -> str:
    """Describe an eviction: from which node, by which action and for which job."""
    room = f" to make room for {evict.preemptor}" if evict.preemptor else ""
    score = f", score {evict.score:g}" if evict.score else ""
    return f"{pod} was evicted from {evict.node} by {evict.action or 'the scheduler'}{room}: {evict.reason}{score}"


NOTHING_CHANGED: Final = "which changed nothing about it"
PLACED: Final = "Placed"
BEST: Final = 3
"""Number of the best nodes that are named with their scores."""


class Helps(TypedDict):
    """Changes that help together: `fit`: so many pods of the job get a node then, `of` so many; `alone`: with each
    change alone. `evicted`: so many others are evicted for it. `least`: one less of any was tried, and fewer pods fit.
    """

    changes: list[str]
    fit: int
    alone: list[int]
    of: int
    admitted: bool
    evicted: int
    least: bool


class Tried(TypedDict, total=False):
    """Changes that were tried; empty unless advice was requested. `remark`: why there is not more."""

    helps: list[Helps]
    remark: str


class VictimBallot(TypedDict):
    """Vote of one plugin of a tier on an evicted pod, and its number of votes over all candidates."""

    plugin: str
    tier: int
    vote: str
    gave: int
    kept: int
    abstained: int


class Votes(TypedDict, total=False):
    """Choice of an evicted pod: the plugins and their tier, the number of candidates, and the preemptor."""

    point: str
    preemptor: str
    candidates: int
    victims: int
    tier: int
    ballots: list[VictimBallot]


class StepsTold(TypedDict):
    """Steps of one action for the job: see `ActionSteps`."""

    action: str
    stopped: str
    steps: list[str]


class EndingTold(TypedDict):
    """Point where an action ended for the job or one of its tasks: see `Ended`."""

    action: str
    who: str
    ending: str
    detail: str
    node: str
    tasks: dict[str, int]
    minimum: int
    held: dict[str, float]


class JobTold(TypedDict, total=False):
    """The job as the cycle found it: see `JobLook`; null without a job."""

    name: str
    phase: str
    queue: str
    queue_state: str
    min_member: int
    tasks: dict[str, int]
    valid: str
    admission: dict[str, str]
    remark: str
    endings: list[EndingTold]
    short: str
    steps: list[StepsTold]
    strangers: dict[str, int]
    confined: str
    rooms: dict[str, int]
    obstacles: dict[str, str]
    passed_over: str


class DifferenceTold(TypedDict, total=False):
    """The first decision that came out differently: see `CycleDifference`; null without one."""

    cycle: int
    task: str
    recorded: Object | None
    decided: Object | None


def difference_told(found: CycleDifference) -> DifferenceTold:
    """Return it as it is printed."""
    return {"cycle": found.cycle, "task": found.task, "recorded": found.recorded, "decided": found.decided}


class NotFoundError(RequestError):
    """The cycle did not know the object."""

    code = 404
    reason = "NotFound"


class Account(Result, tag="explain/1"):
    """Account for a reader: `nodes` adds up to all nodes; `plugins` gives each plugin's refused nodes and scores.

    `unblock`: what was tried and found to help, in sentences; `tried`: the same to compute with, and why there is not
    more. `votes`: of an evicted pod, what each plugin that was asked said when it was chosen, tier by tier; `job`: its
    job as the cycle found it. `differs`: the first decision of a recorded cycle that came out otherwise now; then what
    the account says is not what happened. `observed`: the cycle was another cluster's, and `differs` is about the pods
    asked about alone. `cards`: by node, of a pod that was bound the cards that it is given, of one that was refused for
    want of cards a sentence for each card, what speaks against it. `supposed`: what was not asked of processes outside,
    in sentences. `refused`: by pod, the bind that the api refused last (see `RefusedBind`). `wait`: the whole reason,
    where it waits; then `reason` is its code and `class` its class, and `alias` another word for it, which the pod's
    condition has.
    """

    kind: str
    name: str
    cycle: int
    state: str
    reason: str = ""
    message: str = ""
    nodes: dict[str, int] = field(default_factory=dict[str, int])
    plugins: dict[str, Object] = field(default_factory=dict[str, Object])
    unblock: list[str] = field(default_factory=list[str])
    tried: Tried = field(default_factory=Tried)
    tasks: dict[str, str] = field(default_factory=dict[str, str])
    votes: Votes = field(default_factory=Votes)
    job: JobTold = field(default_factory=JobTold)
    differs: DifferenceTold = field(default_factory=DifferenceTold)
    observed: bool = False
    cards: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])
    supposed: list[str] = field(default_factory=list[str])
    refused: dict[str, RefusedBind] = field(default_factory=dict[str, RefusedBind])
    wait_class: str = field(name="class", default="")
    alias: str = ""
    wait: WaitReason | None = None

    def take(self, advice: Advice) -> None:
        """Add the changes that were tried."""
        self.unblock = advice.sentences
        self.tried = {"helps": advice.data, "remark": advice.remark}
        self.supposed = list(dict.fromkeys([*self.supposed, *advice.supposed]))

    def add_cause(self, state: str, reason: str, message: str) -> None:
        """Add the reason that the job's controller gives, where the job has ended or has no pods."""
        if state in ENDS:
            past = f"; in cycle {self.cycle}: {self.message}" if self.message else ""
            self.state, self.reason, self.message = state, reason, message + past
        elif not self.tasks:
            self.reason, self.message = reason, f"{message}; {self.message}" if self.message else message

    def add_refused(self, refused: Mapping[str, RefusedBind]) -> None:
        """Add failed binds. Other waiting pods count first; a found node is then not news."""
        if not refused:
            return
        pod, bind = next(iter(refused.items()))
        who = "" if self.kind == "pod" else f"{pod}: "
        more = f"; so were the binds of {len(refused) - 1} more of its pods" if len(refused) > 1 else ""
        sentence = f"{who}{bind.sentence}{more}"
        if self.state == "Pending" and self.message:
            self.message = f"{self.message}; {sentence}"
        else:
            again = f"; {self.message}" if self.reason != PLACED else ""
            self.state, self.message = "Pending", sentence + again
            self.set_wait(bind.reason("" if self.kind == "pod" else pod))
        self.refused = dict(refused)

    def set_wait(self, wait: WaitReason) -> None:
        """Set the reason for which it waits; an earlier, different word stays as an alias."""
        self.alias = self.reason if self.reason not in (PLACED, wait.code) else ""
        self.reason, self.wait_class, self.wait = wait.code, wait.wait_class, wait


def account_of(scene: Scene, kind: str, name: str) -> Account:
    """Decide the cycle, and return its result for the pod, or for the pods of the job. Raises NotFoundError."""
    view, cycle = scene.view, scene.clock.cycle
    jobs = jobs_of(view, kind, name)
    pods = pods_of(view, kind, name, jobs)
    if not pods and not jobs:
        problem = f"cycle {cycle} knew no {kind} {name!r}" if scene.recorded else f"no {kind} {name!r}"
        raise NotFoundError(problem + near(view, kind, name))
    asked = Subjects(frozenset(pods), frozenset(jobs))
    ignored = scene.options.ignored_provisioners if scene.options else ()
    snapshot = view.snapshot(volume_rules(scene.config, ignored))
    ask = scene.ask()
    cycle_of = snapshot, scene.config, scene.clock, scene.carry, asked
    watched = watch_other(*cycle_of) if scene.scheduler else watch_cycle(view, *cycle_of, scene.options, ask)
    tasks = {pod: watched.trail.statuses.get(pod) or _as_before(view, pod) for pod in pods}
    if scene.recorded is None and _waits_for_other(view, pods, tasks):
        watched = watched_by_other(scene, watched, asked)
        tasks = {pod: watched.trail.statuses.get(pod) or _as_before(view, pod) for pod in pods}
    told = _worth_telling(pods, tasks, watched)
    account = Account(kind, name, cycle, tasks.get(told, ""), tasks=tasks, supposed=supposed(ask, scene.config))
    if told:
        _tell(account, told, watched, view)
    _tell_job(account, watched, scene)
    _tell_wait(account, told, watched)
    account.supposed += watched.result.report.troubles.values()
    if scene.recorded is None:
        _say_would(account, tasks.get(told, account.state))
    else:
        account.observed = scene.recorded.record.observed
        difference = _difference(scene.recorded, watched.result, pods)
        account.differs = DifferenceTold() if difference is None else difference_told(difference)
    account.add_refused(refused_among(view, pods, scene.refused))
    return account


def _waits_for_other(view: View, pods: Sequence[str], tasks: Mapping[str, str]) -> bool:
    """Return whether one of the pods waits for Kubernetes' own scheduler."""
    return any(tasks[pod] == "Pending" and view.tasks.by_key[pod].scheduler == DEFAULT_SCHEDULER for pod in pods)


def _as_before(view: View, pod: str) -> str:
    """Return the account of a pod that no session sees, since it has ended and its PodGroup is gone."""
    return TaskStatus(int(view.tasks.status[view.tasks.by_key[pod].row])).label


def _difference(recorded: RecordedCycle, result: CycleResult, pods: Sequence[str]) -> CycleDifference | None:
    if not recorded.record.observed:
        return compare(recorded, result)
    return next((each for each in differences(recorded, result) if each.task in pods), None)


def is_waiting(view: View, kind: str, name: str) -> bool:
    """Return whether the pod, or a pod of the job, has no node and none is on its way."""
    tasks = (view.tasks.by_key[pod] for pod in pods_of(view, kind, name, jobs_of(view, kind, name)))
    return any(view.tasks.status[task.row] == TaskStatus.PENDING for task in tasks)


def _worth_telling(pods: list[str], tasks: dict[str, str], watched: Watched) -> str:
    """Return one pod of many: one that waits, else one that the cycle decided about, else the first."""
    decisions: tuple[Bind | Evict, ...] = (*watched.result.evicts, *watched.result.binds)
    decided = {f"{one.namespace}/{one.name}" for one in decisions}
    waiting = (pod for pod in pods if tasks[pod] == "Pending")
    unplaced = (pod for pod in pods if pod in watched.reasons.pods)
    return (
        next(waiting, None)
        or next(unplaced, None)
        or next((pod for pod in pods if pod in decided), pods[0] if pods else "")
    )


def _say_would(account: Account, state: str) -> None:
    """Word the decisions as future ones: none has been carried out."""
    account.state = state
    for was in ("was placed on", "was evicted from"):
        account.message = account.message.replace(was, f"would be {was.split()[1]} {was.split()[2]}", 1)


def _tell_job(account: Account, watched: Watched, scene: Scene) -> None:
    """Add the job's own reason where its pods have none, or where it has no pods."""
    look = next(iter(watched.jobs.values()), None)
    if look is None:
        return
    job = scene.view.jobs.by_key[look.name]
    steps = steps_of(scene.view, watched, job, scene.config.actions)
    look.steps = steps
    account.message += undone(steps) if HOPES in account.message else ""
    account.message += f"; {look.confined}" if look.confined and account.state == "Pending" else ""
    account.message += f"; {look.passed_over}" if look.passed_over and account.message else ""
    account.job = msgspec.convert(msgspec.to_builtins(look), JobTold)
    account.state = account.state or look.phase or "Pending"
    for obstacle in look.obstacles.values():  # it is stated once, as the reason
        account.message = account.message.replace(f" ({obstacle})", "")
    if not account.tasks:
        account.message = look.remark or ("" if look.name in watched.reasons.jobs else f"{look.name} is {look.phase}")


def _tell_wait(account: Account, told: str, watched: Watched) -> None:
    """Give what waits the reason that `pumice queue` and `pumice decide` give: of a job its own, of a pod that of the
    pod.
    """
    pods, jobs = watched.reasons.pods, watched.reasons.jobs
    of_job = next((jobs[name] for name in watched.jobs if name in jobs), None)
    wait = pods.get(told) if account.kind == "pod" else of_job or pods.get(told)
    if wait is None:
        return
    account.set_wait(wait)
    unsaid = f"{told} was Pending before this cycle, {NOTHING_CHANGED}"
    account.message = wait.before(account.message.replace(unsaid, "").removeprefix("; "))


def _tell(account: Account, pod: str, watched: Watched, view: View) -> None:
    look, result, task = watched.look(pod), watched.result, view.tasks.by_key[pod]
    _count_nodes(account, look)
    bind = next((one for one in result.binds if f"{one.namespace}/{one.name}" == pod), None)
    evict = next((one for one in result.evicts if f"{one.namespace}/{one.name}" == pod), None)
    pending = result.report.pending.get(pod)
    if bind is not None:
        account.state, account.reason = "Bound", PLACED
        account.message = placed(pod, bind.node, look)
        given = given_cards(bind.annotations)
        account.cards = {bind.node: given} if given else {}
        _score(account, bind.node, look)
    elif evict is not None:
        account.state, account.reason = "Evicted", evict.reason or evict.action
        account.message = evicted(pod, evict)
        account.plugins[evict.action or "evict"] = {"score": evict.score, "preemptor": evict.preemptor}
        _tell_votes(account, pod, watched.trail.elections.of(pod, evict.preemptor))
    elif pending is not None:
        account.reason, account.message = pending.reason, pending.message
        account.cards = watched.cards.get(pod, {})
        _tell_objection(account, pod, watched)
    elif pod in result.report.pipelined:
        _tell_promised(account, pod, watched, view)
    elif pod in result.report.uncommitted:
        account.reason = "Reserved"
        account.message = f"{pod} had room on {result.report.uncommitted[pod]}, but its gang is not whole"
    else:
        account.message = f"{pod} was {account.state} before this cycle, {NOTHING_CHANGED}"
        if account.state == "Pending" and task.scheduler not in ("", SCHEDULER) and pod not in watched.reasons.pods:
            account.reason, account.message = of_other(pod, task)


def _count_nodes(account: Account, look: Look | None) -> None:
    if look is not None:
        account.nodes = look.by_reason()
        account.plugins = {who: {"refused": count} for who, count in look.by_filter().items()}


def _tell_promised(account: Account, pod: str, watched: Watched, view: View) -> None:
    """Explain future room. Without terminating pods none will come: then the reason is why a pod of the job found no
    node.
    """
    node, status = watched.result.report.pipelined[pod], view.tasks.status
    going = {evict.node for evict in watched.result.evicts}
    here = (task for task in view.tasks.by_key.values() if view.tasks.resides[task.row] == node)
    if node in going or any(status[task.row] == TaskStatus.RELEASING for task in here):
        account.reason = UNSCHEDULABLE
        return
    account.reason, account.message = UNSCHEDULABLE, f"{pod} was promised room on {node}, where no pod leaves"
    ends = watched.trail.of_job(view.tasks.by_key[pod].job)
    stuck = next((each for each in ends if each.ending is Ending.NO_NODE), None)
    look = watched.look(stuck.who) if stuck is not None else None
    if stuck is not None and look is not None:
        _count_nodes(account, look)
        said = ", ".join(f"{count} {reason}" for reason, count in account.nodes.items())
        account.message += f"; {stuck.who} found no node: {said}"


def _tell_objection(account: Account, pod: str, watched: Watched) -> None:
    """Explain nodes that fit while a plugin refused the pod: a lock of the node, or an extender, say."""
    ends = (each for of_job in watched.trail.endings.values() for each in of_job if each.who == pod)
    last = next((each for each in reversed([*ends]) if each.ending is Ending.PLACEMENT_REFUSED), None)
    if last is not None and last.detail:
        said = "; ".join(each for each in (last.detail, watched.locks.get(last.node, ""), account.message) if each)
        account.message = f"its placement on {last.node} was refused: {said}"


def _tell_votes(account: Account, pod: str, election: Election | None) -> None:
    """Add the votes by which the pod was chosen: `gave` + `kept` + `abstained` are all candidates, for every plugin
    that was asked."""
    if election is None:
        return
    candidates, ballots = len(election.candidates), list[VictimBallot]()
    for each in election.opinions:
        vote = "abstains" if each.abstained else "evict" if pod in each.gave else "keep"
        kept, abstained = (0, candidates) if each.abstained else (candidates - len(each.gave), 0)
        said = {"tier": each.tier, "vote": vote, "gave": len(each.gave), "kept": kept}
        ballots.append(
            {
                "plugin": each.plugin,
                "tier": each.tier,
                "vote": vote,
                "gave": len(each.gave),
                "kept": kept,
                "abstained": abstained,
            }
        )
        account.plugins.setdefault(each.plugin, {}).update(said)
    account.votes = {
        "point": election.point,
        "preemptor": election.preemptor,
        "candidates": candidates,
        "victims": len(election.victims),
        "tier": election.tier,
        "ballots": ballots,
    }
    agreed = [each["plugin"] for each in ballots if (each["tier"], each["vote"]) == (election.tier, "evict")]
    if agreed:
        chosen = f"{len(election.victims)} of {candidates} candidates"
        account.message += f"; in tier {election.tier} {' and '.join(agreed)} agreed ({chosen} may be evicted)"


def _score(account: Account, node: str, look: Look | None) -> None:
    if look is None:
        return
    best = sorted(look.totals().items(), key=lambda item: (-item[1], item[0]))[:BEST]
    scores = {name: look.score_of(name) for name in dict.fromkeys([node, *(name for name, _ in best)])}
    for plugin in look.scores:
        named = {name: of_node[plugin] for name, of_node in scores.items() if plugin in of_node}
        account.plugins.setdefault(plugin, {})["scores"] = named
