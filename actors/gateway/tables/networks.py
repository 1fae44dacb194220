"""Services, their endpoints, and network policies."""

from __future__ import annotations

from typing import Any, Final

from pumice.actors.gateway.tables.ages import age
from pumice.actors.gateway.tables.column import AGE, NAME, NONE, SELECTOR, UNKNOWN, UNSET, Printer, text
from pumice.actors.gateway.tables.words import label_map, label_selector, name_of, or_none, some, spec_of, status_of
from pumice.cluster.api.fields import rows
from pumice.core.objects.metadata import Object, section

_SHOWN: Final = 3


def _service(obj: Object, now: float) -> list[Any]:
    spec = spec_of(obj)
    addresses = spec.get("clusterIPs") or [spec.get("clusterIP")]
    kind = str(spec.get("type") or "ClusterIP")
    return [
        name_of(obj),
        kind,
        or_none(addresses[0]),
        _external(kind, spec, status_of(obj)),
        ",".join(_port(one) for one in rows(spec, "ports")) or NONE,
        age(obj, now),
        label_map(spec.get("selector")),
    ]


def _external(kind: str, spec: Object, status: Object) -> str:
    listed: list[str] = spec.get("externalIPs") or []
    match kind:
        case "ClusterIP" | "NodePort":
            return ",".join(listed) or NONE
        case "LoadBalancer":
            return ",".join([*sorted(_ingress(status)), *listed]) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName") or "")
        case _:
            return UNKNOWN


def _ingress(status: Object) -> set[str]:
    given = rows(section(status, "loadBalancer"), "ingress")
    return {str(one.get("ip") or one.get("hostname") or "") for one in given} - {""}


def _port(port: Object) -> str:
    outside = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{outside}/{port.get('protocol') or 'TCP'}"


def _endpoints(obj: Object, now: float) -> list[Any]:
    found: list[str] = []
    for subset in rows(obj, "subsets"):
        addresses = [str(one.get("ip", "")) for one in rows(subset, "addresses")]
        ports = [f":{one.get('port', 0)}" for one in rows(subset, "ports")] or [""]
        found += [f"[{ip}]{port}" if ":" in ip and port else ip + port for port in ports for ip in addresses]
    return [name_of(obj), (some(found, _SHOWN) if rows(obj, "subsets") else NONE), age(obj, now)]


def _endpoint_slice(obj: Object, now: float) -> list[Any]:
    ports = [_slice_port(one) for one in rows(obj, "ports")]
    addresses = [address for one in rows(obj, "endpoints") for address in _addresses(one)]
    told = [some(parts, _SHOWN) or UNSET for parts in (ports, addresses)]
    return [name_of(obj), obj.get("addressType") or "", *told, age(obj, now)]


def _addresses(endpoint: Object) -> list[str]:
    return endpoint.get("addresses") or []


def _slice_port(port: Object) -> str:
    if port.get("port") is not None:
        return str(port["port"])
    return "*" if port.get("name") is None else str(port["name"])


def _network_policy(obj: Object, now: float) -> list[Any]:
    return [name_of(obj), label_selector(spec_of(obj).get("podSelector")) or NONE, age(obj, now)]


SERVICES: Final = Printer(
    (
        NAME,
        text("Type", "How it is reached."),
        text("Cluster-IP", "Its address inside the cluster."),
        text("External-IP", "Its addresses outside the cluster."),
        text("Port(s)", "The ports it listens on."),
        AGE,
        SELECTOR,
    ),
    _service,
)

ENDPOINTS: Final = Printer((NAME, text("Endpoints", "Addresses behind a service."), AGE), _endpoints)

ENDPOINT_SLICES: Final = Printer(
    (
        NAME,
        text("AddressType", "IPv4, IPv6 or FQDN."),
        text("Ports", "The ports of every endpoint."),
        text("Endpoints", "Addresses behind a service."),
        AGE,
    ),
    _endpoint_slice,
)

NETWORK_POLICIES: Final = Printer((NAME, text("Pod-Selector", "The pods it holds for."), AGE), _network_policy)
