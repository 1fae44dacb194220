"""Pods as `TaskInfo` encodes them, and amounts as `Resource` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from pumice.core.life.task import TaskStatus
from pumice.core.messages.questions import AskedPod
from pumice.core.objects.metadata import section
from pumice.core.objects.typed import canonical
from pumice.core.outside import WholePod

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.core.objects.pod import Task
    from pumice.core.resources.amounts import Amounts
    from pumice.core.session.session import Session

Body = dict[str, Any]
NUMA_POLICY: Final = "volcano.sh/numa-topology-policy"
NUMA_DECISION: Final = "volcano.sh/topology-decision"


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


class TaskBodies:
    """Of one session, as they are when they are asked for."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def task(self, task: Task) -> Body:
        """`TaskInfo` of a job."""
        return self._task(task, self._session.jobs.status[task.row])

    def on_node(self, task: Task) -> Body:
        """`TaskInfo` of a node: a copy from when the pod was put there, which hears nothing of its bind."""
        return self._task(task, self._session.nodes.seen_status[task.row])

    def by_uid(self, tasks: Iterable[Task]) -> Body:
        """`TasksMap`."""
        return {task.uid: self.task(task) for task in tasks}

    def by_status(self, tasks: Iterable[Task]) -> Body:
        """`TaskStatusIndex`."""
        found: dict[str, list[Task]] = {}
        for task in tasks:
            found.setdefault(str(1 << self._session.jobs.status[task.row]), []).append(task)
        return {status: self.by_uid(some) for status, some in found.items()}

    def _task(self, task: Task, status: int) -> Body:
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


def _cells(task: Task) -> Body:
    """`TopologyInfo`: what the pod's annotations say that it wishes, and has, of NUMA cells."""
    try:
        decision: Any = msgspec.json.decode(task.annotations.get(NUMA_DECISION, ""))
    except msgspec.DecodeError:
        decision = None
    cells = section(cast("Body", decision), "numa") if isinstance(decision, dict) else {}
    found = {cell: canonical(section(cells, cell)) for cell in cells}
    return {"Policy": task.annotations.get(NUMA_POLICY, ""), "ResMap": found}
