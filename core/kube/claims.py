"""The claims of a pod, and the devices of each class that they ask for.

Source: Volcano `cache.go` (resolvePodClaimName, buildTaskDRAInfo). Capacities of devices are in milli-units; Volcano
counts them behind Kubernetes' feature gate DRAConsumableCapacity, which is off.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from pumice.core.objects.metadata import key_of, section
from pumice.core.quantity import quantity_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.core.objects.metadata import Object
    from pumice.core.objects.pod import Task

COUNT: Final = ""  # the dimension that counts devices

Devices = Counter[tuple[str, str]]  # (device class, dimension) -> amount


def claim_name(task: Task, listed: Mapping[str, Any]) -> str:
    """Return the name of a claim that the pod lists: its own, or the one that the pod's status tells; "" without."""
    named = listed.get("resourceClaimName")
    return str(named or "") if named is not None else dict(task.claim_names).get(str(listed.get("name"))) or ""


class DevicesByClaim:
    """Reads what claims ask for, each once. `capacities`: of devices, too."""

    of_each_device = True
    """Whether a request asks for a capacity as many times as for devices."""

    def __init__(self, claims: Mapping[str, Object], *, capacities: bool = False) -> None:
        self.claims = claims
        self._capacities = capacities
        self._asked: dict[str, Devices] = {}

    def of(self, task: Task) -> dict[str, Devices]:
        """Return what each claim of the pod asks for, by "namespace/name"; nothing while one of them does not exist.

        Volcano gives up on the whole pod then, until the claim is there. Claims that are counted nowhere are left out.
        """
        keys = [key_of(task.namespace, claim_name(task, listed)) for listed in task.template.resource_claims]
        if any(key not in self.claims for key in keys):
            return {}
        return {key: asked for key in sorted({*keys}) if (asked := self.asked(key))}

    def asked(self, key: str) -> Devices:
        """Return what a claim asks for; nobody may change it."""
        found = self._asked.get(key)
        if found is None:
            found = self._asked[key] = self._read(self.claims.get(key) or {})
        return found

    def _read(self, claim: Object) -> Devices:
        """Count exact requests by class; requests with alternatives or for all devices are not counted."""
        wanted = Devices()
        for request in section(section(claim, "spec"), "devices").get("requests") or ():
            exactly: dict[str, Any] | None = request.get("exactly")
            if request.get("firstAvailable") is not None or exactly is None or exactly.get("allocationMode") == "All":
                continue
            device, count = exactly.get("deviceClassName") or "", int(exactly.get("count") or 1)
            if device:
                wanted[device, COUNT] += count
                asked = section(section(exactly, "capacity"), "requests") if self._capacities else {}
                for dimension, value in asked.items():
                    amount = quantity_of(value).milli_value()
                    wanted[device, dimension] += amount * count if self.of_each_device else amount
        return wanted
