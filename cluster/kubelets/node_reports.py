# SPDX-License-Identifier: Apache-2.0
"""Reports of kubelets about their nodes: addresses and versions once, and heartbeats.

A heartbeat is a Lease that is renewed (source: the kubelet's `--node-status-update-frequency` and lease controller);
the conditions in the status are said again every five minutes. In a cluster of many nodes both come less often, so that
not more than so many are written in a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from ipaddress import IPv4Network
from typing import Final

from pumice.cluster import RELEASE
from pumice.cluster.kube.statuses import timestamp
from pumice.cluster.machine import Machine
from pumice.cluster.timers import Timers
from pumice.core.messages.commands import ApiRequest, Create, Patch, UpdateStatus
from pumice.core.objects.metadata import Object, section, text_map
from pumice.storage.codec import pack

# --- Nodes of other agents
# Any other agent that keeps a node renews the Lease of its name.

KWOK: Final = "kwok.x-k8s.io/node"
LEASES: Final = "kube-node-lease"
HOLDER: Final = "pumice-node-agents"


class OtherAgents:
    """Other agents of nodes. `wrote` notes when this process last renewed a lease: a later time is another agent's."""

    def __init__(self) -> None:
        self._marked: set[str] = set()
        self._leased: set[str] = set()
        self._renewed: dict[str, str] = {}

    def keeps(self, node: str) -> bool:
        """Return whether another agent keeps the node."""
        return node in self._marked or node in self._leased

    def wrote(self, node: str, renewed: str) -> None:
        """Note that this process renewed the lease at that time."""
        self._renewed[node] = renewed

    def node(self, node: Object, *, deleted: bool) -> None:
        """Note the present node."""
        name = node["metadata"]["name"]
        marked = KWOK in text_map(node["metadata"].get("annotations")) and not deleted
        (self._marked.add if marked else self._marked.discard)(name)

    def lease(self, lease: Object, *, deleted: bool) -> None:
        """Note the present lease."""
        meta = lease["metadata"]
        if meta.get("namespace") != LEASES:
            return
        name, spec = meta["name"], section(lease, "spec")
        renewed, own = str(spec.get("renewTime") or ""), self._renewed.get(name)
        # a holder of our name that renews later than we did is another process of ours
        others = spec.get("holderIdentity") != HOLDER or (own is not None and renewed > own)
        (self._leased.add if others and not deleted else self._leased.discard)(name)


# --- Addresses of nodes and pods

NODES: Final = IPv4Network("172.16.0.0/12")
PODS: Final = IPv4Network("10.128.0.0/9")


class AddressPool:
    """Addresses and their holders. A new address follows from the holder's name; where two collide, the next free one
    is taken.
    """

    def __init__(self, network: IPv4Network) -> None:
        self._network = network
        self._owners: dict[str, str] = {}
        self._held: dict[str, str] = {}

    def of(self, name: str) -> str:
        """Return the holder's address, assigned on first use."""
        if (address := self._held.get(name)) is not None:
            return address
        size = self._network.num_addresses - 2
        place = int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "big")
        # from the name and not in the order of arrival: a restart gives the same addresses
        while (free := str(self._network[1 + place % size])) in self._owners:
            place += 1
        self.keep(name, free)
        return free

    def keep(self, name: str, address: str) -> None:
        """Keep an existing address of the holder."""
        if self._held.get(name) != address:
            self.release(name)
            self._held[name] = address
            self._owners.setdefault(address, name)

    def release(self, name: str) -> None:
        """Release the address of a holder that has gone."""
        address = self._held.pop(name, None)
        if address is not None and self._owners.get(address) == name:
            del self._owners[address]


class ClusterAddresses:
    """Addresses of nodes, by name, and of pods, by uid."""

    def __init__(self) -> None:
        self.nodes = AddressPool(NODES)
        self.pods = AddressPool(PODS)

    def node(self, node: Object, *, deleted: bool) -> None:
        """Note the present node."""
        name = node["metadata"]["name"]
        if deleted:
            self.nodes.release(name)
            return
        for each in section(node, "status").get("addresses") or ():
            if each.get("type") == "InternalIP":
                self.nodes.keep(name, each["address"])

    def of_pod(self, uid: str, node: str, *, shares: bool) -> Object:
        """Return the pod's addresses for its status; `shares`: the pod is in its node's network."""
        host = self.nodes.of(node)
        own = host if shares else self.pods.of(uid)
        return {"hostIP": host, "hostIPs": [{"ip": host}], "podIP": own, "podIPs": [{"ip": own}]}


USER: Final = "node-agents"
RENEW_S: Final = 10.0
LASTS: Final = 4
"""A lease is good for so many renewals."""
STATUS_EVERY: Final = 30
"""Renewals between two heartbeats in the status."""
MOST_IN_SECOND: Final = 50
NODE_INFO: Final = {
    "architecture": "amd64",
    "containerRuntimeVersion": "pumice://simulated",
    "kernelVersion": "simulated",
    "kubeProxyVersion": "",
    "kubeletVersion": RELEASE,
    "operatingSystem": "linux",
    "osImage": "Pumice (simulated)",
}

_CONDITIONS: Final[tuple[Object, ...]] = tuple(
    {"type": kind, "status": status, "reason": reason, "message": message}
    for kind, status, reason, message in (
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "the node agents of Pumice keep this node"),
    )
)
"""The conditions that a kubelet reports of its node, in the order in which it does."""


class NodeReportsMachine(Machine):
    """Reports nodes and their heartbeats. A node that another agent manages is left alone; a refused report is repeated
    at the next renewal.
    """

    kinds = ("Node", "Lease")

    def __init__(self, addresses: ClusterAddresses, others: OtherAgents) -> None:
        self._addresses = addresses
        self._others = others
        self._nodes: dict[str, Object] = {}
        self._leases: set[str] = set()
        self._fresh: dict[str, None] = {}
        self._renewals: dict[str, int] = {}
        self._timers: Timers[str] = Timers()

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Note an object that exists, or was deleted, as of `revision`."""
        name = obj["metadata"]["name"]
        if kind == "Lease":
            self._others.lease(obj, deleted=deleted)
            if obj["metadata"].get("namespace") == LEASES:
                (self._leases.discard if deleted else self._leases.add)(name)
            return
        self._others.node(obj, deleted=deleted)
        self._addresses.node(obj, deleted=deleted)
        if deleted:
            self._nodes.pop(name, None)
            self._renewals.pop(name, None)
            self._timers.cancel(name)
        else:
            self._nodes[name] = obj
            self._fresh[name] = None

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is due before the next change or timer."""
        fresh, self._fresh = self._fresh, {}
        requests: list[ApiRequest] = []
        for name in fresh:
            if name in self._nodes and not self._others.keeps(name):
                requests += self._introduced(name, self._nodes[name], now)
                if name not in self._timers:
                    self._timers.set(name, now)
        for name in self._timers.take_due(now):
            if name in self._nodes and not self._others.keeps(name):
                requests += self._renewed(name, self._nodes[name], now)
                self._timers.set(name, now + self._period_s())
        return requests

    def _period_s(self) -> float:
        # in a large cluster less often, so that heartbeats stay below a fixed rate
        return max(RENEW_S, len(self._nodes) / MOST_IN_SECOND)

    def _introduced(self, name: str, node: Object, now: float) -> list[ApiRequest]:
        """Fill in addresses, versions and conditions that the node does not have yet."""
        status, patch = section(node, "status"), Object()
        if not status.get("addresses"):
            address = self._addresses.nodes.of(name)
            patch["addresses"] = [
                {"type": "InternalIP", "address": address},
                {"type": "Hostname", "address": name},
            ]
        if not section(status, "nodeInfo").get("kubeletVersion"):
            uid = node["metadata"]["uid"]
            patch["nodeInfo"] = {"machineID": uid, "systemUUID": uid, "bootID": uid, **NODE_INFO}
        conditions: list[Object] = status.get("conditions") or []
        said = {each.get("type") for each in conditions}
        if missing := [each for each in _CONDITIONS if each["type"] not in said]:
            conditions = patch["conditions"] = [*conditions, *missing]
        if not all("lastHeartbeatTime" in each for each in conditions):
            at = timestamp(now)
            patch["conditions"] = [{"lastHeartbeatTime": at, "lastTransitionTime": at, **each} for each in conditions]
        return [UpdateStatus("Node", "", name, pack(patch), user=USER)] if patch else []

    def _renewed(self, name: str, node: Object, now: float) -> list[ApiRequest]:
        count = self._renewals[name] = self._renewals.get(name, 0) + 1
        renewed = f"{timestamp(now).removesuffix('Z')}.{int(now % 1 * 1e6):06d}Z"
        self._others.wrote(name, renewed)
        spec = {
            "holderIdentity": HOLDER,
            # follows the period, or readers would take slow heartbeats for dead nodes
            "leaseDurationSeconds": int(LASTS * self._period_s()),
            "renewTime": renewed,
        }
        requests: list[ApiRequest] = [self._lease(name, node, spec)]
        conditions: list[Object] = section(node, "status").get("conditions") or []
        if count % STATUS_EVERY == 0 and conditions:
            beaten = [{**each, "lastHeartbeatTime": timestamp(now)} for each in conditions]
            requests.append(UpdateStatus("Node", "", name, pack({"conditions": beaten}), user=USER))
        return requests

    def _lease(self, name: str, node: Object, spec: Object) -> ApiRequest:
        if name in self._leases:
            return Patch("Lease", LEASES, name, pack({"spec": spec}), user=USER)
        # the garbage collector removes the Lease with its node
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
        meta = {"name": name, "namespace": LEASES, "ownerReferences": [owner]}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}
        return Create(pack(lease), user=USER)

    def next_due(self) -> float | None:
        """Return the time when `step` has work without any change; None for never."""
        return self._timers.next_due()
