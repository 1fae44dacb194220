# SPDX-License-Identifier: Apache-2.0
"""The cells on which a request fits, and the decisions of topology managers' policies.

Source: Volcano `provider/cpumanager/cpu_mng.go`, `policy`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from pumice.core.devices.family import containers, limits_of, requests_of, whole
from pumice.core.devices.numa.go_sort import in_go_order
from pumice.core.devices.numa.topology import CPU, NONE
from pumice.core.objects.metadata import Object
from pumice.core.quantity import quantity_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.core.devices.numa.topology import CpuPlace, Cpus, Topology
    from pumice.core.objects.pod_template import PodTemplate

# --- Pods that take part
# Source: Kubernetes `apis/core/v1/helper/qos`, Volcano `cpu_mng.go` (guaranteedCPUs).

COUNTED = (CPU, "memory")


class ContainerCpus(NamedTuple):
    """The CPUs of a container. `cpus`: how many whole ones it requests, 0 for none or a fraction."""

    name: str
    cpus: int


def is_guaranteed(template: PodTemplate) -> bool:
    """Return whether all containers have limits of cpu and memory, and together ask for just these."""
    level: Object = {"resources": template.spec.get("resources") or {}}
    own = any(name in amounts for amounts in (limits_of(level), requests_of(level)) for name in COUNTED)
    each: list[Object] = [level] if own else [*containers(template), *containers(template, "initContainers")]
    requests, limits = _sums([requests_of(one) for one in each]), _sums([limits_of(one) for one in each])
    complete = all(all(_is_positive(limits_of(one), name) for name in COUNTED) for one in each)
    return bool(each) and complete and requests == limits


def _is_positive(amounts: Object, name: str) -> bool:
    return name in amounts and quantity_of(amounts[name]).sign() > 0


def _sums(each: Sequence[Object]) -> dict[str, int]:
    found: dict[str, int] = {}
    for amounts in each:
        for name in COUNTED:
            if _is_positive(amounts, name):
                found[name] = found.get(name, 0) + quantity_of(amounts[name]).milli_value()
    return found


def asked_by(template: PodTemplate) -> tuple[ContainerCpus, ...]:
    """Return what each container asks for."""
    found: list[ContainerCpus] = []
    for each in containers(template):
        requests = requests_of(each)
        # A fraction of a CPU counts as none: such a container gets no CPUs for itself (guaranteedCPUs).
        found.append(ContainerCpus(str(each.get("name") or ""), (whole(requests, CPU) or 0) if CPU in requests else 0))
    return tuple(found)


# --- CPUs by topology: whole sockets, then whole cores, then single ones
# Source: Volcano `provider/cpumanager/cpu_assignment.go`. Two of its ways are kept: sockets and cores count as free
# only where a CPU of the same number is free, and the comparison of cores is not an order (any of five reasons makes
# one smaller), so that the outcome depends on how Go sorts.


def take(places: Mapping[int, CpuPlace], available: Cpus, wanted: int) -> Cpus | None:
    """Return `wanted` of the available CPUs; None if they do not suffice."""
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
        # Of the whole node, not of what is left: whole sockets are tried only if the pod needs as many CPUs as one has.
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
        """Return the sort key of cores: much taken of its socket, little left of it, little left of the core itself, a
        low socket, a low number.
        """
        # Where cores are numbered within sockets, one number stands for several; Volcano takes the socket of its lowest
        # CPU.
        socket = self._all[min(cpu for cpu, place in self._all.items() if place.core == core)].socket
        near = sum(1 for cpu in self._taken if self._all[cpu].socket == socket)
        return -near, len(self._of_socket(socket)), len(self._of_core(core)), socket, core


BEST_EFFORT, RESTRICTED, SINGLE = "best-effort", "restricted", "single-numa-node"
MERGING: Final = (BEST_EFFORT, RESTRICTED, SINGLE)


def free_of(topology: Topology, available: Cpus) -> Cpus:
    """Return the free CPUs without those reserved for the system."""
    # The kubelet reserves CPUs by the same rule, so they are those that `take` would choose on an empty node.
    return available - (take(topology.places, frozenset(topology.places), topology.reserved) or NONE)


def judged(topology: Topology, available: Cpus | None, wanted: int) -> tuple[frozenset[int] | None, bool]:
    """Return (the cells that the node's policy takes, True if it admits the container). `available` None, or 0
    `wanted`: the container requests no whole CPUs.

    Volcano lists every set of cells that has so many CPUs left as a hint, and takes a preferred hint (no fewer cells
    could have them) before all others, then the narrowest, then the lowest cells. There are 2^cells sets: here the one
    that it would take is found directly.
    """
    if topology.policy not in MERGING:
        return None, True
    whole = Counter(place.cell for place in topology.places.values())
    if available is None or not wanted:
        return frozenset(whole), bool(whole) or topology.policy == BEST_EFFORT
    free = Counter(dict.fromkeys(whole, 0))
    for cpu in free_of(topology, available):
        if (cell := _cell(topology, cpu)) in whole:
            free[cell] += 1
    least = _fewest(whole, wanted) or len(whole)
    if _most(free, least) >= wanted and (least == 1 or topology.policy != SINGLE):
        return _lowest(free, least, wanted), True
    size = 0 if topology.policy == SINGLE else _fewest(free, wanted)
    return _lowest(free, size, wanted) if size else frozenset(whole), topology.policy == BEST_EFFORT


def _cell(topology: Topology, cpu: int) -> int:
    """Return the cell of a CPU: the first for a CPU that is not described."""
    place = topology.places.get(cpu)
    return 0 if place is None else place.cell


def _most(counts: Counter[int], size: int) -> int:
    """Return the CPUs of so many cells, of those with the most CPUs."""
    return sum(count for _, count in counts.most_common(size))


def _fewest(counts: Counter[int], wanted: int) -> int:
    """Return the smallest number of cells for so many CPUs; 0 when all together have too few."""
    most = accumulate(count for _, count in counts.most_common())
    return next((size for size, total in enumerate(most, 1) if total >= wanted), 0)


def _lowest(free: Counter[int], size: int, wanted: int) -> frozenset[int]:
    """Return the lowest set of so many cells that has enough: its highest cell is as low as possible, then the next."""
    cells, found = sorted(free), list[int]()
    for left in range(size, 0, -1):
        cells = cells[: _end(free, cells, left, wanted)]
        found.append(cells.pop())
        wanted -= free[found[-1]]
    return frozenset(found)


def _end(free: Counter[int], cells: Sequence[int], size: int, wanted: int) -> int:
    """Return how many cells there must be, from the lowest on, for so many of them to have enough."""
    ends = range(size, len(cells))  # all of them have enough
    # More cells never have fewer CPUs, so the end is found by halving.
    return size + bisect_left(ends, wanted, key=lambda end: _most(Counter({c: free[c] for c in cells[:end]}), size))


def given_on(topology: Topology, cells: frozenset[int] | None, available: Cpus, wanted: int) -> Cpus:
    """Return the CPUs that a container gets, of those cells first. None where they do not suffice."""
    free, aligned = free_of(topology, available), NONE
    if cells is not None:
        # A CPU that is not described belongs to no cell here, while it counts in the first one as a hint.
        near = frozenset(cpu for cpu in free if cpu in topology.places and topology.places[cpu].cell in cells)
        taken = take(topology.places, near, min(wanted, len(near)))
        if taken is None:
            return NONE
        aligned = taken
    rest = take(topology.places, free - aligned, wanted - len(aligned))
    return NONE if rest is None else aligned | rest
