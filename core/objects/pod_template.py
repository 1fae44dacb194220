# SPDX-License-Identifier: Apache-2.0
"""The part of a pod that decides where it may go, interned, so that the tasks of one role share one object.

Sources: Volcano `pkg/scheduler/api/pod_info.go` (requests), kube-scheduler `util/pod_resources.go` (non-zero requests).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from pumice.core.objects.metadata import Object, section
from pumice.core.quantity import quantity_of
from pumice.core.resources import Resource
from pumice.core.state.dimensions import Dimensions

# --- Requests of a pod that is resized in place
# Sources: Volcano `determineContainerReqs` (`pkg/scheduler/api/pod_info.go`), Kubernetes `component-helpers/resource`
# (`PodRequests` with `UseStatusResources`); the gate InPlacePodVerticalScaling is on for good.

PENDING: Final = "PodResizePending"
INFEASIBLE: Final = "Infeasible"
FIX: Final = "resizes-are-ignored"
_GROUPS: Final = (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses"))


def counted_spec(pod: Object) -> Object:
    """Return the pod's spec with the requests that count; the spec itself where all of them are equal. Raises
    QuantityError.
    """
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


def largest(*lists: Object) -> Object:
    """Return the largest amount of each resource, as it was written."""
    found: Object = {}
    for amounts in lists:
        for name, amount in amounts.items():
            known = found.get(name)
            if known is None or (known != amount and quantity_of(amount).compare(quantity_of(known)) > 0):
                found[name] = amount
    return found


DEFAULT_MILLI_CPU = 100.0  # what kube-scheduler's scorers assume for a container without a request
DEFAULT_MEMORY = 200.0 * 1024 * 1024
PARTICULAR = ("affinity", "topologySpreadConstraints", "resourceClaims")  # what no plain pod has in its spec


@dataclass(slots=True, eq=False)
class PodTemplate:
    """The scheduling-relevant part of a pod's spec. One object per distinct content; compare by identity.

    `request`: Volcano's Resreq (= InitResreq at creation), `pods` included; `items`: the same as (dimension, value),
    cpu and memory always, scalars as far as the request names them (even with 0), in name order. `nonzero_cpu` in
    milli-cores and `nonzero_memory` in bytes as kube-scheduler's NonZeroRequested. Everything else is the spec's own
    JSON, read by the filters that need it. `plain`: it asks for resources and nodes, as most do; not for ports, claims
    or company.
    """

    number: int
    request: Resource
    items: tuple[tuple[int, float], ...]
    best_effort: bool
    nonzero_cpu: float
    nonzero_memory: float
    node_selector: dict[str, str]
    affinity: Object
    tolerations: tuple[Object, ...]
    spread_constraints: tuple[Object, ...]
    host_ports: tuple[tuple[str, str, int], ...]  # (host IP, protocol, port)
    images: tuple[str, ...]
    volumes: tuple[Object, ...]
    resource_claims: tuple[Object, ...]
    scheduling_gates: tuple[str, ...]
    preemption_policy: str
    container_count: int
    spec: Object
    plain: bool


def _is_sidecar(container: Object) -> bool:
    return container.get("restartPolicy") == "Always"


def _requests(container: Object) -> Object:
    # Limits without requests are the API server's business: admission has copied them by the time a pod is seen.
    resources = container.get("resources")
    return (resources.get("requests") or {}) if resources else {}


def pod_request(spec: Object) -> Resource:
    """Return max(sum of containers and sidecars, init peak), pod-level requests, overhead, and one pod
    (GetPodResourceRequest).
    """
    result = Resource()
    for container in spec.get("containers") or ():
        result.add(Resource.from_list(_requests(container)))
    sidecars, peak = Resource(), Resource()
    for container in spec.get("initContainers") or ():
        request = Resource.from_list(_requests(container))
        if _is_sidecar(container):
            result.add(request)
            sidecars.add(request)
            # While a sidecar starts, those before it run.
            request = sidecars
        else:
            # An init container runs beside the sidecars that were started before it.
            request = request.clone().add(sidecars)
        peak.set_max_resource(request)
    result.set_max_resource(peak)
    _add_scalar(result, "pods", 1.0)
    _apply_pod_level(result, spec)
    # After pod-level requests, which replace the sums of containers but not the overhead (PodRequests).
    if spec.get("overhead"):
        result.add(Resource.from_list(spec["overhead"]))
    return result


def _add_scalar(resource: Resource, name: str, value: float) -> None:
    if resource.scalars is None:
        resource.scalars = {}
    resource.scalars[name] = resource.scalars.get(name, 0.0) + value


def _apply_pod_level(result: Resource, spec: Object) -> None:
    """Replace the sums of cpu, memory and huge pages by pod-level requests (gate PodLevelResources)."""
    requests = section(section(spec, "resources"), "requests")
    # Kubernetes takes no other resources at this level (SupportedPodLevelResources).
    supported = {n: q for n, q in requests.items() if n in ("cpu", "memory") or n.startswith("hugepages-")}
    if not supported:
        return
    level = Resource.from_list(supported)
    if "cpu" in supported:
        result.milli_cpu = level.milli_cpu
    if "memory" in supported:
        result.memory = level.memory
    for name, value in (level.scalars or {}).items():
        if result.scalars is None:
            result.scalars = {}
        result.scalars[name] = value


def _nonzero(container: Object) -> tuple[float, float]:
    requests = _requests(container)
    # An explicit 0 stays 0: only a missing request gets the default.
    cpu = float(quantity_of(requests["cpu"]).milli_value()) if "cpu" in requests else DEFAULT_MILLI_CPU
    memory = float(quantity_of(requests["memory"]).value()) if "memory" in requests else DEFAULT_MEMORY
    return cpu, memory


def nonzero_request(spec: Object) -> tuple[float, float]:
    """Return (milli-cores, bytes) with kube-scheduler's defaults for containers without requests (PodRequests,
    NonMissingContainerRequests).
    """
    cpu = memory = side_cpu = side_memory = peak_cpu = peak_memory = 0.0
    for container in spec.get("containers") or ():
        c, m = _nonzero(container)
        cpu, memory = cpu + c, memory + m
    for container in spec.get("initContainers") or ():
        c, m = _nonzero(container)
        if _is_sidecar(container):
            cpu, memory = cpu + c, memory + m
            side_cpu, side_memory = side_cpu + c, side_memory + m
            c, m = side_cpu, side_memory
        else:
            c, m = c + side_cpu, m + side_memory
        peak_cpu, peak_memory = max(peak_cpu, c), max(peak_memory, m)
    level, overhead = section(section(spec, "resources"), "requests"), section(spec, "overhead")
    cpu, memory = max(cpu, peak_cpu), max(memory, peak_memory)
    cpu = float(quantity_of(level["cpu"]).milli_value()) if "cpu" in level else cpu
    memory = float(quantity_of(level["memory"]).value()) if "memory" in level else memory
    cpu += float(quantity_of(overhead["cpu"]).milli_value()) if "cpu" in overhead else 0.0
    memory += float(quantity_of(overhead["memory"]).value()) if "memory" in overhead else 0.0
    return cpu, memory


def _host_ports(spec: Object) -> tuple[tuple[str, str, int], ...]:
    ports: list[tuple[str, str, int]] = []
    sidecars = [c for c in spec.get("initContainers") or () if _is_sidecar(c)]
    for container in [*(spec.get("containers") or ()), *sidecars]:
        for port in container.get("ports") or ():
            # With hostNetwork the API server sets hostPort to the container's port (`core/v1/defaults.go`).
            number = port.get("hostPort") or (port.get("containerPort") if spec.get("hostNetwork") else 0) or 0
            if number > 0:
                ports.append((port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", int(number)))
    return tuple(ports)


def _has_claims(spec: Object) -> bool:
    volumes: list[Object] = spec.get("volumes") or []
    return any(v.get("persistentVolumeClaim") is not None or v.get("ephemeral") is not None for v in volumes)


def read_template(spec: Object, number: int, dimensions: Dimensions) -> PodTemplate:
    """Build the template of a pod spec. Raises QuantityError for a request that is not a quantity."""
    request = pod_request(spec)
    cpu, memory = nonzero_request(spec)
    containers: list[Object] = spec.get("containers") or []
    host_ports = _host_ports(spec)
    return PodTemplate(
        number=number,
        request=request,
        items=dimensions.items(request),
        best_effort=request.is_empty(),
        nonzero_cpu=cpu,
        nonzero_memory=memory,
        node_selector=spec.get("nodeSelector") or {},
        affinity=spec.get("affinity") or {},
        tolerations=tuple(spec.get("tolerations") or ()),
        spread_constraints=tuple(spec.get("topologySpreadConstraints") or ()),
        host_ports=host_ports,
        images=tuple(c.get("image") or "" for c in containers),
        volumes=tuple(spec.get("volumes") or ()),
        resource_claims=tuple(spec.get("resourceClaims") or ()),
        scheduling_gates=tuple(gate.get("name", "") for gate in spec.get("schedulingGates") or ()),
        preemption_policy=spec.get("preemptionPolicy") or "",
        container_count=len(containers) + len(spec.get("initContainers") or ()),
        spec=spec,
        plain=not (host_ports or any(spec.get(name) for name in PARTICULAR) or _has_claims(spec)),
    )


def with_scalars(
    template: PodTemplate, number: int, more: tuple[tuple[str, float], ...], dimensions: Dimensions
) -> PodTemplate:
    """Return the template with more of some scalars in its request, in milli-units."""
    request = template.request.clone()
    for name, amount in more:
        _add_scalar(request, name, amount)
    items, best_effort = dimensions.items(request), request.is_empty()
    return replace(template, number=number, request=request, items=items, best_effort=best_effort)


def without_scalars(template: PodTemplate, number: int, names: Collection[str], dimensions: Dimensions) -> PodTemplate:
    """Return the template with some scalars left out of its request."""
    request = template.request.clone()
    request.scalars = {name: amount for name, amount in (request.scalars or {}).items() if name not in names}
    items, best_effort = dimensions.items(request), request.is_empty()
    return replace(template, number=number, request=request, items=items, best_effort=best_effort)
