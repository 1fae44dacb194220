"""Addresses of nodes and of their pods, as clients of a served cluster read them; nothing listens there."""

from __future__ import annotations

from hashlib import blake2b
from ipaddress import IPv4Network
from typing import Final

from pumice.core.objects.metadata import Object, section

NODES: Final = IPv4Network("172.16.0.0/12")
PODS: Final = IPv4Network("10.128.0.0/9")


class AddressPool:
    """Who has which address. A new one follows from the name of who gets it; the next free one where two meet."""

    def __init__(self, network: IPv4Network) -> None:
        self._network = network
        self._owners: dict[str, str] = {}
        self._held: dict[str, str] = {}

    def of(self, name: str) -> str:
        """Its address, from now on."""
        if (address := self._held.get(name)) is not None:
            return address
        size = self._network.num_addresses - 2
        place = int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big")
        while (free := str(self._network[1 + place % size])) in self._owners:
            place += 1
        self.keep(name, free)
        return free

    def keep(self, name: str, address: str) -> None:
        """It has this one already."""
        if self._held.get(name) != address:
            self.release(name)
            self._held[name] = address
            self._owners.setdefault(address, name)

    def release(self, name: str) -> None:
        """It is gone."""
        address = self._held.pop(name, None)
        if address is not None and self._owners.get(address) == name:
            del self._owners[address]


class ClusterAddresses:
    """Those of nodes, by name, and of pods, by uid."""

    def __init__(self) -> None:
        self.nodes = AddressPool(NODES)
        self.pods = AddressPool(PODS)

    def node(self, node: Object, *, deleted: bool) -> None:
        """A node as it is now."""
        name = node["metadata"]["name"]
        if deleted:
            self.nodes.release(name)
            return
        for each in section(node, "status").get("addresses") or ():
            if each.get("type") == "InternalIP":
                self.nodes.keep(name, each["address"])

    def of_pod(self, uid: str, node: str, *, shares: bool) -> Object:
        """What a pod's status says of it; `shares`: the pod is in its node's network."""
        host = self.nodes.of(node)
        own = host if shares else self.pods.of(uid)
        return {"hostIP": host, "hostIPs": [{"ip": host}], "podIP": own, "podIPs": [{"ip": own}]}
