"""Classes of service of pods, as Kubernetes derives them from what their containers ask for."""

from __future__ import annotations

from pumice.core.objects.metadata import Object, section


def qos_class(spec: Object) -> str:
    """Guaranteed, Burstable or BestEffort by cpu and memory of all containers (source: Kubernetes' `ComputePodQOS`)."""
    guaranteed, anything = True, False
    containers: list[Object] = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    for container in containers:
        resources = section(container, "resources")
        requests, limits = section(resources, "requests"), section(resources, "limits")
        for name in ("cpu", "memory"):
            anything = anything or name in requests or name in limits
            asked = requests[name] if name in requests else limits.get(name)
            guaranteed = guaranteed and name in limits and asked == limits[name]
    if not anything:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"
