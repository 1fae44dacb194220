# SPDX-License-Identifier: Apache-2.0
"""The books of a storm's monitor: the state by the api's mutations, with as much history as checking a decision needs.

Sums over nodes and queues are kept up to date, so that judging a pod that fits needs no walk over the others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import Object, section
from pumice.proof.storm.extender import admits
from pumice.proof.storm.invariants.card_books import over_assigned
from pumice.proof.storm.invariants.claim_books import KINDS as CLAIM_KINDS
from pumice.proof.storm.invariants.claim_books import ClaimBooks
from pumice.proof.storm.invariants.pod_book import Amounts, BookedPodReader, PodBook, amounts, share_port
from pumice.proof.storm.invariants.queue_sums import add_up, greatest, no_sums, what_is_over
from pumice.proof.storm.invariants.upheld import (
    ALL,
    CAPABILITY,
    CARDS,
    CLAIMS,
    EXTENDER,
    KEPT_CARDS,
    POD_COUNT,
    PORTS,
)
from pumice.storage.shared_objects import SharedObjects

if TYPE_CHECKING:
    from pumice.cluster.api.store import Store


SCHEDULERS: Final = ("volcano", "default-scheduler")


@dataclass(slots=True)
class History:
    """Values with the revision they are in force from; None: the object was gone."""

    values: list[tuple[int, Any]] = field(default_factory=list[tuple[int, Any]])

    def add(self, revision: int, value: object) -> None:
        """Add the value in force from this revision on."""
        if not self.values or self.values[-1][1] != value:
            self.values.append((revision, value))

    def since(self, revision: int) -> list[Any]:
        """Return all that were in force at `revision` or later."""
        first = len(self.values) - 1
        while first > 0 and self.values[first][0] > revision:
            first -= 1
        return [value for _, value in self.values[first:]]

    @property
    def last(self) -> Any:
        """Return the newest value; None without any."""
        return self.values[-1][1] if self.values else None


class StormTruth:
    """Pods, nodes, groups and queues after `revision`. `objects`: written objects that may be decoded already."""

    def __init__(self, objects: SharedObjects | None = None) -> None:
        self.read: Callable[[bytes], Object] = (objects or SharedObjects()).unpack
        self.revision = 0
        self.pods: dict[str, PodBook] = {}
        self.bound_at: dict[str, int] = {}
        self.nodes: dict[str, History] = {}
        self.groups: dict[str, History] = {}
        self.queues: dict[str, History] = {}
        self.parents: dict[str, str] = {}
        self.went: list[tuple[int, PodBook]] = []
        """Pods that ended at a revision, began to be deleted then, or were deleted immediately."""
        self.left_at: dict[str, int] = {}
        """Revision at which a pod last gave its room on a node back."""
        self.claims = ClaimBooks(self.read)
        self.blobs: dict[tuple[str, str, str], bytes] = {}
        self._specs: dict[tuple[str, str, str], Object | None] = {}
        self._members: dict[str, dict[str, None]] = {}
        self._on: dict[str, dict[str, None]] = {}
        self._used = no_sums()
        self._held = no_sums()
        self._losses: dict[str, list[tuple[int, str]]] = {}
        self._deleted_at: dict[str, int] = {}
        self._reader = BookedPodReader()

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
        if mutation.type == "DELETED":
            obj = None
            self.blobs.pop(key, None)
        else:
            obj = self.read(mutation.blob)
            self.blobs[key] = mutation.blob
        match mutation.kind:
            case "Pod":
                return self._pod(mutation, obj)
            case "Node":
                self._note(self.nodes, mutation.name, None if obj is None else _allocatable(obj))
            case "PodGroup" if self._may_differ(key, obj):
                self._group(f"{mutation.namespace}/{mutation.name}", None if obj is None else _read_group(obj))
            case "Queue" if self._may_differ(key, obj):
                self._note(self.queues, mutation.name, None if obj is None else _capability(obj))
                self.parents[mutation.name] = "" if obj is None else section(obj, "spec").get("parent") or ""
            case kind if kind in CLAIM_KINDS:
                self.claims.apply(mutation)
            case _:
                pass
        return None

    def _may_differ(self, key: tuple[str, str, str], obj: Object | None) -> bool:
        """Return whether the spec may have changed since the last read: a status writer leaves the very same spec
        object."""
        spec = None if obj is None else obj.get("spec")
        before, self._specs[key] = self._specs.get(key), spec
        return spec is None or spec is not before

    def _note(self, table: dict[str, History], name: str, value: object) -> None:
        table.setdefault(name, History()).add(self.revision, value)

    def _group(self, job: str, value: tuple[int, str] | None) -> None:
        """Note a group: its members count in the queue that it names from now on."""
        before = self.queue_of(job)
        self._note(self.groups, job, value)
        after = self.queue_of(job)
        if before != after:
            for pod in self._staying(self._members.get(job, ())):
                add_up(self._held, before, pod.requests, -1)
                add_up(self._held, after, pod.requests, 1)

    def _pod(self, mutation: Mutation, obj: Object | None) -> tuple[PodBook, str] | None:
        key = f"{mutation.namespace}/{mutation.name}"
        before = self.pods.get(key)
        if obj is None:
            self._replace(key, before, None)
            self._lost(before)
            return None
        pod = self._reader.read(key, obj, before)
        if pod is before:
            return None
        self._replace(key, before, pod)
        if pod.phase == "Failed" and before is not None and before.phase != "Failed":
            self._lost(before)
        if pod.deleting:
            self._deleted_at.setdefault(pod.uid, self.revision)
        was = before.node if before is not None and before.uid == pod.uid else ""
        if not pod.node or pod.node == was:
            return None
        self.bound_at[pod.uid] = self.revision
        return None if mutation.type == "ADDED" else (pod, was)  # it came with its node: no cycle decided that

    def is_ours(self, pod: PodBook) -> bool:
        """Return whether a scheduler of this system must place the pod."""
        return self.object_of(pod)["spec"].get("schedulerName") in SCHEDULERS

    def object_of(self, pod: PodBook) -> Object:
        """Return the pod that the api's newest mutation has."""
        namespace, _, name = pod.key.partition("/")
        obj: Object = self.read(self.blobs["Pod", namespace, name])
        return obj

    def on(self, node: str, *, leaving: bool = True) -> Iterator[Object]:
        """Return the pods on a node, without ended ones; `leaving`: with those that are being deleted."""
        there = [self.pods[key] for key in self._on.get(node, ())]
        return (self.object_of(pod) for pod in there if leaving or not pod.deleting)

    def _object(self, kind: str, namespace: str, name: str) -> Object | None:
        blob = self.blobs.get((kind, namespace, name))
        return None if blob is None else self.read(blob)

    def all_of(self, kind: str) -> Iterator[Object]:
        """Return all objects of a kind."""
        return (self.read(blob) for (each, _, _), blob in self.blobs.items() if each == kind)

    def _replace(self, key: str, before: PodBook | None, after: PodBook | None) -> None:
        """Replace the pod in the table and in all sums."""
        if after is None:
            self.pods.pop(key, None)
        else:
            self.pods[key] = after
        if before is not None and after is not None and before.counts_as(after):
            return
        self._note_leaving(before, after)
        if before is not None:
            self._count(before, -1)
            self._members[before.job].pop(key, None)
        if after is not None:
            self._count(after, 1)
            self._members.setdefault(after.job, {})[key] = None

    def _note_leaving(self, before: PodBook | None, after: PodBook | None) -> None:
        if before is None:
            return
        same = after if after is not None and after.uid == before.uid else None
        if not before.leaves and (same is None or same.leaves):
            self.went.append((self.revision, before))
        if before.on_node and (same is None or not same.on_node):
            self.left_at[before.node] = self.revision

    def _count(self, pod: PodBook, sign: int) -> None:
        if not pod.on_node:
            return
        there = self._on.setdefault(pod.node, {})
        if sign > 0:
            there[pod.key] = None
        else:
            there.pop(pod.key, None)
        add_up(self._used, pod.node, pod.requests, sign)
        if not pod.deleting:
            add_up(self._held, self.queue_of(pod.job), pod.requests, sign)

    def _lost(self, pod: PodBook | None) -> None:
        if pod is not None:
            self._losses.setdefault(pod.job, []).append((self.revision, pod.uid))

    def queue_of(self, job: str) -> str:
        """Return the queue of a job's group; "" without a group."""
        group = self.groups.get(job)
        last = group.last if group is not None else None
        return last[1] if last is not None else ""

    def queues_since(self, job: str, revision: int) -> set[str]:
        """Return all queues that a job's group was in at `revision` or later; "" while there was no group."""
        group = self.groups.get(job)
        return {each[1] if each is not None else "" for each in group.since(revision)} if group is not None else {""}

    def last_queue(self, name: str) -> Amounts | None:
        """Return the capability of a queue; None when the queue does not exist."""
        history = self.queues.get(name)
        capability: Amounts | None = history.last if history is not None else None
        return capability

    # --- judging

    def judge(
        self, pod: PodBook, revision: int, leaving: frozenset[str] = frozenset(), upheld: frozenset[str] = ALL
    ) -> Iterator[tuple[str, str]]:
        """Yield the problems of this pod on its node, decided on the state at `revision`: invariant and words.

        Volcano does not count against a queue what it is evicting: `leaving`, by uid. A pod that has ended takes up no
        room; and a pod is asked about what it requests only: one that asks for no cpu may join a node that was made
        smaller than its pods. `upheld`: what the scheduler is configured to see to (see `invariants.upheld`).
        """
        if pod.ended:
            return
        history = self.nodes.get(pod.node)
        allowed = [each for each in history.since(revision) if each is not None] if history is not None else []
        if allowed:
            asked = {name: self._used[pod.node][name] for name, amount in pod.requests.items() if amount}
            for resource, excess in what_is_over(asked, greatest(allowed), 0):
                if resource != POD_COUNT or POD_COUNT in upheld:
                    yield "within-allocatable", f"node {pod.node}: {excess} by {', '.join(sorted(self._on[pod.node]))}"
        if pod.ports and PORTS in upheld:
            yield from self._judge_ports(pod)
        if CLAIMS in upheld:
            yield from self.claims.judge(self.object_of(pod))
        if CARDS in upheld:
            there = self.on(pod.node, leaving=KEPT_CARDS in upheld)
            yield from over_assigned(self._object("Node", "", pod.node), there, upheld)
        if EXTENDER in upheld and not admits(pod.key, pod.node):
            yield "extender-heeded", f"pod {pod.key} is on {pod.node}, where the extender would not have it"
        if CAPABILITY in upheld:
            yield from self._judge_queue(pod, revision, leaving)

    def _judge_ports(self, pod: PodBook) -> Iterator[tuple[str, str]]:
        for key in self._on[pod.node]:
            if key != pod.key and share_port(self.pods[key].ports, pod.ports):
                yield "within-allocatable", f"node {pod.node}: {pod.key} and {key} share a host port"

    def _judge_queue(self, pod: PodBook, revision: int, leaving: frozenset[str]) -> Iterator[tuple[str, str]]:
        name = self.queue_of(pod.job)
        capabilities: list[Amounts] = self.queues[name].since(revision) if name in self.queues else []
        if not capabilities or not all(capabilities):
            return
        allowed = greatest(capabilities)
        if not any(what_is_over(self._held.get(name, {}), allowed, None)):
            return
        members = [
            each for each in self._staying(self.pods) if each.uid not in leaving and self.queue_of(each.job) == name
        ]
        totals = no_sums()
        for each in members:
            add_up(totals, name, each.requests, 1)
        for _, excess in what_is_over(totals.get(name, {}), allowed, None):
            yield "within-capability", f"queue {name}: {excess} by {', '.join(sorted(each.key for each in members))}"

    def _staying(self, keys: Collection[str]) -> list[PodBook]:
        """Return those of these pods that are on nodes and not on their way out."""
        return [pod for pod in map(self.pods.__getitem__, keys) if pod.on_node and not pod.deleting]

    def members(self, job: str) -> list[PodBook]:
        """Return the pods of a job's group."""
        return [self.pods[key] for key in self._members.get(job, ())]

    def lost_after(self, job: str, revision: int) -> list[str]:
        """Return uids of members that the scheduler could still count on at `revision`, though they have failed or gone
        since.
        """
        return [uid for at, uid in self._losses.get(job, ()) if at > revision]

    def stayed(self, uid: str, revision: int) -> bool:
        """Return whether the deletion of a pod had not begun at `revision`."""
        return self._deleted_at.get(uid, revision + 1) > revision


def _allocatable(node: Object) -> Amounts:
    return amounts(section(node, "status").get("allocatable", {}))


def _read_group(obj: Object) -> tuple[int, str]:
    return int((spec := section(obj, "spec")).get("minMember", 0)), spec.get("queue") or "default"


def _capability(obj: Object) -> Amounts:
    """Return the capability without pods, which no queue counts."""
    said = amounts(section(obj, "spec").get("capability") or {})
    return {name: most for name, most in said.items() if name != "pods"}
