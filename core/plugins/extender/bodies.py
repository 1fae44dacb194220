"""What the extender is asked about, as Volcano's structs encode: `TaskInfo`, `JobInfo`, `NodeInfo`, `QueueInfo` and
what is inside them, with Go's field names.

Left as empty as Volcano leaves them where nothing is known: what claims of devices add to a task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.core.objects.metadata import section
from pumice.core.objects.node import oversubscription
from pumice.core.objects.typed import canonical, typed_queue
from pumice.core.plugins.extender.job_bodies import JobBodies
from pumice.core.plugins.extender.node_parts import NodeParts
from pumice.core.plugins.extender.task_bodies import TaskBodies, amounts_body, resource_body
from pumice.core.state.dimensions import CPU, MEMORY, PODS

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.objects.queue import Queue
    from pumice.core.session.session import Session
    from pumice.core.state.columns import FloatArray
    from pumice.core.state.jobs import Job

Body = dict[str, Any]
READY: Final = 1
HIERARCHY: Final = "volcano.sh/hierarchy"
WEIGHTS: Final = "volcano.sh/hierarchy-weights"


class Bodies:
    """Of one session, as it is when they are asked for."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._parts, self._tasks = NodeParts(session), TaskBodies(session)
        self._jobs = JobBodies(session, self._tasks, self._column)

    def task(self, task: Task) -> Body:
        """`TaskInfo`."""
        return self._tasks.task(task)

    def job(self, job: Job) -> Body:
        """`JobInfo`."""
        return self._jobs.job(job)

    def queue(self, queue: Queue) -> Body:
        """`QueueInfo`."""
        return {
            "UID": queue.name,
            "Name": queue.name,
            "Weight": queue.weight,
            "Weights": queue.annotations.get(WEIGHTS, ""),
            "Hierarchy": queue.annotations.get(HIERARCHY, ""),
            "Queue": typed_queue(queue.queue),
        }

    def node(self, row: int) -> Body:
        """`NodeInfo`."""
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

    def _idle(self, row: int) -> Body:
        spec = self._session.nodes.specs[row]
        return self._column(self._session.nodes.idle, row, spec.allocatable.scalars, spec.max_pods)

    def _column(self, columns: FloatArray, row: int, named: dict[str, float] | None = None, max_pods: int = 0) -> Body:
        """`Resource` from a column: scalars that are 0 are left out unless they are among the `named`."""
        values, names = columns[:, row].tolist(), self._session.dims.names
        scalars = {
            names[i]: value for i, value in enumerate(values) if i >= PODS and (value or (named and names[i] in named))
        }
        return resource_body(values[CPU], values[MEMORY], scalars or None, max_pods)

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
            status = section(quota, "status")
            of["QuotaStatus"][metadata["name"]] = {name: canonical(section(status, name)) for name in status}
        return found
