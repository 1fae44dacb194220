# SPDX-License-Identifier: Apache-2.0
"""Volumes as a resource: the requests of pods' claims, and the capacity of CSINodes.

Source: Volcano `cache/event_handlers.go` (addPodCSIVolumesToTask, getCSIDriverInfo, setCSIResourceOnNode). Volcano
reads the claims whenever the pod changes, and again while one is missing; here the count follows claims, volumes and
classes as they change, so that a view says the same however it came about.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from hashlib import sha1
from typing import TYPE_CHECKING, Final, NamedTuple

from pumice.core.devices.settings import hami_config_map
from pumice.core.go_numbers import AS_PYTHON
from pumice.core.kube.storage import (
    Storage,
    UnreadableVolumesError,
    check_owner,
    claim_names,
    class_name,
    uses_claims,
    volume_name,
)
from pumice.core.objects.metadata import Object, key_of, object_key, section, text_map
from pumice.core.objects.pod_template import FIX as RESIZES
from pumice.core.resources.lists import CSI_VOLUMES
from pumice.core.state.derived import itself

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.config.schema import SchedulerConfig
    from pumice.core.objects.pod import Task
    from pumice.core.state.derived import Like

DEFAULT_IGNORED: Final = frozenset({"rancher.io/local-path", "hostpath.csi.k8s.io"})
FIX: Final = "volumes-are-no-resource"
READ_BY_CLAIMS: Final = frozenset({"PersistentVolumeClaim", "PersistentVolume", "StorageClass"})
_LONGEST: Final = 63
_KEPT_OF_LONG: Final = 23
_HASHED: Final = 16
_DRIVER_PARAMETER: Final = "csi.storage.k8s.io/csi-driver-name"
_PLENTY: Final = 2**31 - 1
"""What a node has of a driver that names no limit (DefaultAttachableVolumeQuantity)."""


class VolumeRules(NamedTuple):
    """The rules whether claims count as a resource, and whose do not; `chips`: the ConfigMap that lists the NPUs whose
    memory does not count as one, "" for none; `resized`: whether a pod counts for its status' amounts while it is
    resized; `as_python`: whether nodes' texts are read by the rule before version 6.
    """

    counted: bool = True
    ignored: frozenset[str] = DEFAULT_IGNORED
    chips: str = ""
    resized: bool = True
    as_python: bool = False


USUAL: Final = VolumeRules()


def volume_rules(config: SchedulerConfig, ignored: Iterable[str] = ()) -> VolumeRules:
    """Return the rules of a configuration; `ignored`: provisioners whose claims do not count, besides those it
    names.
    """
    return _rules(itself(config), tuple(ignored))


@lru_cache(maxsize=16)
def _rules(of: Like[SchedulerConfig], ignored: tuple[str, ...]) -> VolumeRules:
    config = of.subject
    settings = config.pumice
    passed_over = DEFAULT_IGNORED.union(settings.ignored_provisioners, ignored)
    return VolumeRules(
        FIX not in settings.fix,
        passed_over,
        hami_config_map(config),
        RESIZES not in settings.fix,
        AS_PYTHON in settings.fix,
    )


def attach_limit_key(driver: str) -> str:
    """Return the resource that stands for a driver's volumes (GetCSIAttachLimitKey)."""
    # Kubernetes limits resource names to 63 characters: a longer one is cut and hashed.
    if len(CSI_VOLUMES) + len(driver) < _LONGEST:
        return CSI_VOLUMES + driver
    hashed = sha1(driver.encode(), usedforsecurity=False).hexdigest()
    return f"{CSI_VOLUMES}{driver[:_KEPT_OF_LONG]}{hashed[:_HASHED]}"


def attachable_on(csi_node: Object | None) -> dict[str, float]:
    """Return a node's capacity of each driver, in milli-units; a claim takes one."""
    found: dict[str, float] = {}
    for driver in section(csi_node or {}, "spec").get("drivers") or ():
        most = section(driver, "allocatable").get("count")
        found[attach_limit_key(str(driver.get("name") or ""))] = float(_PLENTY if most is None else most)
    return found


def driver_of(storage: Storage, claim: Object) -> str:
    """Return the driver of a claim's volume, "" where none is known."""
    volume = storage.of_kind("PersistentVolume").get(volume_name(claim)) if volume_name(claim) else None
    if volume is not None:
        return str(section(section(volume, "spec"), "csi").get("driver") or "")
    known = storage.of_kind("StorageClass").get(class_name(claim)) if class_name(claim) else None
    if known is None:
        return ""
    parameters = text_map(known.get("parameters"))
    return parameters.get(_DRIVER_PARAMETER, str(known.get("provisioner") or ""))


class VolumeCounts:
    """The users of each claim, and the pods whose count may have changed since the last call.

    `objects`: the objects by kind, as they are now.
    """

    def __init__(self, objects: Mapping[str, Mapping[str, Object]]) -> None:
        self.rules = VolumeRules(counted=False)  # until a snapshot says how
        self._storage = Storage(objects)
        self._users: dict[str, set[str]] = {}  # claim -> pods
        self._claims: dict[str, tuple[str, ...]] = {}  # pod -> claims
        self._stale: set[str] = set()

    @property
    def readers(self) -> Iterable[str]:
        """Return the pods that use claims."""
        return self._claims

    def of_task(self, task: Task) -> tuple[tuple[str, float], ...]:
        """Return (resource, amount) of all requests of a pod's claims, by name; empty while one of them is missing."""
        if not uses_claims(task.template):
            return ()
        counts: Counter[str] = Counter()
        for name, ephemeral in claim_names(task):
            try:
                claim = self._storage.claim(task.namespace, name)
                # A claim of that name may exist without having been made for this pod.
                if ephemeral:
                    check_owner(claim, task)
            except UnreadableVolumesError:
                return ()
            driver = driver_of(self._storage, claim)
            if driver and driver not in self.rules.ignored:
                counts[attach_limit_key(driver)] += 1
        return tuple((name, float(count)) for name, count in sorted(counts.items())) if self.rules.counted else ()

    def note(self, task: Task) -> None:
        """Note that a pod is in the view, and follow its claims."""
        if task.template.volumes and uses_claims(task.template):
            # Two volumes of a pod may be one claim.
            claims = tuple({key_of(task.namespace, name): None for name, _ in claim_names(task)})
            self._claims[task.key] = claims
            for claim in claims:
                self._users.setdefault(claim, set()).add(task.key)

    def drop(self, task: Task) -> None:
        """Note that a pod has left the view."""
        for claim in self._claims.pop(task.key, ()):
            users = self._users[claim]
            users.discard(task.key)
            if not users:
                del self._users[claim]
        # It is read anew when it comes again.
        self._stale.discard(task.key)

    def changed(self, kind: str, obj: Object) -> None:
        """Note that a claim, volume or class has come, changed or gone."""
        if kind == "PersistentVolumeClaim":
            self._stale |= self._users.get(object_key(obj), set())
            return
        name = section(obj, "metadata").get("name")
        for key, users in self._users.items():
            claim = self._storage.of_kind("PersistentVolumeClaim").get(key)
            named = volume_name if kind == "PersistentVolume" else class_name
            if claim is not None and named(claim) == name:
                self._stale |= users

    def take_stale(self) -> list[str]:
        """Return the pods to be read again, in name order; they count as read from here on."""
        stale, self._stale = sorted(self._stale), set()
        return stale
