"""The books of a storm's monitor: what the api's mutations say, with as much history as judging a decision needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from core.messages.events import Mutation
from core.objects.metadata import section
from core.quantity import parse_quantity
from storage import codec

if TYPE_CHECKING:
    from actors.api.store import Store

Object = dict[str, Any]
Amounts = dict[str, int]
ENDED: Final = ("Succeeded", "Failed")
GROUP: Final = "scheduling.k8s.io/group-name"
SCHEDULER: Final = "volcano"


@dataclass(slots=True)
class PodBook:
    """A pod as the api has it. `job` is "namespace/group"."""

    key: str
    uid: str
    job: str
    requests: Amounts
    ports: tuple[int, ...]
    node: str = ""
    phase: str = "Pending"
    deleting: bool = False
    condition: str = ""

    @property
    def on_node(self) -> bool:
        """Takes up room."""
        return bool(self.node) and self.phase not in ENDED


@dataclass(slots=True)
class History:
    """Values with the revision they are in force from; None: the object was gone."""

    values: list[tuple[int, Any]] = field(default_factory=list[tuple[int, Any]])

    def add(self, revision: int, value: Any) -> None:
        """From this revision on."""
        if not self.values or self.values[-1][1] != value:
            self.values.append((revision, value))

    def since(self, revision: int) -> list[Any]:
        """All that were in force at `revision` or later."""
        first = max((index for index, (at, _) in enumerate(self.values) if at <= revision), default=0)
        return [value for _, value in self.values[first:]]

    @property
    def last(self) -> Any:
        """The newest; None when there never was one."""
        return self.values[-1][1] if self.values else None


class Truth:
    """Pods, nodes, groups and queues after `revision`."""

    def __init__(self) -> None:
        self.revision = 0
        self.pods: dict[str, PodBook] = {}
        self.bound_at: dict[str, int] = {}
        self.nodes: dict[str, History] = {}
        self.groups: dict[str, History] = {}
        self.queues: dict[str, History] = {}
        self.blobs: dict[tuple[str, str, str], bytes] = {}
        self._on: dict[str, dict[str, PodBook]] = {}
        self._losses: dict[str, list[int]] = {}

    def begin(self, store: Store) -> None:
        """Start from what a store holds already."""
        for kind in store.tables.kinds():
            for name, record in store.tables.of_kind(kind):
                self.apply(Mutation(record.revision, "ADDED", kind, *name, record.blob))
        self.revision = store.revision

    def apply(self, mutation: Mutation) -> tuple[PodBook, str] | None:
        """Take it over. When it put a pod on a node: the pod, and the node it was on before."""
        self.revision = mutation.revision
        key = (mutation.kind, mutation.namespace, mutation.name)
        gone = mutation.type == "DELETED"
        if gone:
            self.blobs.pop(key, None)
        else:
            self.blobs[key] = mutation.blob
        match mutation.kind:
            case "Pod":
                return self._pod(mutation, gone=gone)
            case "Node":
                self._note(
                    self.nodes, mutation.name, None if gone else _allocatable(codec.unpack_shared(mutation.blob))
                )
            case "PodGroup":
                name = f"{mutation.namespace}/{mutation.name}"
                self._note(self.groups, name, None if gone else _group(codec.unpack_shared(mutation.blob)))
            case "Queue":
                self._note(
                    self.queues, mutation.name, None if gone else _capability(codec.unpack_shared(mutation.blob))
                )
            case _:
                pass
        return None

    def _note(self, table: dict[str, History], name: str, value: Any) -> None:
        table.setdefault(name, History()).add(self.revision, value)

    def _pod(self, mutation: Mutation, *, gone: bool) -> tuple[PodBook, str] | None:
        key = f"{mutation.namespace}/{mutation.name}"
        before = self.pods.get(key)
        if before is not None and before.node:
            self._on[before.node].pop(key, None)
        if gone:
            self.pods.pop(key, None)
            self._lost(before)
            return None
        pod = _read_pod(key, codec.unpack_shared(mutation.blob), before)
        self.pods[key] = pod
        if pod.phase == "Failed" and before is not None and before.phase != "Failed":
            self._lost(before)
        if pod.node:
            self._on.setdefault(pod.node, {})[key] = pod
        was = before.node if before is not None and before.uid == pod.uid else ""
        if not pod.node or pod.node == was:
            return None
        self.bound_at[pod.uid] = self.revision
        return pod, was

    def _lost(self, pod: PodBook | None) -> None:
        if pod is not None:
            self._losses.setdefault(pod.job, []).append(self.revision)

    # --- judging

    def judge(self, pod: PodBook, revision: int, leaving: frozenset[str] = frozenset()) -> Iterator[tuple[str, str]]:
        """What is wrong with this pod on its node, decided on what `revision` said: invariant and words.

        Volcano does not count against a queue what it is evicting: `leaving`, by uid.
        """
        others = [each for each in self._on[pod.node].values() if each.on_node]
        history = self.nodes.get(pod.node)
        allowed = [each for each in history.since(revision) if each is not None] if history is not None else []
        if allowed:
            yield from self._over("within-allocatable", f"node {pod.node}", others, _most(allowed), len(others))
        for other in others:
            if other is not pod and set(other.ports) & set(pod.ports):
                yield "within-allocatable", f"node {pod.node}: {pod.key} and {other.key} share a host port"
        yield from self._judge_queue(pod, revision, leaving)

    def _judge_queue(self, pod: PodBook, revision: int, leaving: frozenset[str]) -> Iterator[tuple[str, str]]:
        group = self.groups.get(pod.job)
        if group is None or group.last is None:
            return
        name = group.last[1]
        capabilities: list[Amounts] = self.queues[name].since(revision) if name in self.queues else []
        if not capabilities or not all(capabilities):
            return
        staying = [
            each for each in self.pods.values() if each.on_node and not each.deleting and each.uid not in leaving
        ]
        members = [each for each in staying if self._in(each, name)]
        yield from self._over("within-capability", f"queue {name}", members, _most(capabilities), None)

    def _in(self, pod: PodBook, queue: str) -> bool:
        group = self.groups.get(pod.job)
        return group is not None and group.last is not None and group.last[1] == queue

    def _over(
        self, invariant: str, what: str, pods: list[PodBook], allowed: Amounts, count: int | None
    ) -> Iterator[tuple[str, str]]:
        totals = {} if count is None else {"pods": count * 1000}
        for pod in pods:
            for name, amount in pod.requests.items():
                totals[name] = totals.get(name, 0) + amount
        for name, amount in totals.items():
            limit = allowed.get(name, 0 if count is not None else None)
            if limit is not None and amount > limit:
                pods_there = ", ".join(sorted(pod.key for pod in pods))
                yield invariant, f"{what}: {name} {amount / 1000:g} of {limit / 1000:g} by {pods_there}"

    def partial_gang(self, job: str, decided: set[str], revision: int) -> str:
        """Words when the job's pods that are placed or decided are fewer than it needs; "" when all is well."""
        history = self.groups.get(job)
        if history is None:
            return ""
        groups = [each for each in history.since(revision) if each is not None]
        needed = min((each[0] for each in groups), default=0)
        members = [pod for pod in self.pods.values() if pod.job == job]
        gone = self._lost_after(job, revision)
        placed = [pod for pod in members if pod.phase != "Failed" and (pod.node or pod.uid in decided)]
        if len(placed) + gone >= needed:
            return ""
        return f"gang {job} needs {needed}, {len(placed)} are placed or on their way"

    def _lost_after(self, job: str, revision: int) -> int:
        """Members the scheduler could still count on at `revision`, though they have failed or gone since."""
        return sum(1 for at in self._losses.get(job, ()) if at > revision)


def _read_pod(key: str, obj: Object, before: PodBook | None) -> PodBook:
    meta, spec, status = obj["metadata"], obj["spec"], section(obj, "status")
    uid = meta["uid"]
    scheduled = next((each for each in status.get("conditions") or () if each["type"] == "PodScheduled"), None)
    reason = scheduled.get("reason", "") if scheduled is not None and scheduled["status"] == "False" else ""
    annotations: Object = meta.get("annotations") or {}
    same = before is not None and before.uid == uid
    return PodBook(
        key=key,
        uid=uid,
        job=f"{meta['namespace']}/{annotations.get(GROUP, '')}",
        requests=before.requests if before is not None and same else _requests(spec),
        ports=before.ports if before is not None and same else _ports(spec),
        node=spec.get("nodeName") or "",
        phase=status.get("phase") or "Pending",
        deleting="deletionTimestamp" in meta,
        condition=reason,
    )


def _requests(spec: Object) -> Amounts:
    total: Amounts = {}
    for container in spec["containers"]:
        asked: Object = section(container, "resources").get("requests") or {}
        for name, amount in asked.items():
            total[name] = total.get(name, 0) + _milli(str(amount))
    return total


def _ports(spec: Object) -> tuple[int, ...]:
    return tuple(
        port["hostPort"] for each in spec["containers"] for port in each.get("ports") or () if port.get("hostPort")
    )


def _allocatable(node: Object) -> Amounts:
    return {name: _milli(str(amount)) for name, amount in section(node, "status").get("allocatable", {}).items()}


def _group(obj: Object) -> tuple[int, str]:
    spec = section(obj, "spec")
    return int(spec.get("minMember", 0)), spec.get("queue") or "default"


def _capability(obj: Object) -> Amounts:
    capability: Object = section(obj, "spec").get("capability") or {}
    return {name: _milli(str(amount)) for name, amount in capability.items()}


def _most(all_of: list[Amounts]) -> Amounts:
    names = {name for each in all_of for name in each}
    return {name: max(each.get(name, 0) for each in all_of) for name in sorted(names)}


@lru_cache(maxsize=4096)
def _milli(text: str) -> int:
    return parse_quantity(text).milli_value()
