# SPDX-License-Identifier: Apache-2.0
"""The volume controller as a pure machine: claims get existing volumes, or volumes made for them.

Source: Kubernetes' PersistentVolume controller. A claim whose class waits for its consumer gets a volume once the
scheduler kept one for it (the volume's claimRef) or chose a node (the claim's annotation). Volumes are made
immediately, for every provisioner but `kubernetes.io/no-provisioner`, and can be reached from every node. A volume
whose claim is gone is Released, and deleted when its reclaim policy says Delete.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cmp_to_key
from typing import Final

from pumice.cluster.machine import Machine
from pumice.core.kube.selectors import SelectorError
from pumice.core.kube.storage import (
    NO_PROVISIONER,
    SELECTED_NODE,
    claim_key,
    class_name,
    is_available,
    is_for,
    is_fully_bound,
    is_large_enough,
    is_taken,
    name_of,
    storage_capacity,
    volume_name,
)
from pumice.core.kube.volume_writes import bound_claim, bound_volume, claimed_by, in_phase, is_promised, made_volume
from pumice.core.messages.commands import ApiRequest, Create, Delete, Get, Update
from pumice.core.messages.replies import Accepted, ApiReply, Refused
from pumice.core.objects.metadata import Object, annotations_of, section
from pumice.storage.codec import pack, unpack

USER: Final = "volume-controller"
RETRY_S: Final = 1.0
SERVER_FAULT: Final = 500
_KINDS: Final = ("StorageClass", "PersistentVolume", "PersistentVolumeClaim")


class VolumeMachine(Machine):
    """Gives claims existing volumes, or has volumes made for them."""

    kinds = _KINDS

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Object]] = {kind: {} for kind in _KINDS}
        self._unbound: set[str] = set()  # claims
        # Volumes by the claim that they name, "" for none: most are bound, and no other claim may have those.
        self._volumes: defaultdict[str, set[str]] = defaultdict(set)
        self._dirty: dict[tuple[str, str], None] = {}  # (kind, key), in order
        self._retries: dict[tuple[str, str], float] = {}  # when to try again what the api could not do
        self._stale: dict[tuple[str, str], None] = {}  # to be read again: a write met another one's

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Note an object that exists, or was deleted, as of `revision`."""
        of_kind, key = self._known[kind], _key(obj)
        old = of_kind.get(key)
        if old is not None and revision <= int(old["metadata"]["resourceVersion"]):
            return
        of_kind.pop(key, None)
        if not deleted:
            of_kind[key] = obj
        if kind == "PersistentVolume":
            self._file(key, old, None if deleted else obj)
        self._dirty[kind, key] = None
        if kind == "PersistentVolumeClaim":
            unbound = not deleted and not is_fully_bound(obj)
            (self._unbound.add if unbound else self._unbound.discard)(key)
            for volume in {volume_name(obj), volume_name(old or {})} - {""}:
                self._dirty["PersistentVolume", volume] = None
            if deleted:
                self._dirty.update(dict.fromkeys(("PersistentVolume", name) for name in self._volumes_for(key)))
        else:
            self._dirty.update(dict.fromkeys(("PersistentVolumeClaim", claim) for claim in sorted(self._unbound)))
            if kind == "PersistentVolume" and claimed_by(old or obj):
                self._dirty["PersistentVolumeClaim", claimed_by(old or obj)] = None

    def _file(self, name: str, old: Object | None, new: Object | None) -> None:
        """File a volume under the claim that it names."""
        if old is not None:
            self._volumes[claimed_by(old)].discard(name)
            if not self._volumes[claimed_by(old)]:
                del self._volumes[claimed_by(old)]
        if new is not None:
            self._volumes[claimed_by(new)].add(name)

    def _volumes_for(self, claim: str) -> list[str]:
        return sorted(self._volumes.get(claim, ()))

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is due before the next change or timer. A step
        writes each volume or claim once; the answer leads to the next write.
        """
        for place in [place for place, due in self._retries.items() if due <= now]:
            del self._retries[place]
            self._dirty[place] = None
        dirty, self._dirty = self._dirty, {}
        stale, self._stale = self._stale, {}
        requests: list[ApiRequest] = [Get(kind, *_split(key)) for kind, key in stale]
        taken: set[str] = set()
        for kind, key in dirty:
            obj = self._known[kind].get(key)
            if obj is None or (kind, key) in stale:
                continue
            if kind == "PersistentVolume":
                requests += self._volume_writes(obj, taken)
            elif kind == "PersistentVolumeClaim":
                requests += self._claim_writes(obj, taken)
        return requests

    # --- volumes

    def _volume_writes(self, volume: Object, taken: set[str]) -> Iterator[ApiRequest]:
        phase, owner = section(volume, "status").get("phase"), claimed_by(volume)
        name = name_of(volume)
        if not owner:
            if phase != "Available" and name not in taken:
                taken.add(name)
                yield _write(in_phase(volume, "Available"))
            return
        claim = self._known["PersistentVolumeClaim"].get(owner)
        uid = section(section(volume, "spec"), "claimRef").get("uid")
        if uid and (claim is None or section(claim, "metadata").get("uid") != uid) and name not in taken:
            taken.add(name)
            if section(volume, "spec").get("persistentVolumeReclaimPolicy") == "Delete":
                yield Delete("PersistentVolume", "", name, uid=section(volume, "metadata").get("uid"), user=USER)
            elif phase != "Released":
                yield _write(in_phase(volume, "Released"))

    # --- claims

    def _claim_writes(self, claim: Object, taken: set[str]) -> Iterator[ApiRequest]:
        if section(claim, "metadata").get("deletionTimestamp"):
            return
        if is_fully_bound(claim):
            lost = volume_name(claim) not in self._known["PersistentVolume"]
            if lost and section(claim, "status").get("phase") != "Lost":
                yield _write(in_phase(claim, "Lost"))
            return
        volume = self._volume_of(claim, taken)
        if volume is None:
            yield from self._without_volume(claim)
            return
        taken.add(name_of(volume))
        if is_promised(volume, claim) and section(volume, "status").get("phase") == "Bound":
            yield _write(bound_claim(claim, volume))
        else:
            yield _write(bound_volume(volume, claim))

    def _without_volume(self, claim: Object) -> Iterator[ApiRequest]:
        storage_class = self._class_of(claim)
        if not self._waits(claim) and not volume_name(claim) and _provisions(storage_class):
            yield Create(pack(made_volume(claim, storage_class or {})), user=USER)
        elif not section(claim, "status").get("phase"):
            yield _write(in_phase(claim, "Pending"))

    def _volume_of(self, claim: Object, taken: set[str]) -> Object | None:
        """Return the volume that a claim names or that was kept for it; otherwise the smallest sufficient one, if it
        may have one now.
        """
        volumes = self._known["PersistentVolume"]
        wished = volume_name(claim)
        if wished:
            found = volumes.get(wished)
            return found if found is not None and (not is_taken(found, None) or is_for(found, claim, None)) else None
        kept = [name for name in self._volumes_for(claim_key(claim)) if is_for(volumes[name], claim, None)]
        if kept:
            return volumes[kept[0]]
        if self._waits(claim) or annotations_of(claim).get(SELECTED_NODE):
            return None
        free = [volumes[name] for name in sorted(self._volumes.get("", set()) - taken) if _fits(volumes[name], claim)]
        return min(free, key=cmp_to_key(_by_capacity), default=None)

    def _class_of(self, claim: Object) -> Object | None:
        return self._known["StorageClass"].get(class_name(claim))

    def _waits(self, claim: Object) -> bool:
        chosen = annotations_of(claim).get(SELECTED_NODE)
        storage_class = self._class_of(claim) or {}
        return storage_class.get("volumeBindingMode") == "WaitForFirstConsumer" and not chosen

    def answered(self, request: ApiRequest, reply: ApiReply, now: float) -> None:
        """Take the answer to one request of the last step; answers come in order, before the next step."""
        if isinstance(reply, Accepted) and reply.blob:
            obj: Object = unpack(reply.blob)
            if not isinstance(request, Delete):
                self.observe(obj["kind"], obj, int(obj["metadata"]["resourceVersion"]))
            if isinstance(request, Get):  # perhaps no news, but nothing was done about it while it was asked for
                self._dirty[obj["kind"], _key(obj)] = None
                self._dirty.update(dict.fromkeys(("PersistentVolumeClaim", claim) for claim in sorted(self._unbound)))
        elif isinstance(request, Create | Update) and isinstance(reply, Refused):
            obj = unpack(request.blob)
            if reply.code == 409:
                self._stale[obj["kind"], _key(obj)] = None
            elif reply.code >= SERVER_FAULT:
                self._retries[obj["kind"], _key(obj)] = now + RETRY_S
                if claimed_by(obj):
                    self._retries["PersistentVolumeClaim", claimed_by(obj)] = now + RETRY_S

    def next_due(self) -> float | None:
        """Return the time when `step` has work without any change; None for never."""
        return min(self._retries.values(), default=None)

    def running_timers(self) -> int:
        """Return the number of running timers."""
        return len(self._retries)


def _by_capacity(one: Object, other: Object) -> int:
    return storage_capacity(one).compare(storage_capacity(other))


def _fits(volume: Object, claim: Object) -> bool:
    try:
        return not is_taken(volume, None) and is_large_enough(volume, claim) and is_available(volume, claim)
    except SelectorError:
        return False


def _provisions(storage_class: Object | None) -> bool:
    return storage_class is not None and (storage_class.get("provisioner") or NO_PROVISIONER) != NO_PROVISIONER


def _write(obj: Object) -> Update:
    return Update(pack(obj), user=USER)


def _key(obj: Object) -> str:
    return claim_key(obj) if section(obj, "metadata").get("namespace") else name_of(obj)


def _split(key: str) -> tuple[str, str]:
    namespace, _, name = key.rpartition("/")
    return namespace, name
