# SPDX-License-Identifier: Apache-2.0
"""The decisions of one scheduling cycle: the return value of `core.cycle.close_session`, in the order of commitment."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from pumice.core.messages.message import Message
from pumice.core.messages.queue_tables import QueueColumns
from pumice.core.objects.metadata import Object

# --- Failed answers of users' plugins

NOWHERE: Final = -1
MOST: Final = 10_000
"""Limit of failures of a plugin in the record of a cycle; for later ones a replay asks the plugin itself."""


class FailedAnswers(Struct, frozen=True, gc=False, array_like=True):
    """Failures of a plugin to answer: `count` questions in a row, from the `first` on (0: the first of the cycle).

    `what`: the extension point or function; questions about one node (`row`, in name order; -1: about none) are counted
    by themselves. `sentence` names the error, the same for all of them.
    """

    plugin: str
    what: str
    row: int
    first: int
    count: int
    sentence: str


class ClaimedDevices(Struct, frozen=True, gc=False):
    """The devices that a resource claim ("namespace/name") gets: (request, driver, pool, device) each.

    Without devices the claim has its own already and only gets one more pod. `node`: where they can be used, "" for
    everywhere.
    """

    claim: str
    devices: tuple[tuple[str, str, str, str], ...] = ()
    node: str = ""


class BindContext(Struct, frozen=True, gc=False):
    """The additions of plugins to the bind of a pod (Volcano: the extensions of its `BindContext`).

    The api receives `volumes` ((volume, "namespace/claim") to bind with each other), `provisions` (claims that need a
    new volume on the pod's node) and `devices` before the pod is bound; the pod waits for its volumes `timeout_s`
    seconds at most. `annotations` ((name, value), by name) are written in the moment of the bind, by the bind itself:
    which devices of the node or which of its NUMA cells the pod gets is said so. `locks` ((name, moment), by name) are
    annotations that lock the node before the pod is bound.
    """

    volumes: tuple[tuple[str, str], ...] = ()
    provisions: tuple[str, ...] = ()
    devices: tuple[ClaimedDevices, ...] = ()
    timeout_s: float = 600.0
    # Pairs by name, not a dictionary: a decision is hashed field by field, and must not change once it is made.
    annotations: tuple[tuple[str, str], ...] = ()
    locks: tuple[tuple[str, str], ...] = ()

    @property
    def waits(self) -> bool:
        """Return whether another component has something to do before the pod can be bound."""
        return bool(self.volumes or self.provisions)

    @property
    def writes(self) -> bool:
        """Return whether other objects are to be written before the pod is bound."""
        return bool(self.volumes or self.provisions or self.devices or self.locks)

    @property
    def written(self) -> dict[str, str]:
        """Return the annotations that the pod has when it is bound."""
        return dict(self.annotations)


# Most binds have no `pre_bind`, and a cycle may write thousands of them: their records leave it out.
class Bind(Message, frozen=True, omit_defaults=True):
    """Bind a pod to a node. `job` is "namespace/podgroup-name"; `pre_bind`: what plugins add to the bind."""

    namespace: str
    name: str
    uid: str
    node: str
    job: str
    pre_bind: BindContext | None = None

    @property
    def annotations(self) -> dict[str, str]:
        """Return what the bind writes on the pod."""
        return {} if self.pre_bind is None else self.pre_bind.written


class Evict(Message, frozen=True):
    """Evict a pod from its node. `preemptor` is "namespace/name" of the task that gets the room, "" for none.

    `score`: what chose it, by action: preempt: the node's score (topology-aware: minus the highest priority among the
    node's victims); gangpreempt, gangreclaim: what the bundle frees of the need, per part of its job unless the job can
    spare it; reclaim and shuffle choose without a score: 0.
    """

    namespace: str
    name: str
    uid: str
    node: str
    job: str
    reason: str
    preemptor: str = ""
    action: str = ""
    score: float = 0.0


class PodCondition(Message, frozen=True):
    """The condition PodScheduled=False to be written on a pod.

    `nominated` is the node for status.nominatedNodeName ("": leave it alone, None: clear it). An empty `reason` and
    `message` with a nomination means: write the nomination only.
    """

    namespace: str
    name: str
    uid: str
    reason: str
    message: str
    nominated: str | None = ""


class PodGroupCondition(Struct, frozen=True, gc=False):
    """One condition of a PodGroup; its writer adds transition time and id."""

    type: str
    status: str
    reason: str
    message: str


class PodGroupStatus(Message, frozen=True):
    """The status to be written on a PodGroup; `conditions` is the whole list, `annotations` only what is to be set."""

    namespace: str
    name: str
    phase: str
    conditions: tuple[PodGroupCondition, ...] = ()
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    annotations: dict[str, str] = field(default_factory=dict[str, str])


class QueueStatus(Message, frozen=True):
    """The status.allocated of a queue: resource name -> canonical quantity."""

    name: str
    allocated: dict[str, str] = field(default_factory=dict[str, str])


class PodGroupEvent(Message, frozen=True):
    """An event about a job that no status has room for: why it is not admitted."""

    namespace: str
    name: str
    reason: str
    message: str


class PendingReason(Struct, frozen=True, gc=False):
    """The reason why a task stays pending: the reason and message that its PodScheduled condition has or would have."""

    reason: str
    message: str


class TaskAtOpen(Struct, frozen=True, gc=False):
    """The answers of filters and scorers about a pending task before any action: node -> reason, node -> total
    score.
    """

    pre_predicate: str = ""
    rejected: dict[str, str] = field(default_factory=dict[str, str])
    scores: dict[str, float] = field(default_factory=dict[str, float])


class BindingJob(Struct, frozen=True, gc=False):
    """A job some of whose tasks are bound: its queue, and when its PodGroup was made (seconds since the epoch)."""

    queue: str
    created: float


class CycleReport(Struct, frozen=True, gc=False):
    """The facts for readers beside the decisions. Without report=True there are only `unready` (tasks short of a gang's
    minimum), `binding` and `created`.

    Keys are "namespace/pod" (pipelined, uncommitted, pending, tasks_at_open, pod_annotations) or "namespace/podgroup"
    (phases, task_status, conditions). `queues` holds the gauges at opening under Volcano's metric names,
    `queue_amounts` what Volcano knows of a queue and has no metric for (and who is overused at the end). `binding` are
    the jobs of the binds, `created` when the pod of each bind was made. `pod_annotations`: what plugins assigned to
    pods, bound or not; `numa_allocatable` (node -> resource -> CPUs): what is free in the nodes' NUMA cells at the end;
    `obstacles`: plugin -> why it refuses every job, whatever the job is; `troubles`: plugin -> what it could not find
    out, and the process that was asked.
    `timings` (seconds by OnSessionOpen and OnSessionClose, and plugin) is left empty by the core.
    """

    pipelined: dict[str, str] = field(default_factory=dict[str, str])
    uncommitted: dict[str, str] = field(default_factory=dict[str, str])
    phases: dict[str, str] = field(default_factory=dict[str, str])
    task_status: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    conditions: dict[str, list[PodGroupCondition]] = field(default_factory=dict[str, list[PodGroupCondition]])
    pending: dict[str, PendingReason] = field(default_factory=dict[str, PendingReason])
    queues: QueueColumns = QueueColumns()
    queue_amounts: QueueColumns = QueueColumns()
    unready: dict[str, int] = field(default_factory=dict[str, int])
    tasks_at_open: dict[str, TaskAtOpen] = field(default_factory=dict[str, TaskAtOpen])
    binding: dict[str, BindingJob] = field(default_factory=dict[str, BindingJob])
    created: tuple[float, ...] = ()
    timings: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])
    pod_annotations: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    numa_allocatable: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    obstacles: dict[str, str] = field(default_factory=dict[str, str])
    troubles: dict[str, str] = field(default_factory=dict[str, str])


class Recurring(Struct, frozen=True, gc=False):
    """The changes that time alone makes after each `every_s` seconds. `standing`: the counted inputs of a cycle (nodes,
    queues, tasks by status), so that a change of texts only does not count.
    """

    every_s: float
    standing: tuple[int, ...]


class CycleResult(Message, frozen=True):
    """Everything that one cycle writes, and the carry for the next.

    `digest` (hex) is over the declared fields of binds, evictions, conditions and statuses, in order. `carry` is
    `Carry.to_dict()`. `wake_at` is the earliest moment (seconds since the epoch) at which time alone would change the
    answer of a plugin; None: never. `recurs`: what comes then comes again and again, and
    nothing else comes. `failed`: what users' plugins did not answer.
    """

    cycle: int
    digest: str
    binds: tuple[Bind, ...] = ()
    evicts: tuple[Evict, ...] = ()
    pod_conditions: tuple[PodCondition, ...] = ()
    pod_groups: tuple[PodGroupStatus, ...] = ()
    queues: tuple[QueueStatus, ...] = ()
    events: tuple[PodGroupEvent, ...] = ()
    carry: Object = field(default_factory=Object)
    report: CycleReport = CycleReport()
    wake_at: float | None = None
    failed: tuple[FailedAnswers, ...] = ()
    recurs: Recurring | None = None


Decision = Bind | Evict
"""A journal record of kind "decision"."""
