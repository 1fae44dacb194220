"""The quality-of-service class of a pod, from its requests and limits.

Source: Kubernetes `helper/qos` (ComputePodQOS).
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from pumice.core.objects.metadata import section
from pumice.core.quantity import quantity_of

if TYPE_CHECKING:
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.quantity import Quantity

COMPUTE = ("cpu", "memory")


class Qos(Enum):
    """Who is evicted first, from the top."""

    BEST_EFFORT = "BestEffort"
    BURSTABLE = "Burstable"
    GUARANTEED = "Guaranteed"


def qos_of(template: PodTemplate) -> Qos:
    """BestEffort: nothing asked for; Guaranteed: limits for cpu and memory everywhere, equal to the requests."""
    spec = template.spec
    whole = section(spec, "resources")
    parts: list[dict[str, Any]] = [whole] if whole else _containers(spec)
    requests, limits = _sum(parts, "requests"), _sum(parts, "limits")
    if not requests and not limits:
        return Qos.BEST_EFFORT
    limited = [part for part in parts if not whole or "limits" in part]
    bounded = all(len(_positive(section(part, "limits"))) == len(COMPUTE) for part in limited)
    equal = all(name in limits and limits[name].compare(request) == 0 for name, request in requests.items())
    return Qos.GUARANTEED if bounded and equal and len(requests) == len(limits) else Qos.BURSTABLE


def _containers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    listed = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    return [section(container, "resources") for container in listed]


def _positive(amounts: dict[str, Any]) -> dict[str, Quantity]:
    found = {name: quantity_of(amounts[name]) for name in COMPUTE if name in amounts}
    return {name: quantity for name, quantity in found.items() if quantity.sign() > 0}


def _sum(parts: list[dict[str, Any]], kind: str) -> dict[str, Quantity]:
    total: dict[str, Quantity] = {}
    for part in parts:
        for name, quantity in _positive(section(part, kind)).items():
            total[name] = total[name].plus(quantity) if name in total else quantity
    return total
