# SPDX-License-Identifier: Apache-2.0
"""Changes cut into cycles: the state before the cluster's scheduler when it decided, and its decisions.

A scheduler looks once, decides, and carries out one bind after the other, which is all that others see. So what was
decided in a row, of pods that were there before the first of it, counts as one cycle that saw what was there then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from zlib import crc32

from pumice.actors.real_clusters.mirror.changes import Key, RemoteChange
from pumice.core.life.task import ENDED_PHASES
from pumice.core.messages.decisions import Bind, Decision, Evict
from pumice.core.objects.metadata import Object, controlling_owner, section, text_map
from pumice.core.objects.pod import GROUP_NAME
from pumice.storage import codec

# --- Decisions that changes of pods tell of

SCHEDULER: Final = "volcano"
BECAUSE: Final = "Pod is evicted, because of "
"""What Volcano writes into an evicted pod's Ready condition, before the reason (source: `cache.go`, defaultEvictor)."""
PREEMPTED: Final = "PreemptionByScheduler"


class PodSeen(NamedTuple):
    """The last seen state of a pod; `asks`: a checksum of the fields that other clients than its scheduler may change
    while it waits.
    """

    uid: str
    node: str
    leaving: bool
    asks: int = 0


class Nominated(NamedTuple):
    """A pod for which room is made on a node; `job` is "namespace/name" of its PodGroup."""

    node: str
    key: str
    uid: str
    job: str


def nominated(pod: Object) -> Nominated | None:
    """Return the nomination of a waiting pod, None without one."""
    node = section(pod, "status").get("nominatedNodeName")
    if not node or section(pod, "spec").get("nodeName"):
        return None
    meta = section(pod, "metadata")
    namespace, group = str(meta.get("namespace") or ""), text_map(meta.get("annotations")).get(GROUP_NAME)
    job = f"{namespace}/{group}" if group else ""
    return Nominated(str(node), f"{namespace}/{meta['name']}", str(meta.get("uid") or ""), job)


def written_by_session(before: PodSeen | None, pod: Object) -> bool:
    """Return whether a session of Volcano's may have made this of the last seen state.

    It writes the condition and the nomination of a pod that waits (`taskUnschedulable`), and the condition of a pod
    that it is about to delete (`defaultEvictor`).
    """
    now = seen(pod)
    if before is None or before.uid != now.uid or now.leaving or section(pod, "spec").get("schedulerName") != SCHEDULER:
        return False
    return evicted_for(pod) is not None if before.node else not now.node and before.asks == now.asks


def seen(pod: Object) -> PodSeen:
    """Return the state of the pod."""
    meta = section(pod, "metadata")
    spec = section(pod, "spec")
    node = spec.get("nodeName") or ""
    asks = (
        # A checksum and not the values: one is kept for every waiting pod of the cluster.
        0 if node else crc32(repr((meta.get("labels"), meta.get("annotations"), spec.get("schedulingGates"))).encode())
    )
    return PodSeen(str(meta.get("uid") or ""), str(node), bool(meta.get("deletionTimestamp")), asks)


def decision_of(before: PodSeen | None, pod: Object, *, gone: bool) -> Decision | None:
    """Return the decision of Volcano's that turned the last seen state into this; None without one."""
    now = seen(pod)
    if before is None or before.uid != now.uid or section(pod, "spec").get("schedulerName") != SCHEDULER:
        return None
    meta = section(pod, "metadata")
    namespace, name = str(meta.get("namespace") or ""), str(meta["name"])
    group = text_map(meta.get("annotations")).get(GROUP_NAME)
    job = f"{namespace}/{group}" if group else ""
    if now.node and not before.node:
        return Bind(namespace, name, now.uid, now.node, job)
    reason = evicted_for(pod) if (now.leaving or gone) and not before.leaving and before.node else None
    return None if reason is None else Evict(namespace, name, now.uid, before.node, job, reason, action=reason)


def before_bind(pod: Object) -> Object | None:
    """Return a pod of Volcano's that has a node, as it must have been before; None for a pod without a node or of
    another scheduler.
    """
    spec = section(pod, "spec")
    if spec.get("schedulerName") != SCHEDULER or not spec.get("nodeName"):
        return None
    # A pod that was deleted in the same look was not yet leaving when it was bound.
    meta = {key: value for key, value in section(pod, "metadata").items() if not key.startswith("deletion")}
    waiting = {key: value for key, value in spec.items() if key != "nodeName"}
    return {**pod, "metadata": meta, "spec": waiting, "status": {"phase": "Pending"}}


def evicted_for(pod: Object) -> str | None:
    """Return the reason of Volcano's for which it is evicted; None for another one."""
    conditions: list[Object] = section(pod, "status").get("conditions") or []
    told = {str(each.get("type")): each for each in conditions}
    message = str(told.get("Ready", {}).get("message") or "")
    if message.startswith(BECAUSE):
        return message.removeprefix(BECAUSE)
    # The kubelet writes Ready anew while the pod ends, and keeps this one (`pkg/kubelet/status/status_manager.go`).
    target = told.get("DisruptionTarget", {})
    mine = str(target.get("message") or "").startswith(f"{SCHEDULER}:")
    return "" if mine and target.get("reason") == PREEMPTED else None


OUTSIDE: Final = "cluster"
"""The user of changes that come from people and from controllers that Pumice is not: a replay hands them in again."""
INSIDE: Final = "mirror"
"""The user of changes that follow from those: what a scheduler, Volcano's controllers and kubelets do, and statuses."""
COUNTED: Final = ("PodGroup", "Queue", "Job")
"""Kinds whose generation says whether more than the status has changed."""
UNSURE: Final = 60
"""Limit of changes between a look and its first bind."""
VOLCANO_JOB: Final = ("batch.volcano.sh/v1alpha1", "Job")


def controlled(kind: str, obj: Object) -> bool:
    """Return whether Volcano's controllers made the object: the parts of a Job, and the PodGroup of a pod that has
    none.
    """
    owner = controlling_owner(obj)
    return owner is not None and (kind == "PodGroup" or (owner.get("apiVersion"), owner.get("kind")) == VOLCANO_JOB)


class KnownObject(NamedTuple):
    """The last seen state of an object; `controlled`: Volcano's controllers manage it."""

    uid: str
    generation: Any
    controlled: bool


class MarkedChange(NamedTuple):
    """A change, its object, and the decision of its cycle that it carries out; None without one.

    `written`: a session of the scheduler may have written it, about a pod, at the end of the very cycle whose
    decisions are seen after it.
    """

    change: RemoteChange
    user: str
    decision: int | None = None
    written: bool = False


def _makes_room(marked: MarkedChange) -> bool:
    change, obj = marked.change, marked.change.obj
    if marked.written:
        return True
    if change.kind != "Pod":
        return change.kind in COUNTED and marked.user == INSIDE
    return change.gone or obj is None or seen(obj).leaving or section(obj, "status").get("phase") in ENDED_PHASES


@dataclass
class ObservedCycle:
    """Changes before the decisions of a cycle, the decisions, and the changes with and after them."""

    before: list[MarkedChange] = field(default_factory=list[MarkedChange])
    decided: list[Decision] = field(default_factory=list[Decision])
    after: list[MarkedChange] = field(default_factory=list[MarkedChange])

    def part(self) -> int:
        """Return the place in `before` after which all changes may have come after the scheduler had looked, and have
        been seen before its first decision: freed room, statuses, and writes of its own session.
        """
        place, unsure = len(self.before), 0
        # Bounded: after a quiet hour every change would be in question, and each candidate is decided anew.
        while place and unsure < UNSURE and _makes_room(self.before[place - 1]):
            place -= 1
            unsure += not self.before[place].written
        return place

    def following(self, place: int) -> int:
        """Return the next place at which the scheduler may have looked: a session sends its writes together."""
        if not self.before[place].written:
            return place + 1
        while place < len(self.before) and self.before[place].written:
            place += 1
        return place

    def defer(self) -> None:
        """Move the writes of the session itself, which came just before its decisions, behind these.

        Words and nominations of waiting pods come through another request than binds and evictions, and may be seen
        first. A cycle that is decided again must not find its own nominations.
        """
        place = self.part()
        tail, self.before = self.before[place:], self.before[:place]
        self.before += [each for each in tail if not each.written]
        self.after = [*(each for each in tail if each.written), *self.after]

    def nominated(self) -> dict[str, list[Nominated]]:
        """Return, by node, the pods that wait for room there as the scheduler wrote in this cycle."""
        found: dict[str, list[Nominated]] = {}
        for marked in (*self.before, *self.after):
            if marked.written and marked.change.obj is not None and (each := nominated(marked.change.obj)) is not None:
                found.setdefault(each.node, []).append(each)
        return found


class CycleCutter:
    """Cuts changes into cycles. It knows every object that has passed: of pods what identifies decisions, of the others
    their generation.
    """

    def __init__(self) -> None:
        self._pods: dict[Key, PodSeen] = {}
        self._known: dict[Key, KnownObject] = {}

    def know(self, key: Key, obj: Object) -> None:
        """Note an object that existed before."""
        meta = section(obj, "metadata")
        self._known[key] = KnownObject(str(meta.get("uid")), meta.get("generation"), controlled(key[0], obj))
        if key[0] == "Pod":
            self._pods[key] = seen(obj)

    def names(self, kind: str) -> list[Key]:
        """Return all known objects of a kind."""
        return [key for key in self._known if key[0] == kind]

    def cut(self, changes: list[RemoteChange]) -> list[ObservedCycle]:
        """Yield cycles in order; the last one may have no decision, and none is without a change."""
        cycles, late = [ObservedCycle()], set[Key]()
        for change in (*self._missed(changes), *changes):
            decision = self._decision(change)
            # An object that came after the first decision cannot have been seen by it: another cycle decided about it.
            if decision is not None and change.key in late:
                cycles.append(ObservedCycle())
                late = set[Key]()
            cycle = cycles[-1]
            number = len(cycle.decided) if decision else None
            marked = MarkedChange(change, self._user(change, decision), number, self._written(change))
            if decision is not None:
                cycle.decided.append(decision)
            # The change that shows a decision counts as after it: the scheduler saw the pod as it was before.
            (cycle.after if cycle.decided else cycle.before).append(marked)
            if cycle.decided and change.key not in self._known:
                late.add(change.key)
            self._pass(change)
        return [cycle for cycle in cycles if cycle.before or cycle.after]

    def _missed(self, changes: list[RemoteChange]) -> list[RemoteChange]:
        """Return pods that came and were bound between two looks, as they came. On a first look the time is unknown."""
        found: list[RemoteChange] = []
        # On a first look every bound pod is news, and none of them was bound between two looks.
        for change in changes if self._known else ():
            if change.kind == "Pod" and change.obj is not None and not change.gone:
                before, now = self._pods.get(change.key), seen(change.obj)
                came = before_bind(change.obj) if before is None or before.uid != now.uid else None
                found += [] if came is None else [change._replace(blob=codec.pack(came))]
        return found

    def _decision(self, change: RemoteChange) -> Decision | None:
        if change.kind != "Pod" or change.obj is None:
            return None
        return decision_of(self._pods.get(change.key), change.obj, gone=change.gone)

    def _written(self, change: RemoteChange) -> bool:
        if change.kind != "Pod" or change.obj is None or change.gone:
            return False
        return written_by_session(self._pods.get(change.key), change.obj)

    def _user(self, change: RemoteChange, decision: Decision | None) -> str:
        known, pod = self._known.get(change.key), self._pods.get(change.key)
        if decision is not None or (known is not None and known.controlled):
            return INSIDE
        if change.obj is None or change.gone:
            return INSIDE if pod is not None and pod.leaving else OUTSIDE
        meta = section(change.obj, "metadata")
        if known is None or known.uid != str(meta.get("uid")):
            return INSIDE if controlled(change.kind, change.obj) else OUTSIDE
        if pod is not None:
            return OUTSIDE if meta.get("deletionTimestamp") and not pod.leaving else INSIDE
        return INSIDE if change.kind in COUNTED and known.generation == meta.get("generation") else OUTSIDE

    def _pass(self, change: RemoteChange) -> None:
        if change.gone or change.obj is None:
            self._known.pop(change.key, None)
            self._pods.pop(change.key, None)
        else:
            self.know(change.key, change.obj)
