"""Host ports in use. Source: kube-scheduler `HostPortInfo` (framework types).

The address 0.0.0.0 stands for all addresses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from core.kube.placed import Move, Placed
    from core.kube.rows import BoolArray

ANY_ADDRESS = "0.0.0.0"
HostPort = tuple[str, str, int]  # (address, protocol, port)


class PortsInUse:
    """How many pods of each node use each (address, protocol, port), as columns over node rows."""

    def __init__(self, placed: Placed) -> None:
        self._placed = placed
        self._read = 0
        self._users: dict[tuple[str, int], dict[str, npt.NDArray[np.int32]]] = {}  # (protocol, port) -> address -> [N]
        for move in placed.special_at_opening():
            self._count(move)

    def _count(self, move: Move) -> None:
        task, row, sign = move
        for address, protocol, port in task.template.host_ports:
            users = self._users.setdefault((protocol, port), {})
            if address not in users:
                users[address] = np.zeros(self._placed.nodes.count, dtype=np.int32)
            users[address][row] += sign

    def _columns(self, wanted: HostPort) -> list[npt.NDArray[np.int32]]:
        """The columns that conflict with a wanted port, up to date."""
        log = self._placed.log
        while self._read < len(log):
            self._count(log[self._read])
            self._read += 1
        address, protocol, port = wanted
        users = self._users.get((protocol, port), {})
        return [column for used, column in users.items() if ANY_ADDRESS in (address, used) or address == used]

    def rows_in_conflict(self, wanted: tuple[HostPort, ...]) -> BoolArray:
        """Mask [N] of the nodes where one of the wanted ports is taken."""
        taken = np.zeros(self._placed.nodes.count, dtype=np.bool_)
        for port in wanted:
            for column in self._columns(port):
                taken |= column > 0
        return taken

    def in_conflict(self, wanted: tuple[HostPort, ...], row: int) -> bool:
        """Whether one of the wanted ports is taken on the node of one row."""
        return any(column[row] > 0 for port in wanted for column in self._columns(port))


def ports_in_use(placed: Placed) -> PortsInUse:
    """The one PortsInUse of a session."""
    if "ports" not in placed.shared:
        placed.shared["ports"] = PortsInUse(placed)
    return cast("PortsInUse", placed.shared["ports"])
