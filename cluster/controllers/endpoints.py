# SPDX-License-Identifier: Apache-2.0
"""Endpoints and EndpointSlices of Services as a pure machine (source: Kubernetes' two controllers for them).

A Service with a selector has the pods that it selects. The others are left to their makers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

from msgspec import Struct

from pumice.cluster.controllers.pods_of import reference
from pumice.cluster.machine import Machine
from pumice.core.life.task import ENDED_PHASES
from pumice.core.messages.commands import ApiRequest, Create, Delete, Patch
from pumice.core.objects.metadata import Object, has_condition, section, text_map
from pumice.storage.codec import pack

# --- Contents of Endpoints and EndpointSlices
# Source: Kubernetes' endpoints and endpointslice controllers.

Ports = tuple[tuple[str, int, str, str], ...]
"""Name, number, protocol and appProtocol of each."""

SERVICE_NAME: Final = "kubernetes.io/service-name"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
SLICE_CONTROLLER: Final = "endpointslice-controller.k8s.io"
ENDPOINTS_LABELS: Final = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
HEADLESS: Final = "service.kubernetes.io/headless"
CUT: Final = "endpoints.kubernetes.io/over-capacity"
MOST_ADDRESSES: Final = 1_000
MOST_IN_SLICE: Final = 100


class ReachedPod(Struct, frozen=True):
    """A pod behind a Service."""

    address: str
    ports: Ports
    ready: bool
    leaving: bool
    node: str
    hostname: str
    namespace: str
    name: str
    uid: str


class AddressedPod(Struct, frozen=True, gc=False):
    """Parts of a pod with an address that Services read. The decoded pod is fifteen times as large, and one is kept for
    each running pod. `named_ports`: name, protocol and number of its containers' named ports.
    """

    address: str
    ready: bool
    leaving: bool
    node: str
    hostname: str
    subdomain: str
    namespace: str
    name: str
    uid: str
    labels: dict[str, str]
    named_ports: tuple[tuple[str, str, int], ...]


def addressed(pod: Object) -> AddressedPod | None:
    """Return the parts of a pod that Services read; None while it cannot be reached."""
    meta, spec, status = pod["metadata"], section(pod, "spec"), section(pod, "status")
    address = status.get("podIP")
    if not address or status.get("phase") in ENDED_PHASES:
        return None
    ports = [port for each in spec.get("containers") or () for port in each.get("ports") or () if port.get("name")]
    return AddressedPod(
        address,
        has_condition(pod, "Ready"),
        "deletionTimestamp" in meta,
        spec.get("nodeName") or "",
        spec.get("hostname") or "",
        spec.get("subdomain") or "",
        meta["namespace"],
        meta["name"],
        meta["uid"],
        text_map(meta.get("labels")),
        tuple([(port["name"], port.get("protocol", "TCP"), port["containerPort"]) for port in ports]),
    )


def target_of(service: Object, pod: AddressedPod) -> ReachedPod:
    """Return the pod as its Service sees it."""
    return ReachedPod(
        pod.address,
        _ports(service, pod),
        pod.ready or bool(service["spec"].get("publishNotReadyAddresses")),
        pod.leaving,
        pod.node,
        # only under the Service that its `subdomain` names has a pod a name of its own in the DNS
        pod.hostname if pod.subdomain == service["metadata"]["name"] else "",
        pod.namespace,
        pod.name,
        pod.uid,
    )


def _ports(service: Object, pod: AddressedPod) -> Ports:
    found: list[tuple[str, int, str, str]] = []
    for port in service["spec"].get("ports") or ():
        number = _number(port, pod)
        if number:
            found.append((port.get("name") or "", number, port["protocol"], port.get("appProtocol") or ""))
    return tuple(found)


def _number(port: Object, pod: AddressedPod) -> int:
    """Return the number of the pod's port, which may be given by its name (0: it has none of that name)."""
    wanted = port.get("targetPort")
    if isinstance(wanted, int):
        return wanted
    for name, protocol, number in pod.named_ports:
        if name == wanted and protocol == port["protocol"]:
            return int(number)
    return int(wanted) if isinstance(wanted, str) and wanted.isdigit() else 0


def endpoints_of(service: Object, targets: Iterable[ReachedPod]) -> Object:
    """Return the Endpoints: pods by their ports; terminating ones are in none."""
    meta = service["metadata"]
    # the same named port may have another number in another pod, so that pods of equal numbers form a subset
    by_ports: dict[Ports, list[ReachedPod]] = {}
    # ready pods first: what goes beyond the limit is cut off (Kubernetes' `truncateEndpoints`)
    every = sorted((each for each in targets if not each.leaving), key=lambda each: (not each.ready, each.address))
    for each in every[:MOST_ADDRESSES]:
        by_ports.setdefault(each.ports, []).append(each)
    labels = {**text_map(meta.get("labels")), **ENDPOINTS_LABELS}
    if service["spec"].get("clusterIP") == "None":
        labels[HEADLESS] = ""
    made: Object = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": meta["name"], "namespace": meta["namespace"], "labels": labels},
        "subsets": [_subset(ports, by_ports[ports]) for ports in sorted(by_ports)],
    }
    if len(every) > MOST_ADDRESSES:
        made["metadata"]["annotations"] = {CUT: "truncated"}
    return made


def _subset(ports: Ports, targets: Sequence[ReachedPod]) -> Object:
    subset: Object = {}
    for name, ready in (("addresses", True), ("notReadyAddresses", False)):
        found = [_address(each) for each in targets if each.ready is ready]
        if found:
            subset[name] = found
    if ports:
        subset["ports"] = [_port(port) for port in ports]
    return subset


def _address(target: ReachedPod) -> Object:
    address: Object = {"ip": target.address}
    if target.hostname:
        address["hostname"] = target.hostname
    if target.node:
        address["nodeName"] = target.node
    return address | _about(target)


def _about(target: ReachedPod) -> Object:
    names = {"kind": "Pod", "namespace": target.namespace, "name": target.name, "uid": target.uid}
    return {"targetRef": names}


def _port(port: tuple[str, int, str, str]) -> Object:
    name, number, protocol, application = port
    made: Object = {"port": number, "protocol": protocol}
    if name:
        made["name"] = name
    if application:
        made["appProtocol"] = application
    return made


def slices_of(service: Object, targets: Iterable[ReachedPod]) -> list[Object]:
    """Return the EndpointSlices of a hundred pods each; the place of a pod among the pods of its ports determines the
    slice.
    """
    by_ports: dict[Ports, list[ReachedPod]] = {}
    for each in sorted(targets, key=lambda each: (each.namespace, each.name, each.address)):
        by_ports.setdefault(each.ports, []).append(each)
    made: list[Object] = []
    for ports in sorted(by_ports):
        found = by_ports[ports]
        starts = range(0, len(found), MOST_IN_SLICE)
        made += [_slice(service, ports, found[start : start + MOST_IN_SLICE], start) for start in starts]
    # without pods an empty slice says so, as Kubernetes' reconciler makes a placeholder
    return made or [_slice(service, (), (), 0)]


def _slice(service: Object, ports: Ports, targets: Sequence[ReachedPod], start: int) -> Object:
    meta = service["metadata"]
    # the name follows from what is in it: a slice is found again, and patched, instead of made anew
    mark = blake2b(f"{meta['uid']} {ports} {start}".encode(), digest_size=3).hexdigest()
    labels = {**text_map(meta.get("labels")), SERVICE_NAME: meta["name"], MANAGED_BY: SLICE_CONTROLLER}
    if service["spec"].get("clusterIP") == "None":
        labels[HEADLESS] = ""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{meta['name']}-{mark}",
            "namespace": meta["namespace"],
            "labels": labels,
            "ownerReferences": [reference(service)],
        },
        "addressType": "IPv4",
        "endpoints": [_endpoint(each) for each in targets],
        "ports": [_sliced_port(port) for port in ports],
    }


def _endpoint(target: ReachedPod) -> Object:
    conditions = {"ready": target.ready and not target.leaving, "serving": target.ready, "terminating": target.leaving}
    endpoint: Object = {"addresses": [target.address], "conditions": conditions}
    if target.hostname:
        endpoint["hostname"] = target.hostname
    if target.node:
        endpoint["nodeName"] = target.node
    return endpoint | _about(target)


def _sliced_port(port: tuple[str, int, str, str]) -> Object:
    return {"name": port[0], **_port(port)}


Key = tuple[str, str]

USER: Final = "endpoints-controller"


class EndpointsMachine(Machine):
    """Writes the Endpoints and EndpointSlices of Services."""

    kinds = ("Service", "Pod", "Endpoints", "EndpointSlice")

    def __init__(self) -> None:
        self._services: dict[str, dict[str, Object]] = {}
        self._pods: dict[str, dict[str, AddressedPod]] = {}
        self._endpoints: dict[Key, Object] = {}
        self._slices: dict[Key, dict[str, Object]] = {}
        self._dirty: dict[Key, None] = {}

    # --- what changed

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Note an object that exists, or was deleted, as of `revision`."""
        key = (obj["metadata"].get("namespace") or "", obj["metadata"]["name"])
        match kind:
            case "Service":
                self._service(key, obj, deleted=deleted)
            case "Pod":
                self._pod(key, obj, deleted=deleted)
            case "Endpoints":
                self._known(key, obj, deleted=deleted)
            case _:
                self._slice(key, obj, deleted=deleted)

    def _service(self, key: Key, service: Object, *, deleted: bool) -> None:
        here = self._services.setdefault(key[0], {})
        if deleted:
            here.pop(key[1], None)
        else:
            here[key[1]] = service
        self._dirty[key] = None

    def _known(self, key: Key, endpoints: Object, *, deleted: bool) -> None:
        if deleted:
            self._endpoints.pop(key, None)
        else:
            self._endpoints[key] = endpoints
        self._dirty[key] = None

    def _slice(self, key: Key, found: Object, *, deleted: bool) -> None:
        labels = text_map(found["metadata"].get("labels"))
        # by name and under every Service: its label may have been taken off before it was deleted
        for owner, held in [*self._slices.items()] if deleted else ():
            if owner[0] == key[0] and held.pop(key[1], None) is not None:
                self._dirty[owner] = None
        if not deleted and labels.get(MANAGED_BY) == SLICE_CONTROLLER and (name := labels.get(SERVICE_NAME)):
            self._slices.setdefault((key[0], name), {})[key[1]] = found
            self._dirty[key[0], name] = None

    def _pod(self, key: Key, pod: Object, *, deleted: bool) -> None:
        here = self._pods.setdefault(key[0], {})
        before, after = here.pop(key[1], None), None if deleted else addressed(pod)
        if after is not None:
            here[key[1]] = after
        if before is None and after is None:
            return
        for name, service in self._services.get(key[0], {}).items():
            old = None if before is None else self._seen(service, before)
            new = None if after is None else self._seen(service, after)
            # a pod changes often, what a Service sees of it seldom
            if old != new:
                self._dirty[key[0], name] = None

    @staticmethod
    def _seen(service: Object, pod: AddressedPod) -> ReachedPod | None:
        """Return the pod as one behind the Service; None when it is not."""
        selector = section(service, "spec").get("selector")
        if not selector or not selector.items() <= pod.labels.items():
            return None
        return target_of(service, pod)

    # --- what to do

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is due before the next change or timer."""
        dirty, self._dirty = self._dirty, {}
        return [request for key in dirty for request in self._work(key)]

    def _work(self, key: Key) -> list[ApiRequest]:
        service = self._services.get(key[0], {}).get(key[1])
        if service is None:
            own = key in self._slices  # another client may have made Endpoints of that name
            self._slices.pop(key, None)
            return [Delete("Endpoints", *key, user=USER)] if own and key in self._endpoints else []
        targets = self._targets(key, service)
        if targets is None or "deletionTimestamp" in service["metadata"]:
            return []
        requests = _settled("Endpoints", self._endpoints.get(key), endpoints_of(service, targets), ("subsets",))
        held, wanted = self._slices.get(key, {}), slices_of(service, targets)
        for each in wanted:
            requests += _settled("EndpointSlice", held.get(each["metadata"]["name"]), each, ("endpoints", "ports"))
        kept = {each["metadata"]["name"] for each in wanted}
        return requests + [Delete("EndpointSlice", key[0], name, user=USER) for name in held if name not in kept]

    def _targets(self, key: Key, service: Object) -> list[ReachedPod] | None:
        """Return the pods behind the Service; None when another controller manages its endpoints."""
        spec = section(service, "spec")
        if not spec.get("selector") or spec.get("type") == "ExternalName":
            return None
        found = (self._seen(service, pod) for pod in self._pods.get(key[0], {}).values())
        return [each for each in found if each is not None]


def _settled(kind: str, known: Object | None, wanted: Object, parts: Sequence[str]) -> list[ApiRequest]:
    """Return the requests that turn the existing object into the wanted one."""
    if known is None:
        return [Create(pack(wanted), user=USER)]
    meta, labels = known["metadata"], wanted["metadata"]["labels"]
    patch: Object = {part: wanted[part] for part in parts if (known.get(part) or []) != wanted[part]}
    # labels that other clients have added stay
    if not labels.items() <= text_map(meta.get("labels")).items():
        patch["metadata"] = {"labels": labels}
    return [Patch(kind, meta["namespace"], meta["name"], pack(patch), user=USER)] if patch else []
