"""What a kubelet says of its node: its addresses and versions once, that it is alive again and again.

A heartbeat is a Lease that is renewed (source: the kubelet's `--node-status-update-frequency` and lease controller);
the conditions in the status are said again every five minutes. In a cluster of many nodes both come less often, so that
not more than so many are written in a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pumice.cluster.kube.conditions import timestamp
from pumice.cluster.kube.release import RELEASE
from pumice.cluster.kubelets.addresses import ClusterAddresses
from pumice.cluster.kubelets.other_agents import HOLDER, LEASES, OtherAgents
from pumice.cluster.timers import Timers
from pumice.core.messages.commands import ApiRequest, Create, Patch, UpdateStatus
from pumice.core.messages.replies import ApiReply
from pumice.core.objects.metadata import Object, section
from pumice.storage.codec import pack

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


class NodeReportsMachine:
    """Reports nodes, and that they are alive. A node that another agent keeps is left alone."""

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
        """An object is there, or is gone, as of `revision`."""
        del revision
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
        """What to ask of the api now; empty when there is nothing to do before the next news or timer."""
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
        return max(RENEW_S, len(self._nodes) / MOST_IN_SECOND)

    def _introduced(self, name: str, node: Object, now: float) -> list[ApiRequest]:
        """Addresses, versions and a word about its health, where nobody has said any."""
        status, patch = section(node, "status"), dict[str, Any]()
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
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
        meta = {"name": name, "namespace": LEASES, "ownerReferences": [owner]}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}
        return Create(pack(lease), user=USER)

    def answered(self, request: ApiRequest, reply: ApiReply, now: float) -> None:
        """The answer to one request of the last step; they come in order, before the next step. What was refused is
        said again at the next renewal.
        """

    def next_due(self) -> float | None:
        """When `step` will have something to do though nothing changed; None: never."""
        return self._timers.next_due()

    def running_timers(self) -> int:
        """No timer that counts: nobody waits for heartbeats."""
        return 0
