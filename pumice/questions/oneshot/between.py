# SPDX-License-Identifier: Apache-2.0
"""State between two one-shot cycles: the conformance README's "Between cycles", as a function on objects.

The clock stands still; what remains keeps its order of arrival; bound pods run (without a start time), those that wait
for volumes too, because their claims are bound by then; evicted pods
and pods that were being deleted are gone; pod and PodGroup status and annotations are as the scheduler wrote them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict

from pumice.cluster.kernel.pre_bind import Place, PreBindError, claim_place, writes_of
from pumice.core.kube.storage import class_name, is_fully_bound
from pumice.core.kube.volume_writes import bound_claim, bound_volume, made_volume
from pumice.core.messages.decisions import Bind, CycleResult, PodCondition, PodGroupCondition, PodGroupStatus
from pumice.core.objects.metadata import Object, section
from pumice.units import format_moment

# --- Claims


def with_claims_met(objects: Sequence[Object], binds: Iterable[Bind]) -> tuple[list[Object], set[str]]:
    """Return the objects with bound volumes, made volumes and given devices; and uids of pods for which that failed.

    What is made comes last. The given objects are not changed.
    """
    needing = [bind for bind in binds if bind.pre_bind is not None and bind.pre_bind.writes]
    if not needing:
        return list(objects), set()
    now: dict[Place, Object] = {_place(obj): obj for obj in objects}
    failed: set[str] = set()
    for bind in needing:
        try:
            now.update(_met(bind, now))
        except (PreBindError, KeyError):
            failed.add(bind.uid)
    return list(now.values()), failed


def _place(obj: Object) -> Place:
    metadata = section(obj, "metadata")
    return obj["kind"], str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def _met(bind: Bind, before: dict[Place, Object]) -> dict[Place, Object]:
    """Return the objects that a bind changes. Raises PreBindError for a change that is not possible, KeyError for an
    object that does not exist."""
    changed: dict[Place, Object] = {}
    for write in writes_of(bind):
        obj = changed.get(write.place, before[write.place])
        after = write.do(obj, before[write.beside or write.place])
        changed[write.place] = obj if after is None else after
    assert bind.pre_bind is not None
    for name, key in bind.pre_bind.volumes:
        volume, claim = ("PersistentVolume", "", name), claim_place(key)
        changed[volume] = bound_volume(changed[volume], before[claim])
        changed[claim] = bound_claim(changed.get(claim, before[claim]), changed[volume])
    for key in bind.pre_bind.provisions:
        claim = claim_place(key)
        if not is_fully_bound(changed[claim]):
            made = made_volume(changed[claim], before["StorageClass", "", class_name(changed[claim])])
            changed[_place(made)] = made
            changed[claim] = bound_claim(changed[claim], made)
    return changed


def object_key(obj: Object) -> str:
    """Return namespace/name of an object; an absent namespace is empty."""
    metadata = section(obj, "metadata")
    return f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"


def next_objects(objects: Sequence[Object], result: CycleResult, now: float) -> list[Object]:
    """Return the objects as the next cycle finds them. The given ones are not changed."""
    objects, failed = with_claims_met(objects, result.binds)
    binds = {f"{bind.namespace}/{bind.name}": bind for bind in result.binds if bind.uid not in failed}
    evicted = {f"{evict.namespace}/{evict.name}" for evict in result.evicts}
    updates = {f"{one.namespace}/{one.name}": one for one in result.pod_conditions}
    groups = {f"{one.namespace}/{one.name}": one for one in result.pod_groups}
    remaining: list[Object] = []
    for obj in objects:
        kind, key = obj.get("kind"), object_key(obj)
        if kind == "Pod":
            if key in evicted or section(obj, "metadata").get("deletionTimestamp"):
                continue
            remaining.append(_pod_after(obj, binds.get(key), updates.get(key), now))
        elif kind == "PodGroup" and key in groups:
            remaining.append(pod_group_after(obj, groups[key], now))
        else:
            remaining.append(obj)
    return remaining


class ToldCondition(TypedDict):
    """A condition of a PodGroup, without its times."""

    type: str
    status: str
    reason: str
    message: str


def condition_dict(condition: PodGroupCondition) -> ToldCondition:
    """Return a PodGroup condition without its transition time and id."""
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
    }


def _pod_after(pod: Object, bind: Bind | None, update: PodCondition | None, now: float) -> Object:
    if bind is None and update is None:
        return pod
    status: Object = dict(pod.get("status") or {})
    after = {**pod, "status": status}
    if update is not None:
        if update.reason or update.message:
            status["conditions"] = _with_unscheduled(status.get("conditions") or [], update, now)
        if update.nominated != "":
            status["nominatedNodeName"] = update.nominated or ""
    if bind is not None:
        after["spec"] = {**(pod.get("spec") or {}), "nodeName": bind.node}
        if bind.annotations:
            metadata: Object = pod.get("metadata") or {}
            after["metadata"] = {**metadata, "annotations": {**(metadata.get("annotations") or {}), **bind.annotations}}
        status["phase"] = "Running"
        status.pop("startTime", None)
    return after


def _with_unscheduled(conditions: list[Object], update: PodCondition, now: float) -> list[Object]:
    written = {
        "type": "PodScheduled",
        "status": "False",
        "reason": update.reason,
        "message": update.message,
        "lastTransitionTime": format_moment(now),
    }
    kept = [one for one in conditions if one.get("type") != "PodScheduled"]
    return [*kept, written]


def pod_group_after(group: Object, written: PodGroupStatus, now: float) -> Object:
    """Return the PodGroup with what the scheduler wrote: status and annotations."""
    metadata: Object = dict(group.get("metadata") or {})
    if written.annotations:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **written.annotations}
    status: Object = {
        **(group.get("status") or {}),
        "phase": written.phase,
        "conditions": [{**condition_dict(one), "lastTransitionTime": format_moment(now)} for one in written.conditions],
        "running": written.running,
        "succeeded": written.succeeded,
        "failed": written.failed,
    }
    return {**group, "metadata": metadata, "status": status}
