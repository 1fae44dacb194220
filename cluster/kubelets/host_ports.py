"""Ports of nodes that pods use themselves: what a node agent admits (source: the kubelet's predicate NodePorts).

Schedulers see to it that they do not clash; a pod that names its node has been seen by none.
"""

from __future__ import annotations

from typing import Any, Final

PodKey = tuple[str, str]
HostPort = tuple[str, str, int]
"""Address, protocol, port."""

REASON: Final = "NodePorts"
REFUSED: Final = (
    "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
)
_ANY: Final = ("", "0.0.0.0", "::")


def host_ports(spec: dict[str, Any]) -> tuple[HostPort, ...]:
    """What the containers of a pod ask for."""
    rows = [port for each in spec.get("containers") or () for port in each.get("ports") or () if port.get("hostPort")]
    return tuple([(row.get("hostIP") or "", row.get("protocol") or "TCP", row["hostPort"]) for row in rows])


class PortsOfNodes:
    """Who uses which port of which node."""

    def __init__(self) -> None:
        self._held: dict[PodKey, tuple[str, tuple[HostPort, ...]]] = {}
        self._on: dict[str, set[PodKey]] = {}

    def take(self, key: PodKey, node: str, wanted: tuple[HostPort, ...]) -> bool:
        """Whether the pod may have them; it has them then."""
        others = self._on.get(node, set()) - {key}
        if any(_clash(used, port) for other in others for used in self._held[other][1] for port in wanted):
            return False
        self._held[key] = (node, wanted)
        self._on.setdefault(node, set()).add(key)
        return True

    def release(self, key: PodKey) -> None:
        """The pod has ended, or is gone."""
        if (held := self._held.pop(key, None)) is not None:
            self._on[held[0]].discard(key)


def _clash(used: HostPort, wanted: HostPort) -> bool:
    return used[1:] == wanted[1:] and (used[0] == wanted[0] or used[0] in _ANY or wanted[0] in _ANY)
