# SPDX-License-Identifier: Apache-2.0
"""A pod in the monitor's books, and how it is read from an object of the api."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from msgspec import Struct

from pumice.core.life.task import ENDED_PHASES
from pumice.core.objects.metadata import Object, section
from pumice.core.quantity import parse_quantity

Amounts = dict[str, int]
HostPort = tuple[str, str, int]
"""Address, protocol and number."""
OF_THE_WHOLE: Final = ("cpu", "memory", "hugepages-")
"""Resources that a pod as a whole may ask for, instead of its containers."""
ANY_ADDRESS: Final = "0.0.0.0"
GROUP: Final = "scheduling.k8s.io/group-name"


class PodBook(Struct):
    """A pod as the api has it. `job` is "namespace/group"; `requests` in thousandths, with the pod itself.

    `ended`: it will never run again; `on_node`: it takes up room.
    """

    key: str
    uid: str
    job: str
    requests: Amounts
    ports: tuple[HostPort, ...]
    node: str = ""
    phase: str = "Pending"
    deleting: bool = False
    ended: bool = False
    on_node: bool = False

    @property
    def leaves(self) -> bool:
        """Return whether the pod has ended or is being deleted."""
        return self.ended or self.deleting

    @property
    def stays(self) -> bool:
        """Return whether the pod is on a node and is not being deleted."""
        return self.on_node and not self.deleting

    def counts_as(self, other: PodBook) -> bool:
        """Return whether both books give the same sums."""
        return (
            self.node == other.node
            and self.on_node == other.on_node
            and self.leaves == other.leaves
            and self.deleting == other.deleting
            and self.uid == other.uid
            and self.job == other.job
        )


class BookedPodReader:
    """Reads pods. Those of a job come one after the other, and the api gives them all the very same spec."""

    def __init__(self) -> None:
        self._spec: Object | None = None
        self._asks: tuple[Amounts, tuple[HostPort, ...]] = ({}, ())

    def read(self, key: str, obj: Object, before: PodBook | None) -> PodBook:
        """Read the object; facts that never change are taken from `before` when that is the same pod.

        Returns `before` itself when no fact that matters here has changed: conditions do not.
        """
        meta, spec = obj["metadata"], obj["spec"]
        annotations: Object = meta.get("annotations") or {}
        uid: str = meta["uid"]
        same = before if before is not None and before.uid == uid else None
        job = f"{meta['namespace']}/{annotations.get(GROUP, '')}"
        node: str = spec.get("nodeName") or ""
        status: Object = obj.get("status") or {}
        phase: str = status.get("phase") or "Pending"
        deleting = "deletionTimestamp" in meta
        if same is None:
            requests, ports = self._asked_by(spec)
        elif same.phase == phase and same.node == node and same.deleting == deleting and same.job == job:
            return same
        else:
            requests, ports = same.requests, same.ports
        ended = phase in ENDED_PHASES
        return PodBook(key, uid, job, requests, ports, node, phase, deleting, ended, bool(node) and not ended)

    def _asked_by(self, spec: Object) -> tuple[Amounts, tuple[HostPort, ...]]:
        if spec is not self._spec:
            self._spec, self._asks = spec, (_requests(spec), _ports(spec))
        return self._asks


def unscheduled(pod: Object) -> str:
    """Return why the pod is not scheduled; "" when no condition states a reason."""
    for each in section(pod, "status").get("conditions") or ():
        if each["type"] == "PodScheduled":
            return (each.get("reason") or "") if each["status"] == "False" else ""
    return ""


def share_port(some: tuple[HostPort, ...], others: tuple[HostPort, ...]) -> bool:
    """Return whether two pods cannot share a node: the same port and protocol, at the same address or at all of
    them."""
    return any(
        mine[1:] == theirs[1:] and (mine[0] == theirs[0] or ANY_ADDRESS in (mine[0], theirs[0]))
        for mine in some
        for theirs in others
    )


def _requests(spec: Object) -> Amounts:
    """Return the requests by Kubernetes' rule: the most that runs at one time, or the request of the pod as a whole,
    then the overhead.
    """
    staying = _together([_asked(each) for each in spec["containers"]])
    beside: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        asked = _asked(container)
        peak = _most(peak, _together([beside, asked]))
        if _is_sidecar(container):  # it goes on, beside what starts after it
            beside, staying = _together([beside, asked]), _together([staying, asked])
    most = _most(staying, peak)
    whole = amounts(section(section(spec, "resources"), "requests"))
    most |= {name: amount for name, amount in whole.items() if name.startswith(OF_THE_WHOLE)}
    return _together([{"pods": 1000}, most, amounts(section(spec, "overhead"))])


def _asked(container: Object) -> Amounts:
    """Return the requests of a container; a resource that has a limit and no request counts with its limit."""
    resources = section(container, "resources")
    return amounts({**section(resources, "limits"), **section(resources, "requests")})


def _together(parts: list[Amounts]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def _most(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}


def _is_sidecar(container: Object) -> bool:
    return bool(container.get("restartPolicy") == "Always")


def _ports(spec: Object) -> tuple[HostPort, ...]:
    """Return the ports of containers that stay; on the host's network every port is one of the host."""
    staying = [*spec["containers"], *filter(_is_sidecar, spec.get("initContainers") or ())]
    ports = [port for container in staying for port in container.get("ports") or ()]
    on_host = bool(spec.get("hostNetwork"))
    return tuple(
        (port.get("hostIP") or ANY_ADDRESS, port.get("protocol") or "TCP", number)
        for port in ports
        if (number := port.get("hostPort") or (on_host and port.get("containerPort")))
    )


def amounts(quantities: Object) -> Amounts:
    """Return quantities by name, in thousandths."""
    return {name: milli(str(amount)) for name, amount in quantities.items()}


@lru_cache(maxsize=4096)
def milli(text: str) -> int:
    """Return a quantity in thousandths. Raises QuantityError."""
    return parse_quantity(text).milli_value()
