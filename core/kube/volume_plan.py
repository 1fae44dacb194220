# SPDX-License-Identifier: Apache-2.0
"""The plan for a pod's claims on each node, and the volumes that the session's placements have reserved.

Source: Volcano `capabilities/volumebinding/binder.go` (GetPodVolumeClaims, FindPodVolumes, AssumePodVolumes). CSI
storage capacity is not looked at (Volcano does so with --csi-storage only). Volumes of equal size are taken in name
order.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cmp_to_key
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from pumice.core.kube.storage import (
    NO_PROVISIONER,
    SELECTED_NODE,
    Storage,
    UnreadableVolumesError,
    check_owner,
    claim_key,
    claim_names,
    class_name,
    is_available,
    is_for,
    is_fully_bound,
    is_large_enough,
    is_taken,
    name_of,
    requested_storage,
    rows_in_topologies,
    rows_reaching,
    storage_capacity,
    volume_name,
)
from pumice.core.objects.metadata import Object, section, text_map
from pumice.core.state.derived import derived
from pumice.core.state.sources import objects_and_nodes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.core.kube.rows import BoolArray, NodeRows
    from pumice.core.objects.pod import Task
    from pumice.core.state.sources import PlacedObjects

RowArray = npt.NDArray[np.intp]
NONE = -1


class VolumePromise(NamedTuple):
    """The volumes reserved for a placed pod: (volume, claim) to bind, and claims to provision on its node."""

    bindings: tuple[tuple[str, str], ...]
    provisions: tuple[str, ...]


@dataclass(slots=True)
class Promises:
    """The promises of one session. `version` rises with every change."""

    volumes: dict[str, str] = field(default_factory=dict[str, str])  # volume -> claim
    nodes: dict[str, str] = field(default_factory=dict[str, str])  # claim -> node chosen for its provisioning
    by_task: dict[str, VolumePromise] = field(default_factory=dict[str, VolumePromise])
    version: int = 0

    def make(self, task: str, node: str, promise: VolumePromise) -> None:
        """Keep volumes and claims for a pod (AssumePodVolumes)."""
        self.volumes.update(promise.bindings)
        self.nodes.update(dict.fromkeys(promise.provisions, node))
        self.by_task[task] = promise
        self.version += 1

    def withdraw(self, task: str) -> None:
        """Give the volumes back (RevertAssumedPodVolumes); a pod without any is left alone."""
        promise = self.by_task.pop(task, None)
        if promise is None:
            return
        for volume, _ in promise.bindings:
            self.volumes.pop(volume, None)
        for claim in promise.provisions:
            self.nodes.pop(claim, None)
        self.version += 1


@dataclass(frozen=True, slots=True)
class PodClaims:
    """A pod's claims: bound ones, and those unbound until a node is chosen."""

    bound: tuple[Object, ...]
    waiting: tuple[Object, ...]


def read_claims(storage: Storage, task: Task) -> PodClaims:
    """Sort a pod's claims. Raises StorageError where no node can help."""
    bound: list[Object] = []
    waiting: list[Object] = []
    immediate = False
    for name, ephemeral in claim_names(task):
        claim = _usable_claim(storage, task, name, ephemeral=ephemeral)
        if is_fully_bound(claim):
            bound.append(claim)
        # A claim that names its volume already is bound by the controller, whatever its class (`binder.go`).
        elif storage.waits_for_consumer(claim) and not volume_name(claim):
            waiting.append(claim)
        else:
            immediate = True
    # After the loop: an unreadable claim further on has its own message, which comes first.
    if immediate:
        raise UnreadableVolumesError("pod has unbound immediate PersistentVolumeClaims")
    return PodClaims(tuple(bound), tuple(waiting))


def _usable_claim(storage: Storage, task: Task, name: str, *, ephemeral: bool) -> Object:
    try:
        claim = storage.claim(task.namespace, name)
    except UnreadableVolumesError as error:
        if not ephemeral:
            raise
        text = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        raise UnreadableVolumesError(text) from error
    if section(claim, "status").get("phase") == "Lost":
        text = f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume_name(claim)}"'
        raise UnreadableVolumesError(text)
    if section(claim, "metadata").get("deletionTimestamp"):
        raise UnreadableVolumesError(f'persistentvolumeclaim "{name}" is being deleted')
    if ephemeral:
        check_owner(claim, task)
    return claim


@dataclass(slots=True)
class VolumePlan:
    """A plan over node rows [N].

    What stands against each node, and for each waiting claim the number of its volume or NONE.
    """

    out_of_reach: BoolArray  # a bound volume cannot be used there
    lost: BoolArray  # a claim is bound to a volume that does not exist
    nothing_to_bind: BoolArray  # a waiting claim finds no volume and none can be made
    broken: BoolArray  # a claim that cannot be provisioned at all; `problem` says why
    problem: str
    volumes: list[Object] = field(default_factory=list[Object])
    chosen: list[tuple[Object, RowArray]] = field(default_factory=list[tuple[Object, RowArray]])
    _numbers: dict[str, int] = field(default_factory=dict[str, int])

    def number_of(self, volume: Object) -> int:
        """Return the number of a volume in this plan."""
        number = self._numbers.setdefault(name_of(volume), len(self.volumes))
        if number == len(self.volumes):
            self.volumes.append(volume)
        return number

    def works(self, row: int) -> bool:
        """Return whether the claims can be met on the node."""
        return not (self.out_of_reach[row] or self.lost[row] or self.nothing_to_bind[row] or self.broken[row])

    def promise(self, row: int) -> VolumePromise:
        """Return the volumes for a pod placed there."""
        got = [(claim, int(rows[row])) for claim, rows in self.chosen]
        bindings = tuple((name_of(self.volumes[i]), claim_key(claim)) for claim, i in got if i != NONE)
        return VolumePromise(bindings, tuple(claim_key(claim) for claim, i in got if i == NONE))


def _by_request(one: Object, other: Object) -> int:
    return requested_storage(one).compare(requested_storage(other))


def _by_capacity(one: Object, other: Object) -> int:
    return storage_capacity(one).compare(storage_capacity(other))


class VolumesAtHand(NamedTuple):
    """The volumes that a claim may have, without a look at those of other claims: `free` by class, from the smallest on
    and of one size by name; `named` by the claim that they name.
    """

    free: Mapping[str, Sequence[Object]]
    named: Mapping[str, Sequence[Object]]


@derived(objects_and_nodes("PersistentVolume"))
def volumes_at_hand(volumes: PlacedObjects) -> VolumesAtHand:
    """Return the volumes in this order. Most are bound, and these are not even sorted."""
    free, named = defaultdict[str, list[Object]](list), defaultdict[str, list[Object]](list)
    for name in sorted(volumes.objects):
        volume = volumes.objects[name]
        reference: Object | None = section(volume, "spec").get("claimRef")
        if reference is None:
            free[class_name(volume)].append(volume)
        else:
            named[_named(reference)].append(volume)
    for alike in free.values():
        # sort() is stable: volumes of one size stay in the order of their names.
        alike.sort(key=cmp_to_key(_by_capacity))
    return VolumesAtHand(dict(free), dict(named))


def _named(reference: Object) -> str:
    return f"{reference.get('namespace')}/{reference.get('name')}"


class Planner:
    """Makes plans for pods of one session."""

    def __init__(self, nodes: NodeRows, storage: Storage, promises: Promises) -> None:
        self._nodes, self._storage, self._promises = nodes, storage, promises
        self._newest: tuple[PodClaims, int, VolumePlan] | None = None

    def plan(self, claims: PodClaims) -> VolumePlan:
        """Return the plan under the present reservations. Raises SelectorError for a claim's selector that is not
        valid.
        """
        version = self._promises.version
        # A pod's plan is asked for in PreFilter, in the filter, and once more when the pod is placed.
        if self._newest is None or self._newest[1] != version or self._newest[0] != claims:
            self._newest = claims, version, self._made(claims)
        return self._newest[2]

    def _made(self, claims: PodClaims) -> VolumePlan:
        count = self._nodes.count
        masks = [np.zeros(count, dtype=np.bool_) for _ in range(4)]
        plan = VolumePlan(masks[0], masks[1], masks[2], masks[3], "")
        self._reach_bound(plan, claims.bound)
        # A volume is being made for such a claim on its node, so no other is looked for (FindPodVolumes).
        selected = [c for c in claims.waiting if self._selected_node(c) is not None]
        for claim in selected:
            plan.nothing_to_bind |= self._all_but(self._selected_node(claim))
            plan.chosen.append((claim, np.full(count, NONE, dtype=np.intp)))
        others = [c for c in claims.waiting if self._selected_node(c) is None]
        # From the smallest on (byPVCSize): each takes the smallest volume that fits.
        for claim in sorted(others, key=cmp_to_key(_by_request)):
            plan.chosen.append((claim, self._match(plan, claim)))
        for claim, rows in plan.chosen:
            self._provision(plan, claim, rows == NONE)
        return plan

    def _selected_node(self, claim: Object) -> str | None:
        promised = self._promises.nodes.get(claim_key(claim))
        return promised or text_map(section(claim, "metadata").get("annotations")).get(SELECTED_NODE)

    def _all_but(self, node: str | None) -> BoolArray:
        mask = np.ones(self._nodes.count, dtype=np.bool_)
        if node in self._nodes.row:
            mask[self._nodes.row[node]] = False
        return mask

    def _for(self, claim: Object) -> list[Object]:
        """Return the volumes that the claim may have, free ones from the smallest on: the order of the others does not
        matter.
        """
        at_hand, known = volumes_at_hand(self._nodes), self._storage.of_kind("PersistentVolume")
        own = {name_of(volume): volume for volume in at_hand.named.get(_named(section(claim, "metadata")), ())}
        key = claim_key(claim)
        for name, claimed_by in self._promises.volumes.items():
            if claimed_by == key and name in known and section(known[name], "spec").get("claimRef") is not None:
                own[name] = known[name]
        found = [*at_hand.free.get(class_name(claim), ()), *own.values()]
        return [volume for volume in found if self._may_have(volume, claim)]

    def _reach_bound(self, plan: VolumePlan, bound: tuple[Object, ...]) -> None:
        # Kubernetes stops at the first claim that rules a node out, so that one decides the reason.
        undecided = np.ones(self._nodes.count, dtype=np.bool_)
        for claim in bound:
            try:
                reached = rows_reaching(self._nodes, self._storage.volume(volume_name(claim)))
            except UnreadableVolumesError:
                plan.lost |= undecided
                return
            plan.out_of_reach |= undecided & ~reached
            undecided &= reached

    def _match(self, plan: VolumePlan, claim: Object) -> RowArray:
        """Return the number of the volume that each node would give the claim, NONE without one."""
        chosen: RowArray = np.full(self._nodes.count, NONE, dtype=np.intp)
        fitting = self._for(claim)
        own = [volume for volume in fitting if is_for(volume, claim, self._claimed_by(volume))]
        if own:  # a volume that is meant for the claim is the only one it gets
            first = min(own, key=name_of)
            chosen[rows_reaching(self._nodes, first)] = plan.number_of(first)
            return chosen
        for volume in fitting:
            if is_available(volume, claim):
                i = plan.number_of(volume)
                free = rows_reaching(self._nodes, volume) & (chosen == NONE)
                # What an earlier claim of the pod takes on a node is not free there.
                for _, taken in plan.chosen:
                    free &= taken != i
                chosen[free] = i
        return chosen

    def _claimed_by(self, volume: Object) -> str | None:
        return self._promises.volumes.get(name_of(volume))

    def _may_have(self, volume: Object, claim: Object) -> bool:
        if class_name(volume) != class_name(claim):
            return False
        claimed = self._claimed_by(volume)
        return (not is_taken(volume, claimed) or is_for(volume, claim, claimed)) and is_large_enough(volume, claim)

    def _provision(self, plan: VolumePlan, claim: Object, needed: BoolArray) -> None:
        """Check the nodes on which a new volume would have to be made; nodes with an earlier verdict keep it."""
        needed = needed & ~plan.nothing_to_bind & ~plan.broken
        if not needed.any():
            return
        name = class_name(claim)
        known = self._storage.of_kind("StorageClass").get(name)
        if known is None:
            plan.broken |= needed
            plan.problem = plan.problem or (
                f'failed to find storage class "{name}"' if name else f'no class for claim "{claim_key(claim)}"'
            )
            return
        if (known.get("provisioner") or NO_PROVISIONER) == NO_PROVISIONER:
            plan.nothing_to_bind |= needed
            return
        topologies: list[Object] = known.get("allowedTopologies") or []
        plan.nothing_to_bind |= needed & ~rows_in_topologies(self._nodes, topologies)
