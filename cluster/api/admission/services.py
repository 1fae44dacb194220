# SPDX-License-Identifier: Apache-2.0
"""Services: their addresses and ports, and the fields that clients read back (source: Kubernetes'
`SetDefaults_Service`, `ValidateService` and the Service's REST storage).
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import blake2b
from ipaddress import IPv4Network, ip_address
from typing import Final

from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.names import label_problem
from pumice.cluster.api.refusals import Cause, duplicate, invalid_value, required, unsupported
from pumice.cluster.api.schema.table import enum_of
from pumice.core.objects.metadata import Object, rows, section

# --- Addresses and node ports (source: Kubernetes' `service/ipallocator`)
# The address follows from the Service's name, so that it does not hang on the order in which Services are made; the
# next free one is taken where two names meet.

ADDRESSES: Final = IPv4Network("10.96.0.0/16")
"""kubeadm's range for Services."""
API_ADDRESS: Final = "10.96.0.1"
"""The Service `kubernetes`."""
FIRST_PORT: Final = 30_000
LAST_PORT: Final = 32_767
_RESERVED: Final = 16
"""The first addresses are kept for those that are asked for by name."""


def used_addresses(lookup: Lookup) -> set[str]:
    """Return the addresses of all Services."""
    specs = (section(service, "spec") for service in lookup.all("Service"))
    return {str(address) for spec in specs if (address := spec.get("clusterIP")) not in (None, "", "None")}


def used_ports(lookup: Lookup) -> set[int]:
    """Return the node ports of all Services."""
    ports = (rows(section(service, "spec"), "ports") for service in lookup.all("Service"))
    return {number for each in ports for port in each if (number := port.get("nodePort"))}


def free_address(namespace: str, name: str, used: Collection[str]) -> str:
    """Return a free address; "" when none is left."""
    # the last address of the range is its broadcast address, which no Service gets
    size = ADDRESSES.num_addresses - _RESERVED - 1
    start = _mark(namespace, name) % size
    for step in range(size):
        address = str(ADDRESSES[_RESERVED + (start + step) % size])
        if address not in used:
            return address
    return ""


def free_port(namespace: str, name: str, used: Collection[int]) -> int:
    """Return a free node port; 0 when none is left."""
    size = LAST_PORT - FIRST_PORT + 1
    start = _mark(namespace, name) % size
    ports = (FIRST_PORT + (start + step) % size for step in range(size))
    return next((port for port in ports if port not in used), 0)


def is_address(address: str) -> bool:
    """Return whether the text is an IP address. A Service copied from another cluster may have an address of another
    range.
    """
    try:
        ip_address(address)
    except ValueError:
        return False
    return True


def _mark(namespace: str, name: str) -> int:
    return int.from_bytes(blake2b(f"{namespace}/{name}".encode(), digest_size=8).digest(), "big")


TYPES: Final = enum_of("core.v1.ServiceSpec", "type")
_WITH_NODE_PORTS: Final = ("NodePort", "LoadBalancer")
_PROTOCOLS: Final = enum_of("core.v1.ServicePort", "protocol")
_AFFINITIES: Final = enum_of("core.v1.ServiceSpec", "sessionAffinity")
_OF_ADDRESSES: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy")


def default(service: Object, lookup: Lookup) -> None:
    """Fill in type, affinity, protocols, target ports, and an address."""
    _defaults(service)
    _allocate(service, lookup, set())


def _defaults(service: Object) -> None:
    spec = dict(section(service, "spec"))  # of a changed one it may be the stored one's
    spec["type"] = spec.get("type") or "ClusterIP"
    spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
    if spec["sessionAffinity"] == "ClientIP" and not spec.get("sessionAffinityConfig"):
        # three hours: Kubernetes' `DefaultClientIPServiceAffinitySeconds`
        spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
    external = spec["type"] == "ExternalName"
    if spec.get("ports"):
        spec["ports"] = [_port(port, external=external) for port in rows(spec, "ports")]
    if not external:
        spec["internalTrafficPolicy"] = spec.get("internalTrafficPolicy") or "Cluster"
    if spec["type"] in _WITH_NODE_PORTS:
        spec["externalTrafficPolicy"] = spec.get("externalTrafficPolicy") or "Cluster"
    if spec["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
        spec["allocateLoadBalancerNodePorts"] = True
    service["spec"] = spec


def _port(port: Object, *, external: bool) -> Object:
    port = {**port, "protocol": port.get("protocol") or "TCP"}
    if not external and port.get("targetPort") in (None, "", 0):
        port["targetPort"] = port.get("port")
    return port


def _allocate(service: Object, lookup: Lookup, own: set[int]) -> None:
    """Allocate the addresses and ports that must be unique; `own`: node ports that the Service had before."""
    meta, spec = service["metadata"], service["spec"]
    namespace, name = meta.get("namespace") or "", meta["name"]
    if spec["type"] == "ExternalName":
        return
    if not spec.get("clusterIP") and spec.get("clusterIPs"):
        spec["clusterIP"] = spec["clusterIPs"][0]
    if not spec.get("clusterIP"):
        spec["clusterIP"] = free_address(namespace, name, used_addresses(lookup))
    spec["clusterIPs"] = spec.get("clusterIPs") or [spec["clusterIP"]]
    spec["ipFamilies"] = spec.get("ipFamilies") or ["IPv4"]
    spec["ipFamilyPolicy"] = spec.get("ipFamilyPolicy") or "SingleStack"
    if spec["type"] == "NodePort" or spec.get("allocateLoadBalancerNodePorts"):
        used = used_ports(lookup) | {port["nodePort"] for port in rows(spec, "ports") if port.get("nodePort")}
        # a port that this change gives up does not go to another port of the same Service
        used |= own
        for number, port in enumerate(rows(spec, "ports")):
            if not port.get("nodePort"):
                port["nodePort"] = free_port(namespace, f"{name}/{number}", used)
                used.add(port["nodePort"])


def validate(service: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a new Service: its addresses and ports."""
    name = service["metadata"]["name"]
    # Kubernetes' `ValidateServiceName`: a label of RFC 1035, which cannot begin with a digit
    problem = label_problem(name) or ("must start with a letter" if name[0].isdigit() else None)
    found = [invalid_value("metadata.name", name, problem)] if problem else []
    return found + _problems(service["spec"]) + _taken(service, lookup)


def _problems(spec: Object) -> list[Cause]:
    kind, headless = spec["type"], spec.get("clusterIP") == "None"
    if kind not in TYPES:
        return [unsupported("spec.type", kind, TYPES)]
    found: list[Cause] = []
    if kind == "ExternalName":
        if not spec.get("externalName"):
            found.append(required("spec.externalName"))
    elif not rows(spec, "ports") and not headless:
        found.append(required("spec.ports"))
    if headless and kind in _WITH_NODE_PORTS:
        found.append(invalid_value("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services"))
    if spec["sessionAffinity"] not in _AFFINITIES:
        found.append(unsupported("spec.sessionAffinity", spec["sessionAffinity"], _AFFINITIES))
    return found + _port_problems(rows(spec, "ports"))


def _port_problems(ports: list[Object]) -> list[Cause]:
    found: list[Cause] = []
    names: set[str] = set()
    numbers: set[tuple[str, int]] = set()
    for place, port in enumerate(ports):
        where, name = f"spec.ports[{place}]", port.get("name") or ""
        if not name and len(ports) > 1:
            found.append(required(f"{where}.name"))
        elif name and (problem := label_problem(name)):
            found.append(invalid_value(f"{where}.name", name, problem))
        elif name in names:
            found.append(duplicate(f"{where}.name", name))
        names.add(name)
        number = port.get("port") or 0
        if not 1 <= number <= 65_535:
            found.append(invalid_value(f"{where}.port", number, "must be between 1 and 65535, inclusive"))
        if port["protocol"] not in _PROTOCOLS:
            found.append(unsupported(f"{where}.protocol", port["protocol"], _PROTOCOLS))
        if (port["protocol"], number) in numbers:
            found.append(duplicate(where, f"{port['protocol']}/{number}"))
        numbers.add((port["protocol"], number))
    return found


def _taken(service: Object, lookup: Lookup) -> list[Cause]:
    """Return addresses and node ports that other Services have, or that are reserved."""
    meta, spec = service["metadata"], service["spec"]
    if spec["type"] == "ExternalName":
        return []
    own = (meta.get("namespace"), meta["name"])
    others = [
        section(each, "spec")
        for each in lookup.all("Service")
        if (each["metadata"].get("namespace"), each["metadata"]["name"]) != own
    ]
    found: list[Cause] = []
    address = spec["clusterIP"]
    if address != "None" and not is_address(address):
        found.append(invalid_value("spec.clusterIPs[0]", address, "must be a valid IP address, (e.g. 10.9.8.7)"))
    elif address != "None" and any(other.get("clusterIP") == address for other in others):
        why = f"failed to allocate IP {address}: provided IP is already allocated"
        found.append(invalid_value("spec.clusterIPs", [address], why))
    # with the protocol: TCP and UDP may have the same number
    taken = {(port["protocol"], port.get("nodePort")) for other in others for port in rows(other, "ports")}
    for place, port in enumerate(rows(spec, "ports")):
        number, where = port.get("nodePort"), f"spec.ports[{place}].nodePort"
        if number and not FIRST_PORT <= number <= LAST_PORT:
            why = f"The range of valid ports is {FIRST_PORT}-{LAST_PORT}"
            found.append(invalid_value(where, number, why))
        elif number and (port["protocol"], number) in taken:
            found.append(invalid_value(where, number, "provided port is already allocated"))
    return found


def validate_update(old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems that `validate` finds in the changed fields; a Service keeps its address as long as it has
    one.
    """
    _defaults(new)
    before, spec = section(old, "spec"), new["spec"]
    if spec["type"] == "ExternalName":
        for name in _OF_ADDRESSES:
            if name not in ("internalTrafficPolicy",) and spec.get(name) == before.get(name):
                spec.pop(name, None)
    elif before.get("clusterIP"):
        for name in _OF_ADDRESSES:
            spec[name] = spec.get(name) or before.get(name)
        if spec["clusterIP"] != before["clusterIP"] and before.get("type") != "ExternalName":
            return [invalid_value("spec.clusterIPs[0]", spec["clusterIP"], "may not change once set")]
    _keep_node_ports(before, spec)
    _allocate(new, lookup, {port["nodePort"] for port in rows(before, "ports") if port.get("nodePort")})
    return _problems(spec) + _taken(new, lookup)


def _keep_node_ports(before: Object, spec: Object) -> None:
    """Keep the node port of a port that a change does not name; release unused ones."""
    if spec["type"] not in _WITH_NODE_PORTS:
        given = {port.get("nodePort") for port in rows(before, "ports")}
        for port in rows(spec, "ports"):
            if port.get("nodePort") in given:
                port.pop("nodePort", None)
        spec.pop("externalTrafficPolicy", None)
        spec.pop("allocateLoadBalancerNodePorts", None)
        return
    known = {(port.get("protocol"), port.get("port")): port.get("nodePort") for port in rows(before, "ports")}
    for port in rows(spec, "ports"):
        if not port.get("nodePort") and (number := known.get((port["protocol"], port.get("port")))):
            port["nodePort"] = number
