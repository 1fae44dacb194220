# SPDX-License-Identifier: Apache-2.0
"""The lives of pods, read from a journal: created, bound, run, evicted, ended.

One pass over the records, in memory that grows with the pods there are, not with those that ever were: a pod that is
deleted is passed to the listeners and forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypedDict

from pumice.belonging import group_of, job_of, minimum_of, owner_of, queue_of
from pumice.core.errors import QuantityError
from pumice.core.life.task import ENDED_PHASES
from pumice.core.messages.decisions import Decision, Evict
from pumice.core.messages.events import Evicted, EvictRefused, Mutation, Outcome
from pumice.core.objects.metadata import Object, annotations_of, parse_time, section
from pumice.questions.measures.amounts import allocatable_of, request_of
from pumice.storage import codec
from pumice.storage.journal import API, DECISION, OUTCOME
from pumice.storage.records import read_as

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pumice.questions.measures.amounts import Amount
    from pumice.storage.checkpoint import CheckpointState
    from pumice.storage.journal import Stored


USER: Final = "pumice.dev/user"


@dataclass(slots=True)
class PodLife:
    """One pod. Times are seconds since the epoch, None: not (yet).

    `request` is by resource: cores of cpu, bytes of memory, pieces of the rest. `job` and `queue` may be others
    until the pod is bound: a plain pod gets its group after it was made. `ran_since`: when it began to run, which for a
    pod of a dump is before the journal; `started` is when the journal first says that it runs. `told_to_go`: it was
    deleted or evicted before it had ended by itself.
    """

    namespace: str
    name: str
    uid: str
    created: float
    request: Amount
    group: str = ""
    job: str = ""
    queue: str = ""
    user: str = ""
    priority_class: str = ""
    node: str = ""
    bound: float | None = None
    started: float | None = None
    ran_since: float | None = None
    ended: float | None = None
    phase: str = "Pending"
    evicted_for: str | None = None
    evicted_by: str = ""
    told_to_go: bool = False

    @property
    def full_name(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def evicted(self) -> bool:
        """Return whether the api evicted the pod for the scheduler."""
        return self.evicted_for is not None


@dataclass(slots=True)
class GroupLife:
    """A PodGroup; `job` is its owner, else itself. `admitted`: when it first was more than Pending."""

    namespace: str
    name: str
    job: str
    queue: str
    created: float
    min_member: int = 1
    priority_class: str = ""
    admitted: float | None = None

    def first_admitted(self, before: float | None) -> float | None:
        """Return when its job was first admitted, through this group or an earlier one; a restart makes a new one."""
        return min((at for at in (before, self.admitted) if at is not None), default=None)


class Listener:
    """Is called for everything in the order of the journal, for a pod right after its fields have changed.

    Subclass and override the events you need.
    """

    def pod_created(self, pod: PodLife) -> None:
        """Note a new pod, or a new one of an earlier name."""

    def pod_moved(self, pod: PodLife, job: str, queue: str) -> None:
        """Note that a plain pod has got its PodGroup: before, it was counted with another job and queue."""

    def pod_bound(self, pod: PodLife) -> None:
        """Note that a pod has a node."""

    def pod_started(self, pod: PodLife) -> None:
        """Note that a pod runs."""

    def pod_ended(self, pod: PodLife) -> None:
        """Note that a pod succeeded, failed, or is deleted before it could."""

    def pod_gone(self, pod: PodLife) -> None:
        """Note that a pod is deleted; it has ended before, or at the same moment."""

    def decided(self, evict: Evict) -> None:
        """Note that the scheduler evicts a pod."""

    def group(self, group: GroupLife) -> None:
        """Note a PodGroup that came or changed."""

    def group_gone(self, group: GroupLife) -> None:
        """Note a deleted PodGroup."""

    def job(self, name: str, job: Object | None, at: float) -> None:
        """Note a Volcano Job as it is now; None for a deleted one."""

    def node(self, name: str, allocatable: Amount, at: float) -> None:
        """Note the allocatable resources of a node from now on; none when it was deleted."""

    def queue(self, name: str, queue: Object | None, at: float) -> None:
        """Note a queue as it is now; None for a deleted one."""


class Hearers:
    """By event, the methods of listeners that override it: what none of them hears is not even decoded."""

    def __init__(self, listeners: Sequence[Listener]) -> None:
        def of(event: str) -> list[Any]:
            mine = getattr(Listener, event)
            return [getattr(each, event) for each in listeners if getattr(type(each), event) is not mine]

        self.pod_created: list[Callable[[PodLife], None]] = of("pod_created")
        self.pod_moved: list[Callable[[PodLife, str, str], None]] = of("pod_moved")
        self.pod_bound: list[Callable[[PodLife], None]] = of("pod_bound")
        self.pod_started: list[Callable[[PodLife], None]] = of("pod_started")
        self.pod_ended: list[Callable[[PodLife], None]] = of("pod_ended")
        self.pod_gone: list[Callable[[PodLife], None]] = of("pod_gone")
        self.decided: list[Callable[[Evict], None]] = of("decided")
        self.group: list[Callable[[GroupLife], None]] = of("group")
        self.group_gone: list[Callable[[GroupLife], None]] = of("group_gone")
        self.job: list[Callable[[str, Object | None, float], None]] = of("job")
        self.node: list[Callable[[str, Amount, float], None]] = of("node")
        self.queue: list[Callable[[str, Object | None, float], None]] = of("queue")


class _BoundMetadata(TypedDict, total=False):
    uid: Any
    deletionTimestamp: Any


class _BoundSpec(TypedDict, total=False):
    nodeName: Any


class _BoundStatus(TypedDict, total=False):
    phase: Any
    startTime: Any


class _BoundPod(TypedDict, total=False):
    """What is read of a pod that is bound: to decode nothing else takes a quarter of the time."""

    metadata: _BoundMetadata
    spec: _BoundSpec | None
    status: _BoundStatus | None


_unpack_bound: Final = codec.decoder(_BoundPod)


@dataclass
class Lives:
    """Reads a journal record by record, and calls all `listeners` with the changes of each object.

    `unpack` decodes an object; who shares what it has decoded with others gives its own. `began`: the first moment.
    `sees`: whether objects of a namespace are to be read at all.
    """

    listeners: Sequence[Listener]
    unpack: Callable[[bytes], Object] = codec.unpack
    sees: Callable[[str], bool] | None = None
    pods: dict[str, PodLife] = field(default_factory=dict[str, PodLife])
    groups: dict[str, GroupLife] = field(default_factory=dict[str, GroupLife])
    began: float = 0.0
    _deciding: dict[str, Evict] = field(default_factory=dict[str, Evict])
    _defaults: dict[str, int] = field(default_factory=dict[str, int])
    _newest: tuple[Object, Amount] = field(default_factory=lambda: ({}, {}))

    def __post_init__(self) -> None:
        self._hear = Hearers(self.listeners)
        self._unpack_bound = _unpack_bound if self.unpack is codec.unpack else self.unpack

    def follow(self, stored: Stored) -> None:
        """Follow the next record."""
        if stored.kind == API:
            self.note(read_as(stored, Mutation), stored.at)
        elif stored.kind == DECISION:
            decision = read_as(stored, Decision)
            if isinstance(decision, Evict):
                self.decide(decision)
        elif stored.kind == OUTCOME:
            self._outcome(read_as(stored, Outcome))

    def decide(self, evict: Evict) -> None:
        """Note that the scheduler evicts this pod."""
        if self._is_hidden(evict.namespace):
            return
        self._deciding[evict.uid] = evict
        for tell in self._hear.decided:
            tell(evict)

    def note(self, mutation: Mutation, at: float) -> None:
        """Note a change of the api's truth at a time (seconds since the epoch; to the millisecond)."""
        if self._is_hidden(mutation.namespace):
            return
        at = round(at, 3)
        self.began = self.began or at
        match mutation.kind:
            case "Pod":
                self._pod(mutation, at)
            case "PodGroup":
                self._group(mutation, self.unpack(mutation.blob), at)
            case "Job" if self._hear.job:
                name, obj = _name(mutation), self._unless_gone(mutation)
                for tell in self._hear.job:
                    tell(name, obj, at)
            case "PriorityClass":
                self._class(mutation)
            case "Queue" if self._hear.queue:
                obj = self._unless_gone(mutation)
                for tell in self._hear.queue:
                    tell(mutation.name, obj, at)
            case "Node" if self._hear.node:
                obj = self._unless_gone(mutation)
                amounts: Amount = {} if obj is None else _readable(allocatable_of, section(obj, "status"))
                for told in self._hear.node:
                    told(mutation.name, amounts, at)
            case _:
                pass

    def _is_hidden(self, namespace: str) -> bool:
        return self.sees is not None and namespace != "" and not self.sees(namespace)

    def _outcome(self, outcome: Outcome) -> None:
        match outcome:
            case Evicted():
                pod = self.pods.get(f"{outcome.namespace}/{outcome.name}")
                if pod is not None and pod.uid == outcome.uid:
                    self._evicted(pod)
            case EvictRefused():
                self._deciding.pop(outcome.uid, None)
            case _:
                pass

    def _evicted(self, pod: PodLife) -> None:
        """Note that the pod goes; by whom it was evicted, if there was a decision: the deletion may be in the journal
        before the answer is.
        """
        if (decision := self._deciding.pop(pod.uid, None)) is not None:
            pod.evicted_for, pod.evicted_by = decision.preemptor, decision.action

    def _pod(self, mutation: Mutation, at: float) -> None:
        name = _name(mutation)
        pod = self.pods.get(name)
        unpack = self._unpack_bound if pod is not None and pod.bound is not None else self.unpack
        obj = unpack(mutation.blob)
        uid = str(section(obj, "metadata").get("uid") or "")
        if pod is not None and pod.uid != uid:
            self._gone(pod, at)  # its deletion was cut off, or a copy of the api's truth replaced it
            pod, obj = None, self.unpack(mutation.blob)
        if pod is None:
            if mutation.type == "DELETED":
                return
            pod = self.pods[name] = self._born(mutation, obj, uid, at)
            for tell in self._hear.pod_created:
                tell(pod)
        else:
            self._move(pod, obj)
        self._phases(pod, obj, at)
        if mutation.type == "DELETED":
            self._gone(pod, at)

    def _born(self, mutation: Mutation, obj: Object, uid: str, at: float) -> PodLife:
        pod = PodLife(mutation.namespace, mutation.name, uid, at, self._request_of(section(obj, "spec")))
        pod.priority_class = str(section(obj, "spec").get("priorityClassName") or self._default_class())
        pod.user = str(annotations_of(obj).get(USER) or "")
        self._belongs(pod, obj)
        return pod

    def _request_of(self, spec: Object) -> Amount:
        # Pods of one template follow each other: their request is read once.
        if self._newest[0] is not spec and self._newest[0] != spec:
            self._newest = spec, _readable(request_of, spec)
        return self._newest[1]

    def _move(self, pod: PodLife, obj: Object) -> None:
        before = pod.job, pod.queue
        if pod.bound is None:
            self._belongs(pod, obj)
        if before != (pod.job, pod.queue):
            for tell in self._hear.pod_moved:
                tell(pod, *before)

    def _belongs(self, pod: PodLife, obj: Object) -> None:
        """Find group, queue and job: the job that the pod names, the owner of its PodGroup, that group, or the pod."""
        pod.group = group_of(pod.namespace, obj) or pod.group
        known = self.groups.get(pod.group)
        pod.queue = known.queue if known else ""
        pod.job = job_of(pod.namespace, obj) or (known.job if known else pod.group or pod.full_name)

    def _phases(self, pod: PodLife, obj: Object, at: float) -> None:
        node, phase = section(obj, "spec").get("nodeName"), str(section(obj, "status").get("phase") or "Pending")
        if node and pod.bound is None:
            pod.node, pod.bound = str(node), at
            for tell in self._hear.pod_bound:
                tell(pod)
        if phase == "Running" and pod.started is None:
            pod.started, pod.ran_since = at, _ran_since(obj, at)
            for tell in self._hear.pod_started:
                tell(pod)
        pod.phase = phase
        if phase in ENDED_PHASES and pod.ended is None:
            if section(obj, "metadata").get("deletionTimestamp"):
                self._told_to_go(pod)  # its last phase is that of a pod that was asked to stop
            self._end(pod, at)

    def _told_to_go(self, pod: PodLife) -> None:
        pod.told_to_go = True
        self._evicted(pod)

    def _end(self, pod: PodLife, at: float) -> None:
        pod.ended = at
        for tell in self._hear.pod_ended:
            tell(pod)

    def _gone(self, pod: PodLife, at: float) -> None:
        if pod.ended is None:
            self._told_to_go(pod)
            self._end(pod, at)
        for tell in self._hear.pod_gone:
            tell(pod)
        self.pods.pop(pod.full_name, None)
        self._deciding.pop(pod.uid, None)

    def _unless_gone(self, mutation: Mutation) -> Object | None:
        return None if mutation.type == "DELETED" else self.unpack(mutation.blob)

    def _class(self, mutation: Mutation) -> None:
        self._defaults.pop(mutation.name, None)
        found = self._unless_gone(mutation)
        if found is not None and found.get("globalDefault"):
            self._defaults[mutation.name] = int(found.get("value") or 0)

    def _default_class(self) -> str:
        """Return the default class of pods that name none: of several defaults Kubernetes takes the lowest
        (plugin/admission/priority).
        """
        return min(self._defaults, key=lambda name: (self._defaults[name], name), default="")

    def _group(self, mutation: Mutation, obj: Object, at: float) -> None:
        name = _name(mutation)
        if mutation.type == "DELETED":
            if (gone := self.groups.pop(name, None)) is not None:
                for tell in self._hear.group_gone:
                    tell(gone)
            return
        spec, phase = section(obj, "spec"), section(obj, "status").get("phase")
        group = self.groups.get(name) or GroupLife(mutation.namespace, mutation.name, "", "", at)
        group.job, group.queue = owner_of(obj), queue_of(obj)
        group.min_member = minimum_of(obj)
        group.priority_class = str(spec.get("priorityClassName") or group.priority_class or self._default_class())
        if group.admitted is None and phase not in (None, "", "Pending"):
            group.admitted = at
        self.groups[name] = group
        for tell in self._hear.group:
            tell(group)


def there_at(state: CheckpointState) -> list[Mutation]:
    """Return the objects of a state as changes: classes first, since groups may have one by default, and pods last,
    since they are in groups."""
    there = [Mutation(held.revision, "ADDED", kind, *name, held.blob) for kind, name, held in state.truth.rows()]
    return sorted(there, key=lambda one: (one.kind == "Pod", one.kind != "PriorityClass"))


def _name(mutation: Mutation) -> str:
    return f"{mutation.namespace}/{mutation.name}" if mutation.namespace else mutation.name


def _ran_since(obj: Object, at: float) -> float:
    """Return when a running pod started, by its status where that lies in the past.

    Kubernetes writes whole seconds: a start in this very second is now. Else each pod would have run for half a second
    more than it did, which adds up where pods are evicted again and again.
    """
    text = section(obj, "status").get("startTime")
    try:
        since = parse_time(text) if isinstance(text, str) else at
    except ValueError:
        return at
    return since if at - since >= 1.0 else at


def _readable(read: Any, part: Object) -> Amount:
    """Return readable quantities; nothing for invalid ones."""
    try:
        found: Amount = read(part)
    except QuantityError:
        return {}
    return found
