# SPDX-License-Identifier: Apache-2.0
"""The monitor's books of volumes and devices: their holders, from the api's mutations alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from pumice.core.messages.events import Mutation
from pumice.core.objects.metadata import Object, section
from pumice.proof.storm.script.claims import HOSTNAME
from pumice.storage import codec

Device = tuple[str, str, str]
"""Driver, pool and name."""
Problem = tuple[str, str]
"""Invariant and words."""
KINDS: Final = frozenset(("ResourceClaim", "ResourceSlice", "PersistentVolumeClaim", "PersistentVolume"))


@dataclass(frozen=True, slots=True)
class DeviceClaim:
    """A device claim. `users`: uids of the pods it is reserved for."""

    devices: tuple[Device, ...]
    users: frozenset[str]


@dataclass(frozen=True, slots=True)
class VolumeClaim:
    """A volume claim. `volume`: "" while it has none."""

    uid: str
    volume: str


@dataclass(frozen=True, slots=True)
class VolumeBook:
    """A volume. `node`: the only one that reaches it, "" for all. `claim`: key and uid of the claim it is for."""

    node: str
    claim: tuple[str, str]


class ClaimBooks:
    """The books of claims. Keys are "namespace/name", or the name of a volume. `read`: `unpack`, or an equal
    function.
    """

    def __init__(self, read: Callable[[bytes], Any] = codec.unpack) -> None:
        self._read = read
        self._problems: list[Problem] = []
        self.pools: dict[tuple[str, str], str] = {}  # the node of a driver's pool, "" for many
        self.device_claims: dict[str, DeviceClaim] = {}
        self.volume_claims: dict[str, VolumeClaim] = {}
        self.volumes: dict[str, VolumeBook] = {}
        self._holders: dict[Device, str] = {}

    def apply(self, mutation: Mutation) -> None:
        """Take over a change of one of KINDS."""
        obj = None if mutation.type == "DELETED" else self._read(mutation.blob)
        key = f"{mutation.namespace}/{mutation.name}"
        match mutation.kind:
            case "ResourceClaim":
                self._device_claim(key, obj)
            case "ResourceSlice":
                if obj is not None:
                    spec = obj["spec"]
                    self.pools[spec["driver"], spec["pool"]["name"]] = spec.get("nodeName") or ""
            case "PersistentVolumeClaim":
                _put(self.volume_claims, key, None if obj is None else _volume_claim(obj))
            case _:
                _put(self.volumes, mutation.name, None if obj is None else _volume(obj))

    def _device_claim(self, key: str, obj: Object | None) -> None:
        before = self.device_claims.get(key)
        for device in before.devices if before is not None else ():
            if self._holders.get(device) == key:
                del self._holders[device]
        claim = None if obj is None else _read_device_claim(obj)
        _put(self.device_claims, key, claim)
        for device in claim.devices if claim is not None else ():
            other = self._holders.setdefault(device, key)
            if other != key:
                words = f"device {'/'.join(device)} is given to claim {key} and to claim {other}"
                self._problems.append(("within-allocatable", words))

    # --- judging

    def new_problems(self) -> list[Problem]:
        """Return the problems found since the last call, and forget them."""
        problems = self._problems
        if problems:
            self._problems = []
        return problems

    def judge(self, pod: Object) -> Iterator[Problem]:
        """Yield the problems of the claims of a pod that has just been bound."""
        meta, spec = pod["metadata"], pod["spec"]
        for key in _device_claims_of(pod):
            claim = self.device_claims.get(key)
            if claim is None or not claim.devices or meta["uid"] not in claim.users:
                yield "claims-first", f"pod {meta['name']} is on {spec['nodeName']} without its devices: {claim}"
            elif any(self._node_of(device) not in ("", spec["nodeName"]) for device in claim.devices):
                yield "claims-first", f"pod {meta['name']} is on {spec['nodeName']}, its devices are {claim.devices}"
        for key in _volume_claims_of(pod):
            found = self.volume_claims.get(key)
            volume = self.volumes.get(found.volume) if found is not None else None
            if volume is None or volume.node not in ("", spec["nodeName"]):
                yield "claims-first", f"pod {meta['name']} is on {spec['nodeName']}, claim {key} has {found}: {volume}"

    def _node_of(self, device: Device) -> str:
        return self.pools.get(device[:2], "")

    def left_over(self, living: set[str]) -> Iterator[Problem]:
        """Yield the claims that were not released, once the system is at rest; `living`: uids of pods that have not
        ended."""
        for key, claim in self.device_claims.items():
            if gone := sorted(claim.users - living):
                yield "claims-come-back", f"resource claim {key} is still reserved for {', '.join(gone)}"
            elif claim.devices and not claim.users:
                yield "claims-come-back", f"resource claim {key} has devices and is reserved for no pod"
        for name, volume in self.volumes.items():
            key, uid = volume.claim
            found = self.volume_claims.get(key)
            if found is not None and found.uid == uid and found.volume != name:
                yield "claims-come-back", f"volume {name} is kept for claim {key}, which has {found.volume or 'none'}"


def _put(table: dict[str, Any], key: str, value: object) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


def _read_device_claim(obj: Object) -> DeviceClaim:
    status = section(obj, "status")
    results: list[Object] = section(section(status, "allocation"), "devices").get("results") or []
    users: list[Object] = status.get("reservedFor") or []
    devices = tuple((each["driver"], each["pool"], each["device"]) for each in results)
    return DeviceClaim(devices, frozenset(each["uid"] for each in users))


def _volume_claim(obj: Object) -> VolumeClaim:
    return VolumeClaim(obj["metadata"]["uid"], section(obj, "spec").get("volumeName") or "")


def _volume(obj: Object) -> VolumeBook:
    spec = section(obj, "spec")
    terms: list[Object] = section(section(spec, "nodeAffinity"), "required").get("nodeSelectorTerms") or []
    rules = [rule for term in terms for rule in term.get("matchExpressions") or () if rule["key"] == HOSTNAME]
    reference = section(spec, "claimRef")
    claim = f"{reference['namespace']}/{reference['name']}" if reference else ""
    return VolumeBook(rules[0]["values"][0] if rules else "", (claim, reference.get("uid") or ""))


def _device_claims_of(pod: Object) -> Iterator[str]:
    """Yield the device claims of a pod: one made from a template has the name in the pod's status."""
    statuses: list[Object] = section(pod, "status").get("resourceClaimStatuses") or []
    made = {each["name"]: each.get("resourceClaimName") for each in statuses}
    for listed in pod["spec"].get("resourceClaims") or ():
        yield f"{pod['metadata']['namespace']}/{listed.get('resourceClaimName') or made.get(listed['name'], '')}"


def _volume_claims_of(pod: Object) -> Iterator[str]:
    """Yield the volume claims of a pod: one made for an ephemeral volume is named after the pod and the volume."""
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    for volume in pod["spec"].get("volumes") or ():
        if "ephemeral" in volume:
            yield f"{namespace}/{name}-{volume['name']}"
        elif "persistentVolumeClaim" in volume:
            yield f"{namespace}/{volume['persistentVolumeClaim']['claimName']}"
