"""CPUs by topology: whole sockets, then whole cores, then single ones, as near as possible to what was taken.

Source: Volcano `provider/cpumanager/cpu_assignment.go`. Two of its ways are kept: sockets and cores count as free only
where a CPU of the same number is free, and the comparison of cores is no order (any of five reasons makes one smaller),
so that the outcome depends on how Go sorts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.devices.numa.go_sort import in_go_order
from pumice.core.devices.numa.topology import NONE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.core.devices.numa.topology import CpuPlace, Cpus


def take(places: Mapping[int, CpuPlace], available: Cpus, wanted: int) -> Cpus | None:
    """So many of the available CPUs; None where they do not suffice."""
    return _Taking(places, available, wanted).run()


def _alone(cpu: int) -> set[int]:
    return {cpu}


class _Taking:
    def __init__(self, places: Mapping[int, CpuPlace], available: Cpus, wanted: int) -> None:
        self._all, self._missing = places, wanted
        self._left = {cpu for cpu in available if cpu in places}
        self._taken: set[int] = set()
        sockets = {place.socket for place in places.values()}
        cores = {(place.socket, place.core) for place in places.values()}
        self._per_socket = len(places) // len(sockets) if sockets else 0
        self._per_core = len(places) // len(cores) if cores else 0

    def run(self) -> Cpus | None:
        if self._missing < 1:
            return NONE
        if self._missing > len(self._left):
            return None
        steps = (
            (self._per_socket, self._free_sockets, self._of_socket),
            (self._per_core, self._free_cores, self._of_core),
            (1, self._free_cpus, _alone),
        )
        for size, free, members in steps:
            if self._missing >= size:
                for each in free():
                    self._move(members(each))
                    if self._missing < 1:
                        return frozenset(self._taken)
                    if self._missing < size:
                        break
        return None

    def _move(self, cpus: set[int]) -> None:
        self._taken |= cpus
        self._left -= cpus
        self._missing -= len(cpus)

    def _of_socket(self, socket: int) -> set[int]:
        return {cpu for cpu in self._left if self._all[cpu].socket == socket}

    def _of_core(self, core: int) -> set[int]:
        return {cpu for cpu in self._left if self._all[cpu].core == core}

    def _free_sockets(self) -> list[int]:
        return sorted({self._all[cpu].socket for cpu in self._left} & self._left)

    def _free_cores(self) -> list[int]:
        sockets = sorted({self._all[cpu].socket for cpu in self._left})
        cores = {socket: {self._all[cpu].core for cpu in self._of_socket(socket)} & self._left for socket in sockets}
        ordered = in_go_order(sockets, lambda one, two: len(cores[one]) < len(cores[two]) or one < two)
        return [core for socket in ordered for core in sorted(cores[socket])]

    def _free_cpus(self) -> list[int]:
        cores = sorted({self._all[cpu].core for cpu in self._left})
        facts = {core: self._facts(core) for core in cores}

        def before(one: int, two: int) -> bool:
            return any(mine < theirs for mine, theirs in zip(facts[one], facts[two], strict=True))

        return [cpu for core in in_go_order(cores, before) for cpu in sorted(self._of_core(core))]

    def _facts(self, core: int) -> tuple[int, int, int, int, int]:
        """What makes a core come first: much taken of its socket, little left of it, little left of the core itself,
        a low socket, a low number.
        """
        socket = self._all[min(cpu for cpu, place in self._all.items() if place.core == core)].socket
        near = sum(1 for cpu in self._taken if self._all[cpu].socket == socket)
        return -near, len(self._of_socket(socket)), len(self._of_core(core)), socket, core
