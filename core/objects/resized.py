"""Requests of a pod whose containers are resized in place: the largest of spec, status and allocated resources.

Sources: Volcano `determineContainerReqs` (`pkg/scheduler/api/pod_info.go`), Kubernetes `component-helpers/resource`
(`PodRequests` with `UseStatusResources`); the gate InPlacePodVerticalScaling is on for good.
"""

from __future__ import annotations

from typing import Any, Final

from pumice.core.objects.metadata import Object, section
from pumice.core.quantity import quantity_of

PENDING: Final = "PodResizePending"
INFEASIBLE: Final = "Infeasible"
FIX: Final = "resizes-are-ignored"
_GROUPS: Final = (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses"))


def counted_spec(pod: Object) -> Object:
    """The pod's spec with the requests that count; the spec itself where none of them differs. Raises QuantityError."""
    spec, status = section(pod, "spec"), section(pod, "status")
    if not (status.get("containerStatuses") or status.get("initContainerStatuses")):
        return spec
    changed: Object = {}
    infeasible = is_infeasible(status)
    for group, statuses in _GROUPS:
        said = {each.get("name"): each for each in status.get(statuses) or () if each.get("resources") is not None}
        if said:
            containers: list[Object] = spec.get(group) or []
            counted = [_counted(each, said.get(each.get("name")), group, infeasible=infeasible) for each in containers]
            if any(new is not old for new, old in zip(counted, containers, strict=True)):
                changed[group] = counted
    return {**spec, **changed} if changed else spec


def is_infeasible(status: Object) -> bool:
    """Return whether the node can never do what the spec asks for (IsPodResizeInfeasible)."""
    return any(
        each.get("type") == PENDING and each.get("reason") == INFEASIBLE for each in status.get("conditions") or ()
    )


def _counted(container: Object, said: Object | None, group: str, *, infeasible: bool) -> Object:
    # of the containers that come first only those that stay can be resized
    if said is None or (group == "initContainers" and container.get("restartPolicy") != "Always"):
        return container
    asked = section(section(container, "resources"), "requests")
    actual, allocated = section(section(said, "resources"), "requests"), section(said, "allocatedResources")
    counts = largest(*([] if infeasible else [asked]), actual, allocated)
    if counts == asked:
        return container
    return {**container, "resources": {**section(container, "resources"), "requests": counts}}


def largest(*lists: Object) -> dict[str, Any]:
    """Return the largest amount of each resource, as it was written."""
    found: dict[str, Any] = {}
    for amounts in lists:
        for name, amount in amounts.items():
            known = found.get(name)
            if known is None or (known != amount and quantity_of(amount).compare(quantity_of(known)) > 0):
                found[name] = amount
    return found
