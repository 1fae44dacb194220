"""On which cells a request fits, and what the policies of topology managers make of it.

Source: Volcano `provider/cpumanager/cpu_mng.go`, `policy`.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final, NamedTuple

from pumice.core.devices.numa.taking import take
from pumice.core.devices.numa.topology import NONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.devices.numa.topology import Cpus, Topology

BEST_EFFORT, RESTRICTED, SINGLE = "best-effort", "restricted", "single-numa-node"
MERGING: Final = (BEST_EFFORT, RESTRICTED, SINGLE)


class Hint(NamedTuple):
    """Cells on which a request fits, None: any; `preferred`: no fewer could have it."""

    cells: frozenset[int] | None
    preferred: bool


def free_of(topology: Topology, available: Cpus) -> Cpus:
    """Without what is reserved for the system."""
    return available - (take(topology.places, frozenset(topology.places), topology.reserved) or NONE)


def hints(topology: Topology, available: Cpus, wanted: int) -> list[Hint]:
    """All sets of cells that have so many CPUs left, the smaller ones first."""
    cells, free = topology.cells, free_of(topology, available)
    least, found = len(cells), list[frozenset[int]]()
    for size in range(1, len(cells) + 1):
        for some in map(frozenset, combinations(cells, size)):
            if size < least and sum(1 for place in topology.places.values() if place.cell in some) >= wanted:
                least = size
            if sum(1 for cpu in free if _cell(topology, cpu) in some) >= wanted:
                found.append(some)
    return [Hint(some, len(some) == least) for some in found]


def _cell(topology: Topology, cpu: int) -> int:
    """A CPU that nothing is told of is in the first cell."""
    place = topology.places.get(cpu)
    return 0 if place is None else place.cell


def judged(topology: Topology, given: Sequence[Hint] | None) -> tuple[frozenset[int] | None, bool]:
    """(the cells that the node's policy takes, whether it lets the container in); `given` None: it asks for no whole
    CPUs.
    """
    if topology.policy not in MERGING:
        return None, True
    listed = [Hint(None, True)] if given is None else list(given) or [Hint(None, False)]
    if topology.policy == SINGLE:
        listed = [each for each in listed if each.preferred and (each.cells is None or len(each.cells) == 1)]
    best = _best(frozenset(topology.cells), listed)
    return best.cells, topology.policy == BEST_EFFORT or best.preferred


def _best(cells: frozenset[int], listed: Sequence[Hint]) -> Hint:
    """A preferred one before all others, then the narrowest, then the lowest cells."""
    best = Hint(cells, False)
    for each in listed:
        some = cells if each.cells is None else each.cells & cells
        if not some or (best.preferred and not each.preferred):
            continue
        if (each.preferred and not best.preferred) or _narrowness(some) < _narrowness(best.cells or cells):
            best = Hint(some, each.preferred)
    return best


def _narrowness(cells: frozenset[int]) -> tuple[int, int]:
    return len(cells), sum(1 << cell for cell in cells)


def given_on(topology: Topology, cells: frozenset[int] | None, available: Cpus, wanted: int) -> Cpus:
    """The CPUs that a container gets: of those cells first. Nothing where they do not suffice."""
    free, aligned = free_of(topology, available), NONE
    if cells is not None:
        near = frozenset(cpu for cpu in free if cpu in topology.places and topology.places[cpu].cell in cells)
        taken = take(topology.places, near, min(wanted, len(near)))
        if taken is None:
            return NONE
        aligned = taken
    rest = take(topology.places, free - aligned, wanted - len(aligned))
    return NONE if rest is None else aligned | rest
