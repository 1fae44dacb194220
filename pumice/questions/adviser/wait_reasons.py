# SPDX-License-Identifier: Apache-2.0
"""Reasons why a job waits, from the trail of one cycle and the amounts at its end."""

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
from pumice.core.plugins.capacity.limits import ROOT
from pumice.core.plugins.plugin import Limit
from pumice.core.resources import MIN_RESOURCE
from pumice.core.session.trail.records import Ending
from pumice.questions.adviser.free_capacity import NodeRoom, holders, name_of
from pumice.questions.adviser.reasons import WaitClass, WaitCode, WaitNumber, WaitReason, said, waits_for
from pumice.questions.explain.refused import standing_locks
from pumice.questions.explain.room_left import KEYS, Shortage, amounts, at_refusal, of_namespace

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Mapping, Sequence

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
    Limit.QUEUE: WaitCode.QUEUE_CAPABILITY,
    Limit.NAMESPACE: WaitCode.NAMESPACE_QUOTA,
    Limit.CLUSTER: WaitCode.OVERCOMMIT,
    None: WaitCode.NOT_ADMITTED,
}
"""By whose limit the plugin goes that does not admit a job."""
NEVER: Final = (WaitCode.LARGER_THAN_CLUSTER, WaitCode.LARGER_THAN_ANY_NODE, WaitCode.NO_NODE_ALLOWED)
"""Reasons that not even an empty cluster would remove."""
WAITING: Final = (TaskStatus.PENDING, TaskStatus.PIPELINED, TaskStatus.ALLOCATED)
"""Statuses of tasks without a node when a cycle is over."""
OF_NODES: Final = (WaitClass.FRAGMENTED, WaitClass.NO_CAPACITY, WaitClass.CONSTRAINT)
NAMED: Final = 3
RELEASING: Final = TaskStatus.RELEASING
SHORT_OF_PODS: Final = ("NotEnoughTasks", "NotEnoughPodsOfTask")


class OpeningState(NamedTuple):
    """The state when a session opened. `room`: free amounts on each node, float64 [dimension, node]; `gauges`: the
    plugins' numbers of each queue; `held`: the amounts of each queue's jobs on nodes, float64 [dimension, queue].
    """

    room: FloatArray
    gauges: Gauges
    held: FloatArray

    @classmethod
    def of(cls, session: Session) -> OpeningState:
        """Read the state of a session in which no action has run yet."""
        gauges = readable(tables_later(session)()).by_queue()
        return cls(session.nodes.future.copy(), gauges, held_by_queue(session))


class WaitReasons(NamedTuple):
    """The reasons for which jobs and pods wait after one cycle, by "namespace/name"."""

    jobs: dict[str, WaitReason]
    pods: dict[str, WaitReason]


class ReasonFinder:
    """Finds the reason of a waiting job, for all commands. Use it after the last action, before the session closes."""

    def __init__(self, session: Session, trail: Trail, opening: OpeningState) -> None:
        self._session, self._trail = session, trail
        self._gauges, self._held = opening.gauges, opening.held
        self._room = NodeRoom(session, opening.room)

    def reasons(self, view: View, jobs: Container[str]) -> WaitReasons:
        """Return the reasons of these jobs, if they wait, and of pods without a job."""
        found = WaitReasons({}, {})
        for job in self._session.jobs.in_order:
            waiting = self._waiting(job) if job.key in jobs else []
            if waiting or (job.key in jobs and not job.tasks):
                wait = found.jobs[job.key] = self.find(job)
                needed = {task.template.number for task in self.needed(job)}
                found.pods.update({task.key: self._of_pod(task, wait, needed) for task in waiting})
        known = {job.key for job in self._session.jobs.in_order}
        for stray in self._session.snapshot.jobs.handles:
            if stray is not None and stray.spec is not None and stray.key in jobs and stray.key not in known:
                found.jobs[stray.key] = queueless(stray.spec.queue)
        # Numbers of a list: asking the column and the enumeration for each task took a fifth of a report's decisions.
        status, pending = view.tasks.status.tolist(), TaskStatus.PENDING.value
        for task in view.tasks.by_key.values():
            if status[task.row] != pending or task.job in known:
                continue
            if task.scheduler != DEFAULT_SCHEDULER:  # which has cycles of its own
                of_job = found.jobs.get(stranger_of(task))
                stranger = of_job is not None and of_job.code is WaitCode.NO_SCHEDULER
                found.pods[task.key] = of_job if of_job is not None and stranger else outsider(view, task)
        return found

    def _waiting(self, job: Job) -> list[Task]:
        return [task for status in WAITING for task in self._session.jobs.tasks_in(job, status)]

    def _of_pod(self, task: Task, wait: WaitReason, needed: Collection[int]) -> WaitReason:
        """Return the reason of a pod: its job's, unless the pod itself is held back, or other nodes would suit it."""
        if task.gated:
            gates = task.template.scheduling_gates
            sentence = f"waits for its scheduling gates: {', '.join(gates)}"
            return waits_for(WaitCode.GATED, sentence, in_the_way=gates)
        of_nodes = wait.wait_class in OF_NODES and wait.code is not WaitCode.TOPOLOGY
        pending = self._session.jobs.status[task.row] == TaskStatus.PENDING
        if of_nodes and pending and needed and task.template.number not in needed:
            return self._room.verdict([task])
        return wait

    @cached_property
    def _strangers(self) -> Counter[tuple[str, str]]:
        """Count the pods of a job's PodGroup that ask for schedulers which do not run here, by scheduler."""
        tasks = (task for task in self._session.snapshot.tasks.handles if task is not None)
        return Counter((job, task.scheduler) for task in tasks if (job := stranger_of(task)))

    def find(self, job: Job) -> WaitReason:
        """Return the reason for which a job of the session waits."""
        queue, jobs = self._session.queue_of(job), self._session.jobs
        strangers = {} if job.tasks else {who: count for (of, who), count in self._strangers.items() if of == job.key}
        if strangers:
            return waits_for(WaitCode.NO_SCHEDULER, told_of_strangers(strangers), f"scheduler {next(iter(strangers))}")
        if not queue.is_open:
            return unopened(queue.name, queue.state)
        if self._session.fit.obstacles:
            return waits_for(WaitCode.QUEUES_UNUSABLE, "; ".join(self._session.fit.obstacles.values()))
        if jobs.is_pending(job):
            return self._unadmitted(job)
        if jobs.counts[TaskStatus.PIPELINED][job.row] and jobs.is_pipelined(job):
            return self._promised(job)
        gated = self._gated(job)
        verdict = self._session.points.job_valid(job)
        if verdict is not None:
            short = verdict.reason in SHORT_OF_PODS
            absent = "" if job.tasks else " (it has no pods)"
            return waits_for(WaitCode.PODS_MISSING if short else WaitCode.NOT_VALID, verdict.message + absent)
        if not job.tasks:
            least = jobs.min_member[job.row]
            return waits_for(WaitCode.PODS_MISSING, f"it has no pods; {least} are needed at least")
        return gated or self._unplaced(job)

    # --- before any node is asked

    def _unadmitted(self, job: Job) -> WaitReason:
        ended = [each for each in self._trail.of_job(job.key) if each.action == "enqueue"]
        if not ended:
            return waits_for(WaitCode.NOT_LOOKED_AT, "no action of the configuration admits jobs")
        if ended[-1].ending is Ending.NO_TURN:
            return self._behind(job, f"another job of queue {job.pod_group.queue} is to be admitted first")
        plugin = ended[-1].detail
        limit = record_of(plugin).limits
        short = (of_namespace if limit is Limit.NAMESPACE else at_refusal)(self._session, job)
        asked = amounts(job.pod_group.min_resources) if job.pod_group.min_resources is not None else {}
        larger = () if self._limits(job, asked, self._gauges) else self._beyond_the_cluster(asked)
        if larger and limit in (Limit.QUEUE, Limit.CLUSTER):
            told = "; ".join(
                f"asks {each.words(each.asked)}, all nodes together have {each.words(each.allowed)}" for each in larger
            )
            told += f" ({short.sentence})" if short.sentence else ""
            return waits_for(WaitCode.LARGER_THAN_CLUSTER, f"{plugin} does not admit it: {told}", "", larger)
        remark = short.sentence or self._session.fit.admission.remarks.get(job.row, "")
        sentence = f"{plugin} does not admit it" + (remark and f": {remark}")
        subject = short.limit or (f"plugin {plugin}" if limit is None else "")
        return waits_for(LIMITED[limit], sentence, subject, short.numbers, self._holders(short))

    def _holders(self, short: Shortage) -> tuple[str, ...]:
        """Return the jobs that hold the most of the amounts missing for a job's admission; of a queue those of that
        queue.
        """
        names = [each.resource for each in short.numbers]
        queue = short.limit.removeprefix("queue ") if short.limit.startswith("queue ") else ""
        return () if short.limit.startswith("quota ") else holders(self._session, names, self._below(queue))

    def _behind(self, job: Job, sentence: str) -> WaitReason:
        """Name the first waiting jobs of its queue that come before it."""
        session, queue = self._session, job.pod_group.queue
        first: Job | None = None
        for each in session.jobs.in_order:
            if (
                each.pod_group.queue != queue
                or each is job
                or not (self._waiting(each) or session.jobs.is_pending(each))
            ):
                continue
            if session.points.job_order.before(each, first or job):
                first = each
        return waits_for(
            WaitCode.BEHIND_OTHERS, sentence, f"queue {queue}", in_the_way=[] if first is None else [name_of(first)]
        )

    def _limits(self, job: Job, asked: Amounts, gauges: Gauges) -> tuple[WaitNumber, ...]:
        """Return what falls short of the limit of the queue, the job's own or the nearest one above it."""
        whole = amounts(self._session.total)
        found = (_beyond(queue, gauges, "real_capacity", asked, whole) for queue in self._line(job.pod_group.queue))
        return next((numbers for numbers in found if numbers), ())

    def _beyond_the_cluster(self, asked: Amounts) -> tuple[WaitNumber, ...]:
        whole = amounts(self._session.total)
        there = ((name, value, whole.get(name, 0.0)) for name, value in asked.items() if name != "pods")
        return tuple(
            WaitNumber.of(name, value, most, most, "all nodes")
            for name, value, most in there
            if value - most >= MIN_RESOURCE
        )

    def _promised(self, job: Job) -> WaitReason:
        """Return the room to come where pods are leaving."""
        session, promised = self._session, self._session.jobs.tasks_in(job, TaskStatus.PIPELINED)
        going = {evict.node: f"{evict.namespace}/{evict.name}" for evict in session.evicts}
        for task in promised:
            row = session.jobs.node[task.row]
            node = session.nodes.names[row]
            if node in going or session.nodes.releasing[:, row].any():
                here = (each for each in session.nodes.tasks_on(row) if session.jobs.status[each.row] == RELEASING)
                leaving = [each.key for each in here] or ([going[node]] if node in going else [])
                sentence = f"it waits for room that is being released on {node}"
                return waits_for(WaitCode.PROMISED, sentence, f"node {node}", in_the_way=leaving[:NAMED])
        return self._room.verdict(promised)

    def _gated(self, job: Job) -> WaitReason | None:
        """Return the gates that keep the job below its minimum, or keep all its remaining pods; None for none."""
        waiting = self._session.jobs.tasks_in(job, TaskStatus.PENDING)
        gated = [task for task in waiting if task.gated]
        if not gated:
            return None
        free = len(waiting) - len(gated)
        placed = self._session.jobs.ready_count(job) + self._session.jobs.waiting_count(job)
        if free and placed + free >= self._session.jobs.min_member[job.row]:
            return None
        names = sorted({gate for task in gated for gate in task.template.scheduling_gates})
        sentence = f"{len(gated)} of its pods wait for their scheduling gates: {', '.join(names)}"
        return waits_for(WaitCode.GATED, sentence, in_the_way=names)

    # --- where nodes may have been asked

    def _unplaced(self, job: Job) -> WaitReason:
        ended = [each for each in self._trail.of_job(job.key) if each.action in PLACING]
        endings = {each.ending for each in ended}
        if Ending.TOPOLOGY_UNFIT in endings:
            unfit = f"{Ending.TOPOLOGY_UNFIT}: {_detail(ended, Ending.TOPOLOGY_UNFIT)}"
            return waits_for(WaitCode.TOPOLOGY, unfit)
        if Ending.NO_TURN in endings:
            return self._behind(job, f"a job of queue {job.pod_group.queue} that comes first is not whole")
        needed = self.needed(job)
        if not needed:
            return waits_for(WaitCode.NOT_LOOKED_AT, "nothing of it is to be placed by any action")
        if Ending.QUEUE_OVERUSED in endings or (Ending.QUEUE_HAS_NO_ROOM in endings and Ending.NO_NODE not in endings):
            return self._limited(job, needed)
        if not ended:
            return waits_for(WaitCode.NOT_LOOKED_AT, "no action of the configuration places it")
        if refused := self._refused(job, ended):
            return refused
        found = self._room.verdict(needed)
        if found.code is WaitCode.PODS_APART and self._session.topology.is_asked_for(job):
            return waits_for(WaitCode.TOPOLOGY, "there is room, but not within one domain of the topology it asks for")
        return found

    def _refused(self, job: Job, ended: list[Ended]) -> WaitReason | None:
        """Explain a placement that a plugin refused, because of a node's lock or an extender's answer: the end of the
        last pod that was tried. None where that ended differently.
        """
        last = next((each for each in reversed(ended) if each.who != job.key), None)
        if last is None or last.ending is not Ending.PLACEMENT_REFUSED:
            return None
        lock = standing_locks(self._session).get(last.node, "")
        why = "; ".join(each for each in (last.detail, lock) if each)
        sentence = f"the placement of {last.who} on {last.node} was refused: {why}"
        return waits_for(WaitCode.PLACEMENT_REFUSED, sentence, f"node {last.node}")

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

    def _limited(self, job: Job, needed: list[Task]) -> WaitReason:
        """Return the reason of a limit: the most that its queue, or one above it, may ever have; or more than any node
        has; otherwise the queue's present deserved.
        """
        names = self._session.dims.names
        asked: Amounts = {}
        for task in needed:
            for dimension, value in task.template.items:
                if value > 0:
                    asked[names[dimension]] = asked.get(names[dimension], 0.0) + value
        gauges = self._gauges_now
        if limits := self._limits(job, asked, gauges):
            sentence = f"{limits[0].limit} may have no more: {said(limits)}"
            return self._of_queue(WaitCode.QUEUE_CAPABILITY, sentence, limits)
        found = self._room.verdict(needed)
        if found.code in NEVER:
            return found
        whole, line = amounts(self._session.total), self._line(job.pod_group.queue)
        for queue in line:
            deserves = queue == line[0] or "deserved_milli_cpu" in gauges.get(queue, {})  # proportion knows no tree
            if deserves and (share := _beyond(queue, gauges, "deserved", asked, whole)):
                sentence = f"queue {queue} has what it deserves: {said(share)}"
                return self._of_queue(WaitCode.QUEUE_SHARE, sentence, share)
        if all_there_is := _beyond(line[0], gauges, "deserved", asked, {}):
            sentence = (
                f"queue {line[0]} has no room for it: {said(all_there_is)}; what it may have is the whole cluster"
            )
            keeps = found.wait_class is WaitClass.NO_CAPACITY or found.code is WaitCode.OTHERS_FIRST
            return self._of_queue(found.code if keeps else WaitCode.IN_USE, sentence, all_there_is)
        return found

    def _of_queue(self, code: WaitCode, sentence: str, numbers: Sequence[WaitNumber]) -> WaitReason:
        """Return the reason with the jobs of the queue, or of those below it, that hold most of the missing amounts."""
        queue = numbers[0].limit.removeprefix("queue ")
        holding = holders(self._session, [each.resource for each in numbers], self._below(queue))
        return waits_for(code, sentence, numbers[0].limit, numbers, holding)

    def _below(self, queue: str) -> frozenset[str] | None:
        """Return the queue and all below it; None (all queues) for "" and for the root."""
        if not queue or queue == ROOT:
            return None
        return frozenset(each.name for each in self._session.snapshot.queues if queue in self._line(each.name))

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


def outsider(view: View, task: Task) -> WaitReason:
    """Return the reason of a pod that is not a task of the session."""
    scheduler, group = task.scheduler, task.annotations.get(GROUP_NAME)
    if scheduler not in ("", *SERVED):
        return waits_for(WaitCode.NO_SCHEDULER, nobody_is(scheduler, "the pod asks"), f"scheduler {scheduler}")
    if not group:
        _, why = task.condition or ("", "")
        none = f"the pod names no PodGroup (annotation {GROUP_NAME}), and none was made for it"
        return waits_for(WaitCode.NO_POD_GROUP, why or none)
    key = key_of(task.namespace, group)
    job = view.jobs.by_key.get(key)
    if job is None or job.spec is None:
        same = sorted(each.namespace for each in view.jobs.by_key.values() if each.spec and each.name == group)
        there = f"; one of that name is in namespace {', '.join(same[:NAMED])}" if same else ""
        sentence = f"PodGroup {key} is not among the objects{there}"
        return waits_for(WaitCode.POD_GROUP_MISSING, sentence, f"PodGroup {key}")
    if job.spec.queue not in view.queues:
        return queueless(job.spec.queue)
    return waits_for(WaitCode.NOT_LOOKED_AT, f"no action of this cycle looked at PodGroup {key}")


def unopened(queue: str, state: str) -> WaitReason:
    """Return the reason of a job whose queue is not open."""
    state = state or "not open: its status has no state yet, which a controller gives it"
    return waits_for(WaitCode.QUEUE_NOT_OPEN, f"its queue {queue!r} is {state}", f"queue {queue}")


def queueless(queue: str) -> WaitReason:
    """Return the reason of a job whose queue does not exist."""
    return waits_for(WaitCode.QUEUE_MISSING, f"its queue {queue!r} does not exist", f"queue {queue}")


def told_of_strangers(strangers: Mapping[str, int]) -> str:
    """Count the pods of a job that ask for schedulers which do not run here, by scheduler."""
    asks = {1: "asks"}
    return " and ".join(nobody_is(name, f"{n} of its pods {asks.get(n, 'ask')}") for name, n in strangers.items())


def nobody_is(scheduler: str, asking: str) -> str:
    """Return the reason of pods whose scheduler does not run here, with their number."""
    return f"no scheduler named {scheduler!r} runs here, for which {asking}"


def held_by_queue(session: Session) -> FloatArray:
    """Return the resources of each queue's jobs on nodes at this moment: float64 [dimension, queue]."""
    return session.jobs.by_queue.sums(session.snapshot.jobs.allocated)


def _detail(ended: list[Ended], ending: Ending) -> str:
    return next(each.detail for each in ended if each.ending is ending)


def _beyond(queue: str, gauges: Gauges, limit: str, asked: Amounts, whole: Amounts) -> tuple[WaitNumber, ...]:
    """Return the amounts of each resource whose limit the queue would exceed. A limit equal to the `whole` cluster does
    not count.
    """
    found, figures = list[WaitNumber](), gauges.get(queue, {})
    for name, value in asked.items():
        key = KEYS.get(name, f"scalar_resources:{name}")
        most = figures.get(f"{limit}_{key}", inf if limit == "real_capacity" else 0.0)
        has = figures.get(f"allocated_{key}", 0.0)
        if most < whole.get(name, inf) and has + value - most >= MIN_RESOURCE and name != "pods":
            found.append(WaitNumber.of(name, value, most - has, most, f"queue {queue}"))
    return tuple(found)
