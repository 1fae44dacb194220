"""Host ports in use. Source: kube-scheduler `HostPortInfo` (framework types).

The address 0.0.0.0 stands for all addresses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from pumice.core.kube.placed import Move, Placed

ANY_ADDRESS = "0.0.0.0"
HostPort = tuple[str, str, int]  # (address, protocol, port)


class PortsInUse:
    """How many pods of each node use each (address, protocol, port), as columns over node rows."""

    def __init__(self, placed: Placed) -> None:
        self._placed = placed
        self._read = 0
        self._users: dict[HostPort, npt.NDArray[np.int32]] = {}
        self._rivals: dict[HostPort, npt.NDArray[np.int32]] = {}  # of the ports that somebody wanted
        for move in placed.special_at_opening():
            self._count(move)

    def _count(self, move: Move) -> None:
        task, row, sign = move
        for used in task.template.host_ports:
            self._column(self._users, used)[row] += sign
            for wanted, rivals in self._rivals.items():
                if _clash(used, wanted):
                    rivals[row] += sign

    def _column(self, columns: dict[HostPort, npt.NDArray[np.int32]], port: HostPort) -> npt.NDArray[np.int32]:
        if port not in columns:
            columns[port] = np.zeros(self._placed.nodes.count, dtype=np.int32)
        return columns[port]

    def catch_up(self) -> None:
        """Read what was placed or taken off since."""
        log = self._placed.log
        while self._read < len(log):
            self._count(log[self._read])
            self._read += 1

    def rivals(self, wanted: HostPort) -> npt.NDArray[np.int32]:
        """How many pods of each node use a port that clashes with that one, [N]; `catch_up` keeps it up to date."""
        if wanted not in self._rivals:
            found = self._column(self._rivals, wanted)
            for used, users in self._users.items():
                if _clash(used, wanted):
                    found += users
        return self._rivals[wanted]


def _clash(used: HostPort, wanted: HostPort) -> bool:
    return used[1:] == wanted[1:] and (ANY_ADDRESS in (used[0], wanted[0]) or used[0] == wanted[0])


def ports_in_use(placed: Placed) -> PortsInUse:
    """The one PortsInUse of a session."""
    if "ports" not in placed.shared:
        placed.shared["ports"] = PortsInUse(placed)
    return cast("PortsInUse", placed.shared["ports"])
