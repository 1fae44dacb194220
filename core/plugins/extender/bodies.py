"""What the extender is asked about, as Volcano's structs encode: `TaskInfo`, `JobInfo`, `NodeInfo`, `QueueInfo` and
what is inside them, with Go's field names.

Left as empty as Volcano leaves them where nothing is known: NPUs of a node, what claims of devices and NUMA cells add
to a task, and when a job was first looked at (`ScheduleStartTimestamp`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from config.durations import parse_duration_ns
from core.life.pod_group import LABELS
from core.messages.questions import AskedPod
from core.objects.metadata import Object, section
from core.outside import WholePod
from core.plugins.extender.node_parts import NodeParts
from core.state.dimensions import CPU, MEMORY, PODS

if TYPE_CHECKING:
    from core.objects.pod import Task
    from core.objects.queue import Queue
    from core.resources.amounts import Amounts
    from core.session.session import Session
    from core.session.subjobs import SubJob
    from core.state.columns import FloatArray
    from core.state.jobs import Job

Body = dict[str, Any]
READY: Final = 1
NUMA_POLICY: Final = "volcano.sh/numa-topology-policy"
WAITING_TIME: Final = "sla-waiting-time"
HIERARCHY: Final = "volcano.sh/hierarchy"
WEIGHTS: Final = "volcano.sh/hierarchy-weights"
MIN_AVAILABLE: Final = "volcano.sh/jdb-min-available"
MAX_UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"


def _number(value: float) -> float | int:
    """Go writes 1, not 1.0."""
    return int(value) if value == int(value) and abs(value) < 1e21 else value


def resource_body(milli_cpu: float, memory: float, scalars: dict[str, float] | None, max_pods: int = 0) -> Body:
    """`Resource`: cpu and other scalars in milli-units, memory in bytes, pods as a count."""
    return {
        "MilliCPU": _number(milli_cpu),
        "Memory": _number(memory),
        "ScalarResources": None if scalars is None else {name: _number(value) for name, value in scalars.items()},
        "MaxTaskNum": max_pods,
    }


def amounts_body(amounts: Amounts, max_pods: int = 0) -> Body:
    """`Resource` of a request, or of what a node has."""
    return resource_body(amounts.milli_cpu, amounts.memory, amounts.scalars, max_pods)


class Bodies:
    """Of one session, as it is when they are asked for."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._parts = NodeParts(session)

    # --- pods

    def task(self, task: Task) -> Body:
        """`TaskInfo`."""
        session, request = self._session, amounts_body(task.template.request)
        row = session.jobs.node[task.row]
        node = session.nodes.names[row] if row >= 0 else task.node_name
        return {
            "UID": task.uid,
            "Job": task.job,
            "Name": task.name,
            "Namespace": task.namespace,
            "TaskRole": task.role,
            "Resreq": request,
            "InitResreq": request,
            "DRAResreq": None,
            "ResourceClaimKeys": None,
            "ResourceClaimDRAResreq": None,
            **self._transaction(task, node),
            "LastTransaction": self._last_transaction(task),
            "Priority": task.priority,
            "VolumeReady": False,
            "Preemptable": task.preemptable,
            "BestEffort": task.template.best_effort,
            "HasRestartableInitContainer": any(
                each.get("restartPolicy") == "Always" for each in task.template.spec.get("initContainers") or ()
            ),
            "SchGated": task.gated,
            "RevocableZone": task.revocable_zone,
            "NumaInfo": {"Policy": task.annotations.get(NUMA_POLICY, ""), "ResMap": {}},
            "Pod": WholePod(AskedPod(task.namespace, task.name, task.uid, node)),
            "CustomBindErrHandlerSucceeded": False,
        }

    def _transaction(self, task: Task, node: str) -> Body:
        session = self._session
        return {
            "NodeName": node,
            "EvictionOccurred": task.row in session.evicted_for,
            "JobAllocatedHyperNode": session.topology.heading.get(task.row) or "",
            "Status": 1 << session.jobs.status[task.row],
        }

    def _last_transaction(self, task: Task) -> Body | None:
        last = self._session.last_transaction.get(task.row)
        if last is None:
            return None
        return {
            "NodeName": self._session.nodes.names[last.node] if last.node >= 0 else "",
            "EvictionOccurred": last.evicted,
            "JobAllocatedHyperNode": "",
            "Status": 1 << last.status,
        }

    def _tasks(self, tasks: list[Task]) -> Body:
        return {task.uid: self.task(task) for task in tasks}

    def _by_status(self, tasks: list[Task]) -> Body:
        found: dict[str, list[Task]] = {}
        for task in tasks:
            found.setdefault(str(1 << self._session.jobs.status[task.row]), []).append(task)
        return {status: self._tasks(some) for status, some in found.items()}

    # --- jobs and queues

    def job(self, job: Job) -> Body:
        """`JobInfo`."""
        session, group, tasks = self._session, job.pod_group, job.in_uid_order()
        columns, row = session.jobs.columns, job.row
        groups = session.sub_jobs(job)
        return {
            "UID": job.key,
            "PgUID": group.uid,
            "Name": job.name,
            "Namespace": job.namespace,
            "Queue": group.queue,
            "Priority": session.jobs.priority[row],
            "MinAvailable": group.min_member,
            "WaitingTime": _nanoseconds(group.annotations.get(WAITING_TIME)),
            "JobFitErrors": "",
            "NodesFitErrors": {task.uid: {} for task in tasks if session.fit.of(job, task) is not None},
            "AllocatedHyperNode": "",
            "NetworkTopology": group.network_topology,
            "SubJobs": {uid: self._sub_job(each) for uid, each in groups.items()},
            "TaskToSubJob": {task.uid: uid for uid, each in groups.items() for task in each.tasks},
            "MinSubJobs": {
                each["name"]: each["minSubGroups"] for each in group.sub_group_policy if each.get("minSubGroups")
            },
            "TaskStatusIndex": self._by_status(tasks),
            "Tasks": self._tasks(tasks),
            "TaskMinAvailable": group.min_task_member,
            "TaskMinAvailableTotal": group.min_task_total,
            "Allocated": self._column(columns.allocated, row),
            "TotalRequest": self._column(columns.total, row),
            "CreationTimestamp": section(group.pod_group, "metadata").get("creationTimestamp"),
            "PodGroup": self._pod_group(job),
            "ScheduleStartTimestamp": None,
            "Preemptable": group.preemptable,
            "RevocableZone": group.revocable_zone,
            "Budget": _budget(group.annotations),
        }

    def _pod_group(self, job: Job) -> Body:
        whole = _untyped(job.pod_group.pod_group)
        phase = LABELS[self._session.jobs.phase[job.row]]
        return {**whole, "status": {**section(whole, "status"), "phase": phase}, "Version": "v1beta1"}

    def _sub_job(self, group: SubJob) -> Body:
        return {
            "GID": group.gid,
            "UID": group.uid,
            "Job": group.job.key,
            "MinAvailable": group.min_available,
            "Priority": max((task.priority for task in group.tasks), default=0),
            "MatchIndex": group.match_index,
            "Tasks": self._tasks(group.tasks),
            "TaskStatusIndex": self._by_status(group.tasks),
            "AllocatedHyperNode": group.allocated_hyper_node,
            "NominatedHyperNode": group.nominated_hyper_node,
            "NetworkTopology": group.network_topology,
        }

    def queue(self, queue: Queue) -> Body:
        """`QueueInfo`."""
        whole = _untyped(queue.queue)
        return {
            "UID": queue.name,
            "Name": queue.name,
            "Weight": queue.weight,
            "Weights": queue.annotations.get(WEIGHTS, ""),
            "Hierarchy": queue.annotations.get(HIERARCHY, ""),
            "Queue": {
                **whole,
                "spec": {"guarantee": {}, **section(whole, "spec")},
                "status": {"reservation": {}, **section(whole, "status")},
            },
        }

    # --- nodes

    def node(self, row: int) -> Body:
        """`NodeInfo`."""
        nodes, spec, parts = self._session.nodes, self._session.nodes.specs[row], self._parts
        nothing, cells = resource_body(0.0, 0.0, None), parts.cells(row)
        return {
            "Name": spec.name,
            "Node": spec.node,
            "State": {"Phase": READY, "Reason": ""},
            "Releasing": self._column(nodes.releasing, row),
            "Pipelined": self._column(nodes.pipelined, row),
            "Idle": self._column(nodes.idle, row, spec.allocatable.scalars, spec.max_pods),
            "Used": self._column(nodes.used, row),
            "Allocatable": amounts_body(spec.allocatable, spec.max_pods),
            "Capacity": amounts_body(spec.capacity, int((spec.capacity.scalars or {}).get("pods", 0))),
            "ResourceUsage": parts.usage(row),
            "Tasks": {task.key: self.task(task) for task in nodes.tasks_on(row)},
            "NumaInfo": cells,
            "NumaChgFlag": 0,
            "NumaSchedulerInfo": cells,
            "RevocableZone": spec.revocable_zone,
            "Others": parts.devices(row),
            "OversubscriptionNode": spec.oversubscribed,
            "OfflineJobEvicting": spec.offline_job_evicting,
            "OversubscriptionResource": nothing,
            "ImageStates": parts.images(row),
            "Generation": 0,
            "BindGeneration": 0,
        }

    def _column(self, columns: FloatArray, row: int, named: dict[str, float] | None = None, max_pods: int = 0) -> Body:
        """`Resource` from a column: scalars that are 0 are left out unless they are among the `named`."""
        values, names = columns[:, row].tolist(), self._session.dims.names
        scalars = {
            names[i]: value for i, value in enumerate(values) if i >= PODS and (value or (named and names[i] in named))
        }
        return resource_body(values[CPU], values[MEMORY], scalars or None, max_pods)

    # --- all of it

    def session(self) -> Body:
        """`OnSessionOpenRequest`."""
        session = self._session
        nodes = {name: self.node(row) for row, name in enumerate(session.nodes.names)}
        return {
            "Jobs": {job.key: self.job(job) for job in session.jobs.in_order},
            "Nodes": nodes,
            "Queues": {name: self.queue(queue) for name, queue in session.queues.items()},
            "NamespaceInfo": self._namespaces(),
            "RevocableNodes": {name: node for name, node in nodes.items() if node["RevocableZone"]},
            "NodeList": None,
        }

    def _namespaces(self) -> Body:
        """`NamespaceInfo`: what quotas say."""
        found: dict[str, Body] = {}
        for quota in self._session.objects.get("ResourceQuota", {}).values():
            metadata = section(quota, "metadata")
            of = found.setdefault(metadata["namespace"], {"Name": metadata["namespace"], "QuotaStatus": {}})
            of["QuotaStatus"][metadata["name"]] = section(quota, "status")
        return found


def _untyped(obj: Object) -> Object:
    """As Go's typed clients have it."""
    return {name: value for name, value in obj.items() if name not in ("kind", "apiVersion")}


def _nanoseconds(text: str | None) -> int | None:
    """A waiting time; None where it is no positive duration."""
    try:
        waiting = parse_duration_ns(text or "")
    except ValueError:
        return None
    return waiting if waiting > 0 else None


def _budget(annotations: dict[str, str]) -> Body:
    """`DisruptionBudget`: the first of the two that is there."""
    least = annotations.get(MIN_AVAILABLE, "")
    return {"MinAvailable": least, "MaxUnavailable": "" if least else annotations.get(MAX_UNAVAILABLE, "")}
