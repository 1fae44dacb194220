# SPDX-License-Identifier: Apache-2.0
"""Kubelets that are struck: what a machine says about a node on its way to the API, late, wrong or not at all.

A machine knows nothing of it, as a kubelet does not: its pods run on, and it believes that it has reported. What a dead
kubelet would have said about pods waits, and comes when it is back; its heartbeats are lost.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from pumice.cluster.faults.decisions import FaultsInForce
from pumice.cluster.faults.rules import DeadKubelet, LostNode, NodeFault, SkewedClock, SlowKubelet
from pumice.cluster.kube.statuses import timestamp
from pumice.cluster.machine import Machine
from pumice.core.messages.commands import ApiRequest, Create, Delete, Patch, UpdateStatus
from pumice.core.messages.replies import ApiReply
from pumice.core.objects.metadata import Object, is_list, is_mapping, parse_time, section, text_map
from pumice.storage.codec import pack, unpack

CONTROLLER: Final = "node-lifecycle"
CLOUD: Final = "cloud-node-lifecycle"
UNKNOWN: Final = {
    "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."
}  # fmt: skip
READY: Final = {"status": "True", "reason": "KubeletReady", "message": "the kubelet is back"}
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")

NodeOf = Callable[[ApiRequest], str | None]
"""Return the node whose kubelet makes a request; None for one that is not a kubelet's."""


class StruckNodes:
    """The nodes of a cluster under `faults`, and what their kubelets have said that has not arrived."""

    def __init__(self, faults: FaultsInForce) -> None:
        self.faults = faults
        self._nodes: dict[str, Object] = {}
        self._held: dict[str, deque[tuple[float, ApiRequest]]] = {}
        self._dead: dict[str, tuple[float, bool]] = {}  # since when, and whether the API says so
        self._noted: set[tuple[float, str, str]] = set()
        self._now = 0.0

    @property
    def at_work(self) -> bool:
        """Return whether a node is struck, or was and has not recovered."""
        return bool(self._held or self._dead) or self.faults.strikes_nodes

    def node(self, node: Object, *, deleted: bool) -> None:
        """Note the present node."""
        name = node["metadata"]["name"]
        if deleted:
            for table in (self._nodes, self._held, self._dead):
                # What its kubelet had still to say goes with the node.
                table.pop(name, None)
        else:
            self._nodes[name] = node

    def passed(self, requests: Sequence[ApiRequest], node_of: NodeOf, now: float) -> list[ApiRequest]:
        """Return what arrives now: of earlier requests what was held until now, and of these what is not held."""
        self._now = now
        # What was held comes first: it was said earlier.
        arriving = self._released(now)
        for request in requests:
            name = node_of(request)
            if name is None or name not in self._nodes:
                arriving.append(request)
            else:
                arriving += self._met(name, request, now)
        return arriving

    def _rules(self, name: str, now: float) -> list[NodeFault]:
        meta = self._nodes[name]["metadata"]
        rules = self.faults.of_node(name, text_map(meta.get("labels")), now)
        for rule in rules:
            mark = (self.faults.began, rule.rule, name)
            if mark not in self._noted:
                self._noted.add(mark)
                self.faults.note(rule, name)
        return rules

    def _met(self, name: str, request: ApiRequest, now: float) -> list[ApiRequest]:
        """Return a request that arrives, or hold it."""
        rules, due = self._rules(name, now), now
        for rule in rules:
            match rule:
                case DeadKubelet() if not isinstance(request, UpdateStatus | Delete) or request.kind == "Node":
                    return []  # a heartbeat: the next one says the same
                case SlowKubelet(delay_s=delay_s):
                    # Of several such rules the slowest counts.
                    due = max(due, now + delay_s)
                case SkewedClock(ahead_s=ahead_s) if isinstance(request, UpdateStatus):
                    request = _shifted(request, ahead_s)
                case _:
                    pass
        if due > now or name in self._held or any(isinstance(rule, DeadKubelet) for rule in rules):
            self._held.setdefault(name, deque()).append((due, request))  # behind what was said before
            return []
        return [request]

    def _released(self, now: float) -> list[ApiRequest]:
        released: list[ApiRequest] = []
        for name, queue in [*self._held.items()]:
            if any(isinstance(rule, DeadKubelet) for rule in self._rules(name, now)):
                continue
            while queue and queue[0][0] <= now:
                released.append(queue.popleft()[1])
            if not queue:
                del self._held[name]
        return released

    # --- what others say about these nodes

    def noticed(self, now: float) -> list[ApiRequest]:
        """Return what the controllers of nodes write about those that are dead, are back, or are lost."""
        self._now = now
        return [request for name in [*self._nodes] for request in self._noticed(name, now)]

    def _noticed(self, name: str, now: float) -> Iterator[ApiRequest]:
        rules = self._rules(name, now)
        for rule in rules:
            mark = (self.faults.began, f"{rule.rule}\0lost", name)
            if isinstance(rule, LostNode) and mark not in self._noted:
                self._noted.add(mark)
                yield Delete("Node", "", name, user=CLOUD)
        graces = [rule.grace_s for rule in rules if isinstance(rule, DeadKubelet)]
        since, said = self._dead.get(name, (now, False))
        if graces and not said:
            said = now >= since + min(graces)
            self._dead[name] = since, said
            if said:
                yield self._conditions(name, UNKNOWN, now)
        elif not graces and name in self._dead:
            del self._dead[name]
            # Nothing was written of a death that ended within its grace.
            if said:
                yield self._conditions(name, READY, now)

    def _conditions(self, name: str, changed: Mapping[str, str], now: float) -> UpdateStatus:
        conditions: list[Object] = section(self._nodes[name], "status").get("conditions") or []
        at = {"lastTransitionTime": timestamp(now)}
        told = [{**each, **changed, **at} if each.get("type") == "Ready" else each for each in conditions]
        return UpdateStatus("Node", "", name, pack({"conditions": told}), user=CONTROLLER)

    def next_due(self) -> float | None:
        """Return when something becomes due."""
        # Later than now: what is due and waits for a dead kubelet must not wake the machine again and again.
        heads = [queue[0][0] for queue in self._held.values() if queue and queue[0][0] > self._now]
        graces = [
            since + rule.grace_s
            for name, (since, said) in self._dead.items()
            for rule in self._rules(name, self._now)
            if isinstance(rule, DeadKubelet) and not said
        ]
        change = self.faults.next_change(self._now)
        return min([*heads, *graces, *(() if change is None else (change,))], default=None)


def _shifted(request: UpdateStatus, ahead_s: float) -> UpdateStatus:
    """Return a report with all its times by another clock."""
    patch = pack(_at_other_times(unpack(request.blob), ahead_s))
    return UpdateStatus(request.kind, request.namespace, request.name, patch, request.resource_version, request.user)


def _at_other_times(value: Any, ahead_s: float) -> Any:
    if is_mapping(value):
        return {key: _at_other_times(each, ahead_s) for key, each in value.items()}
    if is_list(value):
        return [_at_other_times(each, ahead_s) for each in value]
    is_time = isinstance(value, str) and _TIME.fullmatch(value)
    return timestamp(parse_time(value) + ahead_s) if is_time else value


class StruckKubelets(Machine):
    """A machine of kubelets behind their faults. `speaks`: it also reports what others notice about nodes, and gets
    nodes for the others.
    """

    def __init__(self, machine: Machine, nodes: StruckNodes, node_of: NodeOf, *, speaks: bool = False) -> None:
        self._machine = machine
        self._nodes = nodes
        self._node_of = node_of
        self._speaks = speaks
        self.kinds = machine.kinds

    def observe(self, kind: str, obj: Object, revision: int, *, deleted: bool = False) -> None:
        """Note an object that exists, or was deleted, as of `revision`."""
        if self._speaks and kind == "Node":
            self._nodes.node(obj, deleted=deleted)
        self._machine.observe(kind, obj, revision, deleted=deleted)

    def step(self, now: float) -> Sequence[ApiRequest]:
        """Return the requests that arrive at the api now."""
        requests = self._machine.step(now)
        if not self._nodes.at_work:
            return requests
        arriving = self._nodes.passed(requests, self._node_of, now)
        return [*arriving, *self._nodes.noticed(now)] if self._speaks else arriving

    def answered(self, request: ApiRequest, reply: ApiReply, now: float) -> None:
        """Take the answer to one request of the last step."""
        self._machine.answered(request, reply, now)

    def next_due(self) -> float | None:
        """Return the time when `step` has work without any change; None for never."""
        due = self._machine.next_due()
        if not self._nodes.at_work:
            return due
        return min((each for each in (due, self._nodes.next_due()) if each is not None), default=None)

    def running_timers(self) -> int:
        """Return the number of running timers."""
        return self._machine.running_timers()


def of_reports(request: ApiRequest) -> str | None:
    """Return the node of a report about it, or of its heartbeat."""
    if isinstance(request, Create):
        return str(unpack(request.blob)["metadata"]["name"])
    return request.name if isinstance(request, Patch | UpdateStatus) else None


def of_pods(node_of_pod: Callable[[str, str], str | None]) -> NodeOf:
    """Return the node of a report about a pod, or of its end."""

    def node_of(request: ApiRequest) -> str | None:
        if not isinstance(request, UpdateStatus | Delete) or request.kind != "Pod":
            return None
        return node_of_pod(request.namespace, request.name)

    return node_of
