"""Addresses and node ports of Services: which one a new Service gets (source: Kubernetes' `service/ipallocator`).

The address follows from the Service's name, so that it does not hang on the order in which Services are made; the next
free one is taken where two names meet.
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import blake2b
from ipaddress import IPv4Network, ip_address
from typing import Final

from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.fields import rows, section

ADDRESSES: Final = IPv4Network("10.96.0.0/16")
"""kubeadm's range for Services."""
API_ADDRESS: Final = "10.96.0.1"
"""The Service `kubernetes`."""
FIRST_PORT: Final = 30_000
LAST_PORT: Final = 32_767
_RESERVED: Final = 16
"""The first addresses are kept for those that are asked for by name."""


def used_addresses(lookup: Lookup) -> set[str]:
    """Those of all Services."""
    specs = (section(service, "spec") for service in lookup.all("Service"))
    return {str(address) for spec in specs if (address := spec.get("clusterIP")) not in (None, "", "None")}


def used_ports(lookup: Lookup) -> set[int]:
    """The node ports of all Services."""
    ports = (rows(section(service, "spec"), "ports") for service in lookup.all("Service"))
    return {number for each in ports for port in each if (number := port.get("nodePort"))}


def free_address(namespace: str, name: str, used: Collection[str]) -> str:
    """An address that nobody has; "" when there is none left."""
    size = ADDRESSES.num_addresses - _RESERVED - 1
    start = _mark(namespace, name) % size
    for step in range(size):
        address = str(ADDRESSES[_RESERVED + (start + step) % size])
        if address not in used:
            return address
    return ""


def free_port(namespace: str, name: str, used: Collection[int]) -> int:
    """A node port that nobody has; 0 when there is none left."""
    size = LAST_PORT - FIRST_PORT + 1
    start = _mark(namespace, name) % size
    ports = (FIRST_PORT + (start + step) % size for step in range(size))
    return next((port for port in ports if port not in used), 0)


def is_address(address: str) -> bool:
    """Whether it is one at all: a Service out of another cluster has one of another range."""
    try:
        ip_address(address)
    except ValueError:
        return False
    return True


def _mark(namespace: str, name: str) -> int:
    return int.from_bytes(blake2b(f"{namespace}/{name}".encode(), digest_size=8).digest(), "big")
