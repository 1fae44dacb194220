# SPDX-License-Identifier: Apache-2.0
"""Devices offered by ResourceSlices, and those that could serve a claim on a node.

Source: Kubernetes' structured parameters (`k8s.io/dynamic-resource-allocation/structured`): requests in order, devices
in order of slices, back to the previous choice when a later request or a constraint cannot be met. Not done: shared
counters, consumable capacity, device taints, admin access, extended resources.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from pumice.core.kube.cel.quantities import Amount, Domains, Version, VersionError
from pumice.core.kube.cel.reading import ExpressionError
from pumice.core.kube.node_selector import rows_in_term
from pumice.core.kube.selectors import SelectorError
from pumice.core.objects.metadata import key_of, section
from pumice.core.quantity import quantity_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pumice.core.kube.rows import BoolArray, NodeRows
    from pumice.core.objects.metadata import Object
    from pumice.core.objects.pod import Task

# --- Claims of pods
# Source: Volcano `cache.go` (resolvePodClaimName, buildTaskDRAInfo). Capacities of devices are in milli-units;
# Volcano counts them behind Kubernetes' feature gate DRAConsumableCapacity, which is off.

COUNT: Final = ""  # the dimension that counts devices

Devices = Counter[tuple[str, str]]  # (device class, dimension) -> amount


def claim_name(task: Task, listed: Object) -> str:
    """Return the name of a claim that the pod lists: its own, or the one in the pod's status; "" without one."""
    named = listed.get("resourceClaimName")
    return str(named or "") if named is not None else dict(task.claim_names).get(str(listed.get("name"))) or ""


class DevicesByClaim:
    """Reads the requests of claims, each once. `capacities`: of devices, too."""

    of_each_device = True
    """True when a request asks for a capacity as many times as for devices."""

    def __init__(self, claims: Mapping[str, Object], *, capacities: bool = False) -> None:
        self.claims = claims
        self._capacities = capacities
        self._asked: dict[str, Devices] = {}

    def of(self, task: Task) -> dict[str, Devices]:
        """Return the requests of each claim of the pod, by "namespace/name"; empty while one of the claims does not
        exist.

        Volcano gives up on the whole pod then, until the claim is there. Claims that are counted nowhere are left out.
        """
        keys = [key_of(task.namespace, claim_name(task, listed)) for listed in task.template.resource_claims]
        if any(key not in self.claims for key in keys):
            return {}
        return {key: asked for key in sorted({*keys}) if (asked := self.asked(key))}

    def asked(self, key: str) -> Devices:
        """Return the requests of a claim; the caller must not change them."""
        found = self._asked.get(key)
        if found is None:
            found = self._asked[key] = self._read(self.claims.get(key) or {})
        return found

    def _read(self, claim: Object) -> Devices:
        """Count exact requests by class; requests with alternatives or for all devices are not counted."""
        wanted = Devices()
        for request in section(section(claim, "spec"), "devices").get("requests") or ():
            exactly: Object | None = request.get("exactly")
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


# AllocationResultsMaxSize of Kubernetes (`resource/v1/types.go`).
MOST_DEVICES = 32  # of one claim


class DeviceId(NamedTuple):
    """A device by name."""

    driver: str
    pool: str
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """One device: the part of it that selectors see, and the nodes [N] that can use it."""

    id: DeviceId
    seen: Object
    rows: BoolArray

    def attribute(self, name: str) -> object:
        """Return the value of a fully qualified attribute, None without it."""
        domain, _, key = name.rpartition("/")
        attributes: Domains = self.seen["attributes"]
        return attributes[domain].get(key)


def _matching(devices: Sequence[Device], expressions: Sequence[str]) -> list[Device]:
    """Return the devices for which all expressions hold. Raises ExpressionError."""
    if not expressions:
        return list(devices)
    from pumice.core.kube.cel.evaluating import is_true  # noqa: PLC0415 - few clusters have selectors of devices

    return [device for device in devices if all(is_true(each, device.seen) for each in expressions)]


def _value(listed: Object) -> Any:
    if "version" in listed:
        try:
            return Version(str(listed["version"]))
        except VersionError as error:
            raise ExpressionError(str(error)) from error
    return next((listed[kind] for kind in ("string", "int", "bool") if kind in listed), None)


def _by_domain(listed: Object, driver: str) -> Domains:
    found = Domains()
    for name, value in listed.items():
        domain, _, key = name.rpartition("/")
        # A name without a domain is in the driver's own (API type QualifiedName).
        found.setdefault(domain or driver, {})[key] = value
    return found


def _rows(nodes: NodeRows, spec: Object) -> BoolArray:
    """Return the nodes that a slice or a device names."""
    mask = np.zeros(nodes.count, dtype=np.bool_)
    if spec.get("allNodes"):
        mask[:] = True
    elif spec.get("nodeName"):
        if spec["nodeName"] in nodes.row:
            mask[nodes.row[spec["nodeName"]]] = True
    else:
        terms: list[Object] = section(spec, "nodeSelector").get("nodeSelectorTerms") or []
        for term in terms:
            try:
                mask |= rows_in_term(nodes, term)
            except SelectorError:
                continue
    return mask


def _device(nodes: NodeRows, spec: Object, listed: Object, rows: BoolArray | None) -> Device:
    driver = str(spec.get("driver") or "")
    attributes = {name: _value(value) for name, value in section(listed, "attributes").items()}
    capacity = {name: Amount(quantity_of(value.get("value"))) for name, value in section(listed, "capacity").items()}
    seen = {"driver": driver, "attributes": _by_domain(attributes, driver), "capacity": _by_domain(capacity, driver)}
    identity = DeviceId(driver, str(section(spec, "pool").get("name") or ""), str(listed.get("name") or ""))
    return Device(identity, seen, _rows(nodes, listed) if rows is None else rows)


def devices_of(nodes: NodeRows, slices: Mapping[str, Object]) -> list[Device]:
    """Return the devices of all pools that are complete, of each pool's newest generation, slices in name order."""
    newest: dict[tuple[str, str], list[Object]] = {}
    for name in sorted(slices):
        spec = section(slices[name], "spec")
        pool = section(spec, "pool")
        key = (str(spec.get("driver") or ""), str(pool.get("name") or ""))
        known = newest.setdefault(key, [])
        if known and int(section(known[0], "pool").get("generation") or 0) < int(pool.get("generation") or 0):
            known.clear()
        if not known or section(known[0], "pool").get("generation") == pool.get("generation"):
            known.append(spec)
    found: list[Device] = []
    for specs in newest.values():
        if len(specs) == int(section(specs[0], "pool").get("resourceSliceCount") or 0):
            for spec in specs:
                rows = None if spec.get("perDeviceNodeSelection") else _rows(nodes, spec)
                listed: list[Object] = spec.get("devices") or []
                found += (_device(nodes, spec, one, rows) for one in listed)
    return found


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """One request of a claim: `count` None is all there are."""

    name: str
    expressions: tuple[str, ...]
    count: int | None


def _expressions(listed: Sequence[Object]) -> tuple[str, ...]:
    return tuple(str(section(one, "cel").get("expression") or "") for one in listed if one.get("cel"))


def _request(name: str, asked: Object, classes: Mapping[str, Object]) -> DeviceRequest:
    class_name = str(asked.get("deviceClassName") or "")
    known = classes.get(class_name)
    if known is None:
        raise ExpressionError(f"request {name}: device class {class_name} does not exist")
    of_class: list[Object] = section(known, "spec").get("selectors") or []
    own: list[Object] = asked.get("selectors") or []
    every = asked.get("allocationMode") == "All"
    return DeviceRequest(
        name, _expressions(of_class) + _expressions(own), None if every else int(asked.get("count") or 1)
    )


def requests_of(claim: Object, classes: Mapping[str, Object]) -> list[list[DeviceRequest]]:
    """Return the requests of a claim, each with its alternatives in order of preference.

    Raises ExpressionError for an unknown class.
    """
    found: list[list[DeviceRequest]] = []
    listed: list[Object] = section(section(claim, "spec"), "devices").get("requests") or []
    for one in listed:
        name, exactly = str(one.get("name") or ""), one.get("exactly")
        first: list[Object] = one.get("firstAvailable") or []
        if exactly is not None:
            found.append([_request(name, exactly, classes)])
        else:
            found.append([_request(f"{name}/{sub.get('name') or ''}", sub, classes) for sub in first])
    return found


class DeviceConstraint(NamedTuple):
    """All devices of these requests (of all, when none is named) share the value of an attribute."""

    attribute: str
    requests: tuple[str, ...]

    def covers(self, request: str) -> bool:
        """Return whether a request, or its parent, is named."""
        return not self.requests or request in self.requests or request.split("/", 1)[0] in self.requests


def constraints_of(claim: Object) -> list[DeviceConstraint]:
    """Return the matchAttribute constraints of a claim."""
    listed: list[Object] = section(section(claim, "spec"), "devices").get("constraints") or []
    return [
        DeviceConstraint(str(one["matchAttribute"]), tuple(one.get("requests") or []))
        for one in listed
        if one.get("matchAttribute")
    ]


Choice = tuple[str, Device]  # request name and device


class Given(NamedTuple):
    """A device that a request of a claim gets. `everywhere`: all nodes can use it."""

    request: str
    device: DeviceId
    everywhere: bool = False


class Allocator:
    """Chooses devices on one node for claims, one after the other; `taken` are the devices in use."""

    def __init__(self, devices: list[Device], taken: set[DeviceId]) -> None:
        self._devices, self._taken = devices, taken

    def allocate(
        self, claims: list[tuple[list[list[DeviceRequest]], list[DeviceConstraint]]]
    ) -> list[list[Given]] | None:
        """Return the devices of each claim; None where they do not suffice. Raises ExpressionError."""
        if not claims:
            return []
        requests, constraints = claims[0]
        for chosen in self._choices(requests, constraints, []):
            ids = [device.id for _, device in chosen]
            rest = Allocator(self._devices, self._taken.union(ids)).allocate(claims[1:])
            if rest is not None:
                given = [Given(name, device.id, bool(device.rows.all())) for name, device in chosen]
                return [given, *rest]
        return None

    def _choices(
        self, requests: list[list[DeviceRequest]], constraints: list[DeviceConstraint], chosen: list[Choice]
    ) -> Iterator[list[Choice]]:
        if len(chosen) > MOST_DEVICES:
            return
        if not requests:
            yield chosen
            return
        for request in requests[0]:
            fitting = _matching(self._devices, request.expressions)
            wanted = len(fitting) if request.count is None else request.count
            # `All` needs every device that matches, and at least one: one in use leaves nothing to choose.
            if request.count is None and (not fitting or any(d.id in self._taken for d in fitting)):
                continue
            for more in self._pick(request, wanted, fitting, constraints, chosen):
                yield from self._choices(requests[1:], constraints, more)

    def _pick(
        self,
        request: DeviceRequest,
        wanted: int,
        fitting: list[Device],
        constraints: list[DeviceConstraint],
        chosen: list[Choice],
    ) -> Iterator[list[Choice]]:
        """Yield choices of `wanted` more devices, in order."""
        if not wanted:
            yield chosen
            return
        in_use = self._taken.union(device.id for _, device in chosen)
        for i, device in enumerate(fitting):
            if device.id not in in_use and _agrees(request.name, device, constraints, chosen):
                # Only devices behind this one: the same devices in another order are no other choice.
                yield from self._pick(
                    request, wanted - 1, fitting[i + 1 :], constraints, [*chosen, (request.name, device)]
                )


def _agrees(request: str, device: Device, constraints: list[DeviceConstraint], chosen: list[Choice]) -> bool:
    for constraint in constraints:
        if constraint.covers(request):
            value = device.attribute(constraint.attribute)
            others = (d.attribute(constraint.attribute) for name, d in chosen if constraint.covers(name))
            # The types count, too: to Python, true equals 1.
            if value is None or any(type(other) is not type(value) or other != value for other in others):
                return False
    return True
