# SPDX-License-Identifier: Apache-2.0
"""Volcano's resource exporter of every node, as one pure machine: a `Numatopology` object lists the free CPUs of each
NUMA cell.

The CPUs are given as the kubelet's static CPU manager and its topology manager give them: to pods of quality Guaranteed
that ask for whole ones, one pod after the other as they come; one that the policy does not admit fails. Source:
volcano-sh/resource-exporter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from pumice.cluster.kubelets.statuses import refused_status
from pumice.cluster.machine import Machine
from pumice.core.devices.numa.hints import asked_by, given_on, is_guaranteed, judged
from pumice.core.devices.numa.topology import CPU, NONE, CpuPlace, Cpus, Topology, text_of
from pumice.core.life.task import ENDED_PHASES
from pumice.core.messages.commands import ApiRequest, Create, Delete, Patch, UpdateStatus
from pumice.core.objects.metadata import Object, section
from pumice.core.objects.node_devices import NumaCells, devices_of
from pumice.core.objects.parts import POD_PLACED
from pumice.core.objects.pod import TemplateTable
from pumice.core.state.dimensions import Dimensions
from pumice.storage.codec import pack

PodKey = tuple[str, str]

USER: Final = "resource-exporter"
KIND: Final = "Numatopology"
STATIC: Final = "static"


class Held(NamedTuple):
    """The CPUs that a pod holds."""

    node: str
    cpus: Cpus
    uid: str


class CellReportsMachine(Machine):
    """Reports the free CPUs of nodes' NUMA cells. Nodes without cells are left alone."""

    kinds = (KIND, "Node", POD_PLACED)

    def __init__(self) -> None:
        self._nodes: dict[str, tuple[NumaCells, Topology]] = {}
        self._known: dict[str, str] = {}  # node -> uid
        self._early: dict[PodKey, Object] = {}  # pods on nodes that are away
        self._reported: set[str] = set()
        self._held: dict[PodKey, Held] = {}
        self._stale: dict[str, None] = {}
        self._gone: dict[str, None] = {}
        self._refused: dict[PodKey, None] = {}
        self._templates = TemplateTable(Dimensions())

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Note an object that exists, or was deleted, as of `revision`."""
        name = obj["metadata"]["name"]
        if kind == KIND:
            (self._reported.discard if deleted else self._reported.add)(name)
        elif kind == "Node":
            self._node(obj, deleted=deleted)
        else:
            self._pod((obj["metadata"]["namespace"], name), obj, deleted=deleted)

    def _node(self, node: Object, *, deleted: bool) -> None:
        name, wanted = node["metadata"]["name"], None if deleted else devices_of(node).numa
        known = self._nodes.get(name)
        if wanted is None:
            if known is not None:
                del self._nodes[name]
                self._stale.pop(name, None)
                self._gone[name] = None
        elif known is None or known[0] != wanted:
            self._nodes[name] = wanted, topology_of(wanted)
            self._stale[name] = None
            self._gone.pop(name, None)
        if deleted:
            self._known.pop(name, None)
        else:
            self._known[name] = node["metadata"]["uid"]
            for key, pod in [(key, pod) for key, pod in self._early.items() if pod["spec"]["nodeName"] == name]:
                del self._early[key]
                self._pod(key, pod, deleted=False)

    def _pod(self, key: PodKey, pod: Object, *, deleted: bool) -> None:
        node = section(pod, "spec").get("nodeName")
        if deleted or section(pod, "status").get("phase") in ENDED_PHASES:
            self.pod_ended(key)
        elif key not in self._held and node in self._nodes:
            self._give(key, pod, node)
        elif node and node not in self._known:
            # its node is not known yet, or away: looked at again when the node comes
            self._early[key] = pod

    def pod_ended(self, key: PodKey) -> None:
        """Free the CPUs that the pod held. A pod on a temporarily absent node keeps them."""
        self._early.pop(key, None)
        held = self._held.pop(key, None)
        if held is not None and held.node in self._nodes:
            self._stale[held.node] = None

    def _give(self, key: PodKey, pod: Object, node: str) -> None:
        """Give the pod its CPUs as the kubelet does, or refuse the pod."""
        template, topology = self._templates.intern(pod["spec"]), self._nodes[node][1]
        # the static CPU manager gives whole CPUs to Guaranteed pods only
        if not is_guaranteed(template):
            return
        left, given = self._free(node), NONE
        for _, wanted in asked_by(template):
            on, admitted = judged(topology, left, wanted)
            if not admitted:
                self._refused[key] = None
                return
            of_container = given_on(topology, on, left, wanted)
            given, left = given | of_container, left - of_container
        if given:
            self._held[key] = Held(node, given, pod["metadata"].get("uid", ""))
            self._stale[node] = None

    def _free(self, node: str) -> Cpus:
        taken = [held.cpus for held in self._held.values() if held.node == node]
        return self._nodes[node][1].allocatable[CPU].difference(*taken)

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests to send to the api now; empty when nothing is due before the next change or timer."""
        requests: list[ApiRequest] = [Delete(KIND, "", name, user=USER) for name in self._gone]
        requests += [self._report(name) for name in self._stale]
        for namespace, name in self._refused:
            status = pack(
                refused_status("Resources cannot be allocated with Topology locality", "TopologyAffinityError")
            )
            requests.append(UpdateStatus("Pod", namespace, name, status, user=USER))
        self._gone, self._stale, self._refused = {}, {}, {}
        return requests

    def _report(self, name: str) -> ApiRequest:
        spec = spec_of(self._nodes[name][0], self._nodes[name][1], self._free(name))
        spec["podAllocations"] = self._allocations(name)
        if name in self._reported:
            return Patch(KIND, "", name, pack({"spec": spec}), user=USER)
        # noted before the answer: the next report patches it
        self._reported.add(name)
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": self._known[name]}
        meta = {"name": name, "ownerReferences": [owner]}  # the garbage collector then removes the report with its node
        made = {"apiVersion": "nodeinfo.volcano.sh/v1alpha1", "kind": KIND, "metadata": meta, "spec": spec}
        return Create(pack(made), user=USER)

    def _allocations(self, node: str) -> list[Object]:
        """Return the pods that have CPUs there, as exporters after v1.15.1 name them."""
        held = [(key, each.uid) for key, each in self._held.items() if each.node == node]
        return [{"uid": uid, "name": name, "namespace": namespace} for (namespace, name), uid in held]


def topology_of(wanted: NumaCells) -> Topology:
    """Return cells of nearly equal size, a socket each, and cores of one CPU; the lowest CPUs are reserved."""
    places = {cpu: _place(cpu, wanted) for cpu in range(wanted.cpus)}
    free = frozenset(range(min(wanted.reserved, wanted.cpus), wanted.cpus))
    return Topology(places, wanted.reserved, STATIC, wanted.policy, {CPU: free})


def _place(cpu: int, wanted: NumaCells) -> CpuPlace:
    cell = cpu * wanted.cells // wanted.cpus
    return CpuPlace(cell, cell, cpu)


def spec_of(wanted: NumaCells, topology: Topology, free: Cpus) -> Object:
    """Return the spec of the node's `Numatopology`."""
    return {
        "policies": {"CPUManagerPolicy": topology.cpu_policy, "TopologyManagerPolicy": topology.policy},
        "resReserved": {CPU: str(wanted.reserved)},
        "numares": {CPU: {"allocatable": text_of(free), "capacity": wanted.cpus}},
        "cpuDetail": {
            str(cpu): {"numa": place.cell, "socket": place.socket, "core": place.core}
            for cpu, place in topology.places.items()
        },
    }
