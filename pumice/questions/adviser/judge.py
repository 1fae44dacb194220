"""Judgement of why a job waits, by the trail of one cycle and the amounts at its end."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from pumice.cluster.controllers.unserved import SERVED
from pumice.core.cycle import tables_later
from pumice.core.default_scheduler.profile import NAME as DEFAULT_SCHEDULER
from pumice.core.life.task import TaskStatus
from pumice.core.messages.queue_tables import readable
from pumice.core.objects.metadata import key_of
from pumice.core.objects.pod import GROUP_NAME, stranger_of
from pumice.core.plugins import record_of
from pumice.core.plugins.plugin import Limit
from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.trail.records import Ending
from pumice.questions.adviser.classes import CLASS_OF, WaitClass, WaitReason
from pumice.questions.adviser.free_capacity import NodeRoom
from pumice.questions.explain.refused import standing_locks
from pumice.questions.explain.room_left import KEYS, amounts, at_refusal, of_namespace
from pumice.units import amount, figure

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Mapping

    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session
    from pumice.core.session.trail.records import Ended
    from pumice.core.session.trail.trail import Trail
    from pumice.core.state.dimensions import FloatArray
    from pumice.core.state.jobs import Job
    from pumice.core.state.view import View
    from pumice.questions.explain.room_left import Amounts

Gauges = dict[str, dict[str, float]]
PLACING: Final = ("allocate", "backfill")
LIMITED: Final = {
    Limit.QUEUE: WaitReason.QUEUE_CAPABILITY,
    Limit.NAMESPACE: WaitReason.NAMESPACE_QUOTA,
    Limit.CLUSTER: WaitReason.OVERCOMMIT,
    None: WaitReason.NOT_ADMITTED,
}
"""By whose limit the plugin goes that does not admit a job."""
NEVER: Final = (WaitReason.LARGER_THAN_CLUSTER, WaitReason.LARGER_THAN_ANY_NODE, WaitReason.NO_NODE_ALLOWED)
"""Reasons that not even an empty cluster would remove."""
WAITING: Final = (TaskStatus.PENDING, TaskStatus.PIPELINED, TaskStatus.ALLOCATED)
"""Statuses of tasks without a node when a cycle is over."""
OF_NODES: Final = (WaitClass.FRAGMENTED, WaitClass.NO_CAPACITY, WaitClass.CONSTRAINT)
NAMED: Final = 3
SHORT_OF_PODS: Final = ("NotEnoughTasks", "NotEnoughPodsOfTask")


class WaitFinding(NamedTuple):
    """`because`: a sentence for people; programs go by `reason`."""

    reason: WaitReason
    because: str

    @property
    def wait_class(self) -> WaitClass:
        """Return the class of the reason."""
        return CLASS_OF[self.reason]


class JudgeOpening(NamedTuple):
    """The state when a session opened. `room`: what was free on each node, float64 [dimension, node]; `gauges`:
    what plugins said of each queue; `held`: what the jobs of each queue had on nodes, float64 [dimension, queue].
    """

    room: FloatArray
    gauges: Gauges
    held: FloatArray

    @classmethod
    def of(cls, session: Session) -> JudgeOpening:
        """Read it from a session in which no action has run yet."""
        gauges = readable(tables_later(session)()).by_queue()
        return cls(session.nodes.future.copy(), gauges, held_by_queue(session))


class WaitFindings(NamedTuple):
    """The reasons for which jobs and pods wait after one cycle, by "namespace/name"."""

    jobs: dict[str, WaitFinding]
    pods: dict[str, WaitFinding]


class Judge:
    """The one place that says what a job waits for: asked between the last action and the close of the session."""

    def __init__(self, session: Session, trail: Trail, opening: JudgeOpening) -> None:
        self._session, self._trail = session, trail
        self._gauges, self._held = opening.gauges, opening.held
        self._room = NodeRoom(session, opening.room)

    def findings(self, view: View, jobs: Container[str]) -> WaitFindings:
        """Judge these jobs, as far as they wait, and pods that belong to no job."""
        found = WaitFindings({}, {})
        for job in self._session.jobs.in_order:
            waiting = self._waiting(job) if job.key in jobs else []
            if waiting or (job.key in jobs and not job.tasks):
                finding = found.jobs[job.key] = self.find(job)
                needed = {task.template.number for task in self.needed(job)}
                found.pods.update({task.key: self._of_pod(task, finding, needed) for task in waiting})
        known = {job.key for job in self._session.jobs.in_order}
        for task in view.tasks.by_key.values():
            ours = task.job not in known and task.scheduler != DEFAULT_SCHEDULER  # which has cycles of its own
            if ours and view.tasks.status[task.row] == TaskStatus.PENDING:
                found.pods[task.key] = outsider(view, task)
        return found

    def _waiting(self, job: Job) -> list[Task]:
        return [task for status in WAITING for task in self._session.jobs.tasks_in(job, status)]

    def _of_pod(self, task: Task, finding: WaitFinding, needed: Collection[int]) -> WaitFinding:
        """A pod waits for what its job does, unless it is held back itself, or other nodes would do for it."""
        if task.gated:
            gates = ", ".join(task.template.scheduling_gates)
            return WaitFinding(WaitReason.GATED, f"waits for its scheduling gates: {gates}")
        of_nodes = finding.wait_class in OF_NODES and finding.reason is not WaitReason.TOPOLOGY
        pending = self._session.jobs.status[task.row] == TaskStatus.PENDING
        if of_nodes and pending and needed and task.template.number not in needed:
            return WaitFinding(*self._room.verdict([task]))
        return finding

    @cached_property
    def _strangers(self) -> Counter[tuple[str, str]]:
        """Count the pods of a job's PodGroup that ask for schedulers which do not run here, by scheduler."""
        tasks = (task for task in self._session.snapshot.tasks.handles if task is not None)
        return Counter((job, task.scheduler) for task in tasks if (job := stranger_of(task)))

    def find(self, job: Job) -> WaitFinding:
        """Return the reason for which a job of the session waits."""
        queue, jobs = self._session.queue_of(job), self._session.jobs
        strangers = {} if job.tasks else {who: count for (of, who), count in self._strangers.items() if of == job.key}
        if strangers:
            return WaitFinding(WaitReason.NO_SCHEDULER, told_of_strangers(strangers))
        if not queue.is_open:
            return unopened(queue.name, queue.state)
        if self._session.fit.obstacles:
            return WaitFinding(WaitReason.QUEUES_UNUSABLE, "; ".join(self._session.fit.obstacles.values()))
        if jobs.is_pending(job):
            return self._unadmitted(job)
        if jobs.counts[TaskStatus.PIPELINED][job.row] and jobs.is_pipelined(job):
            return self._promised(job)
        gates = self._gates(job)
        verdict = self._session.points.job_valid(job)
        if verdict is not None:
            short = verdict.reason in SHORT_OF_PODS
            return WaitFinding(WaitReason.PODS_MISSING if short else WaitReason.NOT_VALID, verdict.message)
        if gates:
            return WaitFinding(WaitReason.GATED, gates)
        return self._unplaced(job)

    # --- before any node is asked

    def _unadmitted(self, job: Job) -> WaitFinding:
        ended = [each for each in self._trail.of_job(job.key) if each.action == "enqueue"]
        if not ended:
            return WaitFinding(WaitReason.NOT_LOOKED_AT, "no action of the configuration admits jobs")
        if ended[-1].ending is Ending.NO_TURN:
            return WaitFinding(
                WaitReason.BEHIND_OTHERS, f"another job of queue {job.pod_group.queue} is to be admitted first"
            )
        plugin = ended[-1].detail
        limit = record_of(plugin).limits
        asked = amounts(job.pod_group.min_resources) if job.pod_group.min_resources is not None else {}
        larger = "" if self._limits(job, asked, self._gauges) else self._beyond_the_cluster(asked)
        if larger and limit in (Limit.QUEUE, Limit.CLUSTER):
            return WaitFinding(WaitReason.LARGER_THAN_CLUSTER, f"{plugin} does not admit it: {larger}")
        told = (of_namespace if limit is Limit.NAMESPACE else at_refusal)(self._session, job)
        remark = told or self._session.fit.remarks.get(job.row, "")
        return WaitFinding(LIMITED[limit], f"{plugin} does not admit it" + (remark and f": {remark}"))

    def _limits(self, job: Job, asked: Amounts, gauges: Gauges) -> str:
        """Return the queue, the job's own or one above it, whose limit is below the request, and the resource."""
        whole = amounts(self._session.total)
        for queue in self._line(job.pod_group.queue):
            told = _beyond(gauges.get(queue, {}), "real_capacity", asked, whole)
            if told:
                return f"queue {queue} may have no more: {told}"
        return ""

    def _beyond_the_cluster(self, asked: Amounts) -> str:
        whole = amounts(self._session.total)
        short = [
            f"asks {amount(name, value)}, all nodes together have {amount(name, whole.get(name, 0.0))}"
            for name, value in asked.items()
            if name != "pods" and value - whole.get(name, 0.0) >= MIN_RESOURCE
        ]
        return "; ".join(short)

    def _promised(self, job: Job) -> WaitFinding:
        """Return the room to come where pods are leaving."""
        session, promised = self._session, self._session.jobs.tasks_in(job, TaskStatus.PIPELINED)
        going = {evict.node for evict in session.evicts}
        for task in promised:
            row = session.jobs.node[task.row]
            if session.nodes.names[row] in going or session.nodes.releasing[:, row].any():
                return WaitFinding(WaitReason.PROMISED, "it waits for room that is being released")
        return WaitFinding(*self._room.verdict(promised))

    def _gates(self, job: Job) -> str:
        """Return the gates that keep the job below its minimum, or keep all that is left of it."""
        waiting = self._session.jobs.tasks_in(job, TaskStatus.PENDING)
        gated = [task for task in waiting if task.gated]
        if not gated:
            return ""
        free = len(waiting) - len(gated)
        placed = self._session.jobs.ready_count(job) + self._session.jobs.waiting_count(job)
        if free and placed + free >= self._session.jobs.min_member[job.row]:
            return ""
        names = sorted({gate for task in gated for gate in task.template.scheduling_gates})
        return f"{len(gated)} of its pods wait for their scheduling gates: {', '.join(names)}"

    # --- where nodes may have been asked

    def _unplaced(self, job: Job) -> WaitFinding:
        ended = [each for each in self._trail.of_job(job.key) if each.action in PLACING]
        endings = {each.ending for each in ended}
        if Ending.TOPOLOGY_UNFIT in endings:
            return WaitFinding(WaitReason.TOPOLOGY, f"{Ending.TOPOLOGY_UNFIT}: {_detail(ended, Ending.TOPOLOGY_UNFIT)}")
        if Ending.NO_TURN in endings:
            return WaitFinding(
                WaitReason.BEHIND_OTHERS, f"a job of queue {job.pod_group.queue} that comes first is not whole"
            )
        needed = self.needed(job)
        if not needed:
            return WaitFinding(WaitReason.NOT_LOOKED_AT, "nothing of it is to be placed by any action")
        if Ending.QUEUE_OVERUSED in endings or (Ending.QUEUE_HAS_NO_ROOM in endings and Ending.NO_NODE not in endings):
            return self._limited(job, needed)
        if not ended:
            return WaitFinding(WaitReason.NOT_LOOKED_AT, "no action of the configuration places it")
        if refused := self._refused(job, ended):
            return WaitFinding(WaitReason.PLACEMENT_REFUSED, refused)
        reason, told = self._room.verdict(needed)
        if reason is WaitReason.PODS_APART and self._session.topology.is_asked_for(job):
            return WaitFinding(
                WaitReason.TOPOLOGY, "there is room, but not within one domain of the topology it asks for"
            )
        return WaitFinding(reason, told)

    def _refused(self, job: Job, ended: list[Ended]) -> str:
        """Explain a placement that a plugin refused, because of a node's lock or an extender's answer: the end of the
        last pod that was tried.
        """
        last = next((each for each in reversed(ended) if each.who != job.key), None)
        if last is None or last.ending is not Ending.PLACEMENT_REFUSED:
            return ""
        lock = standing_locks(self._session).get(last.node, "")
        said = "; ".join(each for each in (last.detail, lock) if each)
        return f"the placement of {last.who} on {last.node} was refused: {said}"

    def needed(self, job: Job) -> list[Task]:
        """Return the pods that the job needs next: so many as its minimum lacks, one at least, in the order of
        tasks."""
        jobs = self._session.jobs
        waiting = [task for task in jobs.tasks_in(job, TaskStatus.PENDING) if not task.gated]
        lacking = jobs.min_member[job.row] - jobs.ready_count(job) - jobs.waiting_count(job)
        if lacking >= len(waiting):
            return waiting
        in_order = self._session.points.task_order.queue(waiting)
        return [in_order.pop() for _ in range(max(lacking, 1)) if len(in_order)]

    def _limited(self, job: Job, needed: list[Task]) -> WaitFinding:
        """By the most its queue, or one above it, may ever have; by what no node could give it either; else by what the
        queue deserves now.
        """
        names = self._session.dims.names
        asked: Amounts = {}
        for task in needed:
            for dimension, value in task.template.items:
                if value > 0:
                    asked[names[dimension]] = asked.get(names[dimension], 0.0) + value
        gauges = self._gauges_now
        if limits := self._limits(job, asked, gauges):
            return WaitFinding(WaitReason.QUEUE_CAPABILITY, limits)
        reason, told = self._room.verdict(needed)
        if reason in NEVER:
            return WaitFinding(reason, told)
        whole = amounts(self._session.total)
        queue, figures = job.pod_group.queue, gauges.get(job.pod_group.queue, {})
        if share := _beyond(figures, "deserved", asked, whole):
            return WaitFinding(WaitReason.QUEUE_SHARE, f"queue {queue} has what it deserves: {share}")
        if all_there_is := _beyond(figures, "deserved", asked, {}):
            because = f"queue {queue} has no room for it: {all_there_is}; what it may have is the whole cluster"
            keeps = CLASS_OF[reason] is WaitClass.NO_CAPACITY or reason is WaitReason.OTHERS_FIRST
            reason = reason if keeps else WaitReason.IN_USE
            return WaitFinding(reason, because)
        return WaitFinding(reason, told)

    @cached_property
    def _gauges_now(self) -> Gauges:
        """Return the gauges with what the cycle has given to each queue, and so to those above it, and taken from
        them."""
        found = {queue: dict(figures) for queue, figures in self._gauges.items()}
        grown = (held_by_queue(self._session)[: len(self._held)] - self._held).T.tolist()
        for queue, line in zip(self._session.snapshot.queues, grown, strict=True):
            for name in self._line(queue.name):
                figures = found.setdefault(name, {})
                for dimension, more in zip(self._session.dims.names, line, strict=False):
                    key = f"allocated_{KEYS.get(dimension, f'scalar_resources:{dimension}')}"
                    figures[key] = figures.get(key, 0.0) + more
        return found

    def _line(self, queue: str) -> list[str]:
        """Return the queue and those above it."""
        found = [queue]
        while (above := self._session.queues.get(found[-1])) is not None and above.parent not in ("", *found):
            found.append(above.parent)
        return found


def outsider(view: View, task: Task) -> WaitFinding:
    """Judge a pod that is not a task of the session."""
    scheduler, group = task.scheduler, task.annotations.get(GROUP_NAME)
    if scheduler not in ("", *SERVED):
        return WaitFinding(WaitReason.NO_SCHEDULER, nobody_is(scheduler, "the pod asks"))
    if not group:
        _, why = task.condition or ("", "")
        none = f"the pod names no PodGroup (annotation {GROUP_NAME}), and none was made for it"
        return WaitFinding(WaitReason.NO_POD_GROUP, why or none)
    key = key_of(task.namespace, group)
    job = view.jobs.by_key.get(key)
    if job is None or job.spec is None:
        same = sorted(each.namespace for each in view.jobs.by_key.values() if each.spec and each.name == group)
        there = f"; one of that name is in namespace {', '.join(same[:NAMED])}" if same else ""
        return WaitFinding(WaitReason.POD_GROUP_MISSING, f"PodGroup {key} is not among the objects{there}")
    if job.spec.queue not in view.queues:
        return queueless(job.spec.queue)
    return WaitFinding(WaitReason.NOT_LOOKED_AT, f"no action of this cycle looked at PodGroup {key}")


def unopened(queue: str, state: str) -> WaitFinding:
    """Judge a job whose queue is not open."""
    state = state or "not open: its status has no state yet, which a controller gives it"
    return WaitFinding(WaitReason.QUEUE_NOT_OPEN, f"its queue {queue!r} is {state}")


def queueless(queue: str) -> WaitFinding:
    """Judge a job whose queue does not exist."""
    return WaitFinding(WaitReason.QUEUE_MISSING, f"its queue {queue!r} does not exist")


def told_of_strangers(strangers: Mapping[str, int]) -> str:
    """Count the pods of a job that ask for schedulers which do not run here, by scheduler."""
    asks = {1: "asks"}
    return " and ".join(nobody_is(name, f"{n} of its pods {asks.get(n, 'ask')}") for name, n in strangers.items())


def nobody_is(scheduler: str, asking: str) -> str:
    """Say which scheduler does not run here, and how many pods ask for it."""
    return f"no scheduler named {scheduler!r} runs here, for which {asking}"


def held_by_queue(session: Session) -> FloatArray:
    """Return the resources of each queue's jobs on nodes at this moment: float64 [dimension, queue]."""
    return session.jobs.by_queue.sums(session.snapshot.jobs.allocated)


def _detail(ended: list[Ended], ending: Ending) -> str:
    return next(each.detail for each in ended if each.ending is ending)


def _beyond(gauges: Mapping[str, float], limit: str, asked: Amounts, whole: Amounts) -> str:
    """Say for each resource whose limit the queue would exceed: "asks 4 cpu, has 8 of 10, 2 left". A limit that
    is the `whole` cluster is none.
    """
    told: list[str] = []
    for name, value in asked.items():
        key = KEYS.get(name, f"scalar_resources:{name}")
        most = gauges.get(f"{limit}_{key}", inf if limit == "real_capacity" else 0.0)
        has = gauges.get(f"allocated_{key}", 0.0)
        if most < whole.get(name, inf) and has + value - most >= MIN_RESOURCE and name != "pods":
            bare = [figure(name, one) for one in (has, most, most - has)]
            told.append(f"asks {amount(name, value)}, has {bare[0]} of {bare[1]}, {bare[2]} left")
    return "; ".join(told)
