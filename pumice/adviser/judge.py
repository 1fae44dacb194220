"""What a job waits for, by the trail of one cycle and the amounts at its end."""

from __future__ import annotations

from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from core.life.task import TaskStatus
from core.resources import MIN_RESOURCE
from core.session.trail.records import Ending
from pumice.adviser.classes import CLASS_OF, WaitClass, WaitReason
from pumice.adviser.ground import NodeRoom
from pumice.explain.locks import standing_locks
from pumice.explain.room_left import KEYS, amounts, at_refusal, of_namespace
from pumice.units import amount

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.objects.pod import Task
    from core.session.session import Session
    from core.session.trail.records import Ended
    from core.session.trail.trail import Trail
    from core.state.columns import FloatArray
    from core.state.jobs import Job
    from pumice.explain.room_left import Amounts

Gauges = dict[str, dict[str, float]]
PLACING: Final = ("allocate", "backfill")
QUOTA_PLUGINS: Final = {
    "proportion": WaitReason.QUEUE_CAPABILITY,
    "capacity": WaitReason.QUEUE_CAPABILITY,
    "resourcequota": WaitReason.NAMESPACE_QUOTA,
    "overcommit": WaitReason.OVERCOMMIT,
}
BY_AMOUNT: Final = ("proportion", "capacity", "overcommit")
"""Plugins that admit as much as there is room for."""
NEVER: Final = (WaitReason.LARGER_THAN_CLUSTER, WaitReason.LARGER_THAN_ANY_NODE, WaitReason.NO_NODE_ALLOWED)
"""What not even an empty cluster would change."""
SHORT_OF_PODS: Final = ("NotEnoughTasks", "NotEnoughPodsOfTask")


class WaitFinding(NamedTuple):
    """`because`: a sentence for people; programs go by `reason`."""

    reason: WaitReason
    because: str

    @property
    def wait_class(self) -> WaitClass:
        """The class of the reason."""
        return CLASS_OF[self.reason]


class Judge:
    """Asked between the last action and the close of the session. `room`: what was free on each node when it opened,
    float64 [dimension, node]; `gauges`: what plugins said of each queue then, and `held` what the jobs of each queue
    had on nodes then, float64 [dimension, queue].
    """

    def __init__(self, session: Session, trail: Trail, room: FloatArray, gauges: Gauges, held: FloatArray) -> None:
        self._session, self._trail, self._gauges, self._held = session, trail, gauges, held
        self._room = NodeRoom(session, room)

    def find(self, job: Job) -> WaitFinding:
        """What a job of the session waits for."""
        queue, jobs = self._session.queue_of(job), self._session.jobs
        if not queue.is_open:
            return WaitFinding(
                WaitReason.QUEUE_NOT_OPEN, f"its queue {queue.name} is {queue.state or 'in no state yet'}"
            )
        if self._session.fit.obstacles:
            return WaitFinding(WaitReason.QUEUES_UNUSABLE, "; ".join(self._session.fit.obstacles.values()))
        if jobs.is_pending(job):
            return self._unadmitted(job)
        if jobs.counts[TaskStatus.PIPELINED][job.row] and jobs.is_pipelined(job):
            return WaitFinding(WaitReason.PROMISED, "it waits for room that is being released")
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
        asked = amounts(job.pod_group.min_resources) if job.pod_group.min_resources is not None else {}
        larger = "" if self._limits(job, asked, self._gauges) else self._beyond_the_cluster(asked)
        if larger and plugin in BY_AMOUNT:
            return WaitFinding(WaitReason.LARGER_THAN_CLUSTER, f"{plugin} does not admit it: {larger}")
        told = (of_namespace if plugin == "resourcequota" else at_refusal)(self._session, job)
        remark = told or self._session.fit.remarks.get(job.row, "")
        return WaitFinding(
            QUOTA_PLUGINS.get(plugin, WaitReason.NOT_ADMITTED),
            f"{plugin} does not admit it" + (remark and f": {remark}"),
        )

    def _limits(self, job: Job, asked: Amounts, gauges: Gauges) -> str:
        """Which queue, its own or one above it, may never have so much, and of what."""
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

    def _gates(self, job: Job) -> str:
        """Which gates keep the job below its minimum, or keep all that is left of it."""
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
        """Where a plugin let no placement stand, for a lock of the node, or because an extender says so: how the last
        pod that was tried ended.
        """
        last = next((each for each in reversed(ended) if each.who != job.key), None)
        if last is None or last.ending is not Ending.PLACEMENT_REFUSED:
            return ""
        lock = standing_locks(self._session).get(last.node, "")
        said = "; ".join(each for each in (last.detail, lock) if each)
        return f"the placement of {last.who} on {last.node} was refused: {said}"

    def needed(self, job: Job) -> list[Task]:
        """The pods that the job needs next: so many as its minimum lacks, one at least, in the order of tasks."""
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
        share = _beyond(gauges.get(job.pod_group.queue, {}), "deserved", asked, whole)
        if share:
            return WaitFinding(WaitReason.QUEUE_SHARE, f"queue {job.pod_group.queue} has what it deserves: {share}")
        return WaitFinding(reason, told)

    @cached_property
    def _gauges_now(self) -> Gauges:
        """The gauges with what the cycle has given to each queue, and so to those above it, and taken from them."""
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
        """The queue and those above it."""
        found = [queue]
        while (above := self._session.queues.get(found[-1])) is not None and above.parent not in ("", *found):
            found.append(above.parent)
        return found


def held_by_queue(session: Session) -> FloatArray:
    """What the jobs of each queue have on nodes at this moment: float64 [dimension, queue]."""
    return session.jobs.by_queue.sums(session.snapshot.jobs.allocated)


def _detail(ended: list[Ended], ending: Ending) -> str:
    return next(each.detail for each in ended if each.ending is ending)


def _beyond(gauges: Mapping[str, float], limit: str, asked: Amounts, whole: Amounts) -> str:
    """For each resource of which the queue would have more than its limit: "asks 4 cpu, has 8 of 10". A limit that is
    the `whole` cluster is none.
    """
    told: list[str] = []
    for name, value in asked.items():
        key = KEYS.get(name, f"scalar_resources:{name}")
        most = gauges.get(f"{limit}_{key}", inf if limit == "real_capacity" else 0.0)
        has = gauges.get(f"allocated_{key}", 0.0)
        if most < whole.get(name, 0.0) and has + value - most >= MIN_RESOURCE and name != "pods":
            bare = [amount(name, one).removesuffix(f" {name}") for one in (has, most)]
            told.append(f"asks {amount(name, value)}, has {bare[0]} of {bare[1]}")
    return "; ".join(told)
