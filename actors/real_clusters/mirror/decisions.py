"""What a change of a pod says about the scheduler of its cluster: that it was bound, or evicted."""

from __future__ import annotations

from typing import Final, NamedTuple
from zlib import crc32

from pumice.core.messages.decisions import Bind, Decision, Evict
from pumice.core.objects.metadata import Object, section, text_map
from pumice.core.objects.pod import GROUP_NAME

SCHEDULER: Final = "volcano"
BECAUSE: Final = "Pod is evicted, because of "
"""What Volcano writes into an evicted pod's Ready condition, before the reason (source: `cache.go`, defaultEvictor)."""
PREEMPTED: Final = "PreemptionByScheduler"


class PodSeen(NamedTuple):
    """What was last seen of a pod; `asks`: a checksum of what others than its scheduler may change while it waits."""

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
    """Return what a waiting pod is nominated for, None for nothing."""
    node = section(pod, "status").get("nominatedNodeName")
    if not node or section(pod, "spec").get("nodeName"):
        return None
    meta = section(pod, "metadata")
    namespace, group = str(meta.get("namespace") or ""), text_map(meta.get("annotations")).get(GROUP_NAME)
    job = f"{namespace}/{group}" if group else ""
    return Nominated(str(node), f"{namespace}/{meta['name']}", str(meta.get("uid") or ""), job)


def written_by_session(before: PodSeen | None, pod: Object) -> bool:
    """Return whether a session of Volcano's may have made this of what was seen before.

    It writes the condition and the nomination of a pod that waits (`taskUnschedulable`), and the condition of a pod
    that it is about to delete (`defaultEvictor`).
    """
    now = seen(pod)
    if before is None or before.uid != now.uid or now.leaving or section(pod, "spec").get("schedulerName") != SCHEDULER:
        return False
    return evicted_for(pod) is not None if before.node else not now.node and before.asks == now.asks


def seen(pod: Object) -> PodSeen:
    """What there is to be seen of it."""
    meta = section(pod, "metadata")
    spec = section(pod, "spec")
    node = spec.get("nodeName") or ""
    asks = (
        0 if node else crc32(repr((meta.get("labels"), meta.get("annotations"), spec.get("schedulingGates"))).encode())
    )
    return PodSeen(str(meta.get("uid") or ""), str(node), bool(meta.get("deletionTimestamp")), asks)


def decision_of(before: PodSeen | None, pod: Object, *, gone: bool) -> Decision | None:
    """The decision of Volcano's that turned what was seen before into this; None: none did."""
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
    """A pod of Volcano's that has a node, as it must have been before; None: it has none, or another scheduler."""
    spec = section(pod, "spec")
    if spec.get("schedulerName") != SCHEDULER or not spec.get("nodeName"):
        return None
    meta = {key: value for key, value in section(pod, "metadata").items() if not key.startswith("deletion")}
    waiting = {key: value for key, value in spec.items() if key != "nodeName"}
    return {**pod, "metadata": meta, "spec": waiting, "status": {"phase": "Pending"}}


def evicted_for(pod: Object) -> str | None:
    """The reason of Volcano's for which it goes; None: it goes for another one."""
    conditions: list[Object] = section(pod, "status").get("conditions") or []
    told = {str(each.get("type")): each for each in conditions}
    message = str(told.get("Ready", {}).get("message") or "")
    if message.startswith(BECAUSE):
        return message.removeprefix(BECAUSE)
    target = told.get("DisruptionTarget", {})
    mine = str(target.get("message") or "").startswith(f"{SCHEDULER}:")
    return "" if mine and target.get("reason") == PREEMPTED else None
