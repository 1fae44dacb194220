# SPDX-License-Identifier: Apache-2.0
"""The bodies of the extender's questions, as Volcano's structs encode: `TaskInfo`, `JobInfo`, `NodeInfo`, `QueueInfo`
and their parts, with Go's field names.

Left as empty as Volcano leaves them where nothing is known: what claims of devices add to a task.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.config.durations import parse_duration_ns
from pumice.core.devices.family import Around
from pumice.core.life.pod_group import LABELS
from pumice.core.life.task import TaskStatus
from pumice.core.messages.questions import AskedPod
from pumice.core.objects.metadata import Object, format_time, mapping, section
from pumice.core.objects.node import oversubscription
from pumice.core.objects.node_usage import KIND, usage_of
from pumice.core.objects.typed import canonical, typed_group, typed_node, typed_queue
from pumice.core.outside import WholePod
from pumice.core.state.dimensions import CPU, MEMORY, PODS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.resources.amounts import Amounts
    from pumice.core.session.jobs import SubJob
    from pumice.core.session.session import Session
    from pumice.core.session.topology import Wish
    from pumice.core.state.dimensions import FloatArray
    from pumice.core.state.jobs import Job

# --- Pods and amounts

NUMA_POLICY: Final = "volcano.sh/numa-topology-policy"
NUMA_DECISION: Final = "volcano.sh/topology-decision"


def _number(value: float) -> float | int:
    """Return a number as Go writes it: 1, not 1.0."""
    # Go writes a float without a fraction as a whole number below 1e21, and with an exponent from there on.
    return int(value) if value == int(value) and abs(value) < 1e21 else value


def resource_body(milli_cpu: float, memory: float, scalars: dict[str, float] | None, max_pods: int = 0) -> Object:
    """Return the JSON of `Resource`: cpu and other scalars in milli-units, memory in bytes, pods as a count."""
    return {
        "MilliCPU": _number(milli_cpu),
        "Memory": _number(memory),
        "ScalarResources": None if scalars is None else {name: _number(value) for name, value in scalars.items()},
        "MaxTaskNum": max_pods,
    }


def amounts_body(amounts: Amounts, max_pods: int = 0) -> Object:
    """Return the JSON of `Resource` of a request, or of a node's amounts."""
    return resource_body(amounts.milli_cpu, amounts.memory, amounts.scalars, max_pods)


class TaskBodies:
    """The tasks' bodies in one session, in their state at each question."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def task(self, task: Task) -> Object:
        """Return the JSON of `TaskInfo` of a job."""
        return self._task(task, self._session.jobs.status[task.row])

    def on_node(self, task: Task) -> Object:
        """Return the JSON of `TaskInfo` of a node: a copy from when the pod was put there, which does not show its
        bind.
        """
        return self._task(task, self._session.nodes.seen_status[task.row])

    def by_uid(self, tasks: Iterable[Task]) -> Object:
        """Return the JSON of `TasksMap`."""
        return {task.uid: self.task(task) for task in tasks}

    def by_status(self, tasks: Iterable[Task]) -> Object:
        """Return the JSON of `TaskStatusIndex`."""
        found: dict[str, list[Task]] = {}
        for task in tasks:
            # Statuses are single bits in Volcano (`1 << iota`), and the keys of JSON are texts.
            found.setdefault(str(1 << self._session.jobs.status[task.row]), []).append(task)
        return {status: self.by_uid(some) for status, some in found.items()}

    def _task(self, task: Task, status: int) -> Object:
        session, request, spec = self._session, amounts_body(task.template.request), task.template.spec
        row = session.jobs.node[task.row]
        node = session.nodes.names[row] if row >= 0 else task.node_name
        promised = session.jobs.status[task.row] == TaskStatus.PIPELINED  # the pod itself hears nothing of that
        return {
            "UID": task.uid,
            "Job": task.job,
            "Name": task.name,
            "Namespace": task.namespace,
            "TaskRole": task.role,
            "Resreq": request,
            # One for both: NewTaskInfo copies the first to the second before anything changes them.
            "InitResreq": request,
            "DRAResreq": None,
            "ResourceClaimKeys": None,
            "ResourceClaimDRAResreq": None,
            "NodeName": node,
            "EvictionOccurred": task.row in session.evicted_for,
            "JobAllocatedHyperNode": session.topology.heading.get(task.row) or "",
            "Status": 1 << status,
            "LastTransaction": self._last_transaction(task),
            "Priority": task.priority,
            "VolumeReady": False,
            "Preemptable": task.preemptable,
            "BestEffort": task.template.best_effort,
            "HasRestartableInitContainer": any(
                each.get("restartPolicy") == "Always" for each in spec.get("initContainers") or ()
            ),
            "SchGated": task.gated,
            "RevocableZone": task.revocable_zone,
            "NumaInfo": _cells(task),
            "Pod": WholePod(AskedPod(task.namespace, task.name, task.uid, "" if promised else node)),
            "CustomBindErrHandlerSucceeded": False,
        }

    def _last_transaction(self, task: Task) -> Object | None:
        last = self._session.last_transaction.get(task.row)
        if last is None:
            return None
        return {
            "NodeName": self._session.nodes.names[last.node] if last.node >= 0 else "",
            "EvictionOccurred": last.evicted,
            "JobAllocatedHyperNode": "",
            "Status": 1 << last.status,
        }


def _cells(task: Task) -> Object:
    """Return the JSON of `TopologyInfo`: the NUMA cells that the pod's annotations request and hold."""
    try:
        decision: Any = msgspec.json.decode(task.annotations.get(NUMA_DECISION, ""))
    except msgspec.DecodeError:
        decision = None
    cells = section(mapping(decision), "numa")
    found = {cell: canonical(section(cells, cell)) for cell in cells}
    return {"Policy": task.annotations.get(NUMA_POLICY, ""), "ResMap": found}


# --- Jobs

WAITING_TIME: Final = ("volcano.sh/sla-waiting-time", "sla-waiting-time")
MIN_AVAILABLE: Final = "volcano.sh/jdb-min-available"
MAX_UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"
ENQUEUE: Final = "enqueue"


class JobBodies:
    """The jobs' bodies in one session, in their state at each question. `column`: makes a `Resource` of columns and a
    row.
    """

    def __init__(self, session: Session, tasks: TaskBodies, column: Callable[[FloatArray, int], Object]) -> None:
        self._session, self._tasks, self._column = session, tasks, column

    def job(self, job: Job) -> Object:
        """Return the JSON of `JobInfo`."""
        session, group, tasks = self._session, job.pod_group, job.in_uid_order()
        columns, row, told = session.jobs.columns, job.row, self._tasks
        groups = session.sub_jobs(job)
        return {
            "UID": job.key,
            "PgUID": group.uid,
            "Name": job.name,
            "Namespace": job.namespace,
            "Queue": group.queue,
            "Priority": session.jobs.priority[row],
            "MinAvailable": group.min_member,
            "WaitingTime": _waiting_time(group.annotations),
            "JobFitErrors": "",
            "NodesFitErrors": {task.uid: {} for task in tasks if session.fit.of(job, task) is not None},
            "AllocatedHyperNode": "",
            "NetworkTopology": _topology(group.network_topology, session.topology.of_job(job)),
            "SubJobs": {uid: self._sub_job(each) for uid, each in groups.items()},
            "TaskToSubJob": {task.uid: uid for uid, each in groups.items() for task in each.tasks},
            "MinSubJobs": {
                f"{job.key}/{each.get('name') or ''}": int(each.get("minSubGroups") or 0)
                for each in group.sub_group_policy
            },
            "TaskStatusIndex": told.by_status(tasks),
            "Tasks": told.by_uid(tasks),
            "TaskMinAvailable": group.min_task_member,
            "TaskMinAvailableTotal": group.min_task_total,
            "Allocated": self._column(columns.allocated, row),
            "TotalRequest": self._column(columns.total, row),
            "CreationTimestamp": section(group.pod_group, "metadata").get("creationTimestamp"),
            "PodGroup": self._pod_group(job),
            "ScheduleStartTimestamp": self._looked_at(),
            "Preemptable": group.preemptable,
            "RevocableZone": group.revocable_zone,
            "Budget": budget_of(group.annotations),
        }

    def _looked_at(self) -> str | None:
        """Return when enqueue first looked at the jobs in this session; None before."""
        session = self._session
        # Enqueue sets ScheduleStartTimestamp where it finds none (`actions/enqueue/enqueue.go`); jobs live for one
        # session.
        known = [name for name in session.config.actions if name in (ENQUEUE, session.action)]
        return format_time(session.clock.now) if session.action and known[0] == ENQUEUE else None

    def _pod_group(self, job: Job) -> Object:
        whole = typed_group(job.pod_group.pod_group)
        phase = LABELS[self._session.jobs.phase[job.row]]
        return {**whole, "status": {**section(whole, "status"), "phase": phase}, "Version": "v1beta1"}

    def _sub_job(self, group: SubJob) -> Object:
        return {
            "GID": group.gid,
            "UID": group.uid,
            "Job": group.job.key,
            "MinAvailable": group.min_available,
            "Priority": max((task.priority for task in group.tasks), default=0),
            "MatchIndex": group.match_index,
            "Tasks": self._tasks.by_uid(group.tasks),
            "TaskStatusIndex": self._tasks.by_status(group.tasks),
            "AllocatedHyperNode": group.allocated_hyper_node,
            "NominatedHyperNode": group.nominated_hyper_node,
            "NetworkTopology": _topology(group.network_topology, self._session.topology.of_sub_job(group)),
        }


def _topology(said: Object | None, wish: Wish | None) -> Object | None:
    """Return the JSON of `NetworkTopologySpec` as the session reads it: a soft limit as one that excludes nothing, and
    the number of a named tier.
    """
    if said is None or wish is None or wish.highest_tier is None:
        return said
    mode = {"mode": "hard"} if said.get("mode") == "soft" else {"mode": said["mode"]} if said.get("mode") else {}
    return {**mode, "highestTierAllowed": wish.highest_tier}


def _waiting_time(annotations: dict[str, str]) -> int | None:
    """Return the waiting time in nanoseconds; None where neither annotation is a positive duration."""
    # The name with the domain first; the other where that one is absent or no positive duration (SetPodGroup).
    return next((found for name in WAITING_TIME if (found := _nanoseconds(annotations.get(name)))), None)


def _nanoseconds(text: str | None) -> int | None:
    try:
        waiting = parse_duration_ns(text or "")
    except ValueError:
        return None
    return waiting if waiting > 0 else None


def budget_of(annotations: dict[str, str]) -> Object:
    """Return the JSON of `DisruptionBudget`: the first of the two that exists."""
    # Where the first one exists, even empty, the second one is not read (`api/job_info.go`, extractBudget).
    most = "" if MIN_AVAILABLE in annotations else annotations.get(MAX_UNAVAILABLE, "")
    return {"MinAvailable": annotations.get(MIN_AVAILABLE, ""), "MaxUnavailable": most}


# --- Nodes
# CPU sets encode as nothing: Go's have no field that can be seen.

NEVER: Final = "0001-01-01T00:00:00Z"
TOPOLOGY: Final = "Numatopology"


class NodeParts:
    """The nodes' bodies in one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._nodes: dict[int, Object] = {}

    def whole(self, row: int) -> Object:
        """Return the node as the api has it."""
        if row not in self._nodes:
            self._nodes[row] = typed_node(self._session.nodes.specs[row].node)
        return self._nodes[row]

    def devices(self, row: int, idle: Callable[[int], dict[str, float]]) -> Object:
        """Return the JSON of `Others`: by kind of device, where deviceshare shares them. HAMi's models that a node
        lacks are left out; other kinds are listed as empty.
        """
        session = self._session
        name = session.nodes.names[row]
        tasks: dict[str, Task] = {task.uid: task for task in session.nodes.tasks_on(row)} if session.devices else {}

        def whole(uid: str) -> WholePod | None:
            task = tasks.get(uid)
            return None if task is None else WholePod(AskedPod(task.namespace, task.name, uid, name))

        around = Around(whole, idle)
        named = [family for family in session.devices if family.always_named or family.present[row]]
        return {family.name: family.encoded(row, around) for family in named}

    def usage(self, row: int) -> Object:
        """Return the JSON of `NodeUsage`."""
        session = self._session
        handed_in, metrics = session.options.node_usage or {}, session.objects.get(KIND, {})
        found = usage_of(session.nodes.specs[row], handed_in, metrics, session.clock.now)
        if found is None:
            return {"MetricsTime": NEVER, "CPUUsageAvg": {}, "MEMUsageAvg": {}}
        moment = format_time(found.measured_at) if found.measured_at else NEVER
        return {"MetricsTime": moment, "CPUUsageAvg": dict(found.cpu), "MEMUsageAvg": dict(found.memory)}

    def images(self, row: int) -> Object:
        """Return the JSON of `ImageStateSummary` by name of an image."""
        listed = self._session.nodes.specs[row].images
        # An image may stand twice in a node's list under one name; ImageStates is a map, and has it once.
        names = dict.fromkeys(str(name) for image in listed for name in image.get("names") or ())
        found: Object = {}
        for name in names:
            size, nodes = self._lie_on[name]
            found[name] = {"Size": size, "NumNodes": nodes, "Nodes": None}
        return found

    @cached_property
    def _lie_on(self) -> dict[str, tuple[int, int]]:
        """Return name -> bytes, as the first node reports it, and the number of nodes that have it."""
        found: dict[str, tuple[int, int]] = {}
        for spec in self._session.nodes.specs:
            sizes = {
                str(name): int(each.get("sizeBytes") or 0)
                # Backwards, so that of two entries with one name the first one's size stays.
                for each in reversed(spec.images)
                for name in each.get("names") or ()
            }
            for name, size in sizes.items():
                first, nodes = found.get(name, (size, 0))
                found[name] = first, nodes + 1
        return found

    def cells(self, row: int) -> Object | None:
        """Return the JSON of `NumatopoInfo`."""
        name = self._session.nodes.names[row]
        topology = self._session.objects.get(TOPOLOGY, {}).get(name)
        if topology is None:
            return None
        spec = section(topology, "spec")
        resources, details = section(spec, "numares"), section(spec, "cpuDetail")
        return {
            "Namespace": section(topology, "metadata").get("namespace", ""),
            "Name": name,
            "Policies": section(spec, "policies"),
            "NumaResMap": {of: _cell_resource(said) for of, said in resources.items()},
            "CPUDetail": {cpu: _place(said) for cpu, said in details.items()},
            "ResReserved": section(spec, "resReserved"),
        }


def _cell_resource(said: Object) -> Object:
    capacity = int(said.get("capacity") or 0)
    return {"Allocatable": {}, "Capacity": capacity, "AllocatablePerNuma": {}, "UsedPerNuma": {}}


def _place(said: Object) -> Object:
    cell, socket, core = (int(said.get(name) or 0) for name in ("numa", "socket", "core"))
    return {"NUMANodeID": cell, "SocketID": socket, "CoreID": core, "UncoreCacheID": 0}


READY: Final = 1
HIERARCHY: Final = "volcano.sh/hierarchy"
WEIGHTS: Final = "volcano.sh/hierarchy-weights"


class Bodies:
    """The bodies of one session, in their state at each question."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._parts, self._tasks = NodeParts(session), TaskBodies(session)
        self._jobs = JobBodies(session, self._tasks, self._column)

    def task(self, task: Task) -> Object:
        """Return the JSON of `TaskInfo`."""
        return self._tasks.task(task)

    def job(self, job: Job) -> Object:
        """Return the JSON of `JobInfo`."""
        return self._jobs.job(job)

    def queue(self, queue: Queue) -> Object:
        """Return the JSON of `QueueInfo`."""
        return {
            "UID": queue.name,
            "Name": queue.name,
            "Weight": queue.weight,
            "Weights": queue.annotations.get(WEIGHTS, ""),
            "Hierarchy": queue.annotations.get(HIERARCHY, ""),
            "Queue": typed_queue(queue.queue),
        }

    def node(self, row: int) -> Object:
        """Return the JSON of `NodeInfo`."""
        nodes, spec, parts = self._session.nodes, self._session.nodes.specs[row], self._parts
        cells = parts.cells(row)
        return {
            "Name": spec.name,
            "Node": parts.whole(row),
            "State": {"Phase": READY, "Reason": ""},
            "Releasing": self._column(nodes.releasing, row),
            "Pipelined": self._column(nodes.pipelined, row),
            "Idle": self._idle(row),
            "Used": self._column(nodes.used, row),
            "Allocatable": amounts_body(spec.allocatable, spec.max_pods),
            "Capacity": amounts_body(spec.capacity, int((spec.capacity.scalars or {}).get("pods", 0))),
            "ResourceUsage": parts.usage(row),
            "Tasks": {task.key: self._tasks.on_node(task) for task in nodes.tasks_on(row)},
            "NumaInfo": cells,
            "NumaChgFlag": 0,
            "NumaSchedulerInfo": cells,
            "RevocableZone": spec.revocable_zone,
            "Others": parts.devices(row, lambda row: self._idle(row)["ScalarResources"] or {}),
            "OversubscriptionNode": spec.oversubscribed,
            "OfflineJobEvicting": spec.offline_job_evicting,
            "OversubscriptionResource": amounts_body(oversubscription(spec.annotations)),
            "ImageStates": parts.images(row),
            "Generation": 0,
            "BindGeneration": 0,
        }

    def _idle(self, row: int) -> Object:
        spec = self._session.nodes.specs[row]
        return self._column(self._session.nodes.idle, row, spec.allocatable.scalars, spec.max_pods)

    def _column(
        self, columns: FloatArray, row: int, named: dict[str, float] | None = None, max_pods: int = 0
    ) -> Object:
        """Return the JSON of `Resource` from a column: scalars that are 0 are left out unless they are among the
        `named`.
        """
        values, names = columns[:, row].tolist(), self._session.dims.names
        # The node's allocatable names its scalars, so its idle amount keeps them at 0; other amounts never had them.
        scalars = {
            names[i]: value for i, value in enumerate(values) if i >= PODS and (value or (named and names[i] in named))
        }
        return resource_body(values[CPU], values[MEMORY], scalars or None, max_pods)

    def session(self) -> Object:
        """Return the JSON of `OnSessionOpenRequest`."""
        session = self._session
        nodes = {name: self.node(row) for row, name in enumerate(session.nodes.names)}
        return {
            "Jobs": {job.key: self.job(job) for job in session.jobs.in_order},
            "Nodes": nodes,
            "Queues": {name: self.queue(queue) for name, queue in session.queues.items()},
            "NamespaceInfo": self._namespaces(),
            "RevocableNodes": {name: node for name, node in nodes.items() if node["RevocableZone"]},
            # The request has the field, but OnSessionOpen never sets it (`extender/argument.go`).
            "NodeList": None,
        }

    def _namespaces(self) -> Object:
        """Return the JSON of `NamespaceInfo`, from quotas."""
        found: dict[str, Object] = {}
        for quota in self._session.objects.get("ResourceQuota", {}).values():
            metadata = section(quota, "metadata")
            of = found.setdefault(metadata["namespace"], {"Name": metadata["namespace"], "QuotaStatus": {}})
            status = section(quota, "status")
            of["QuotaStatus"][metadata["name"]] = {name: canonical(section(status, name)) for name in status}
        return found
