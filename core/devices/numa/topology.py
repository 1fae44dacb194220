# SPDX-License-Identifier: Apache-2.0
"""`Numatopology` objects read, and CPU sets as texts. Source: Volcano `cache/event_handlers.go` (getNumaInfo)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from pumice.core.errors import QuantityError
from pumice.core.go_numbers import parse_int
from pumice.core.objects.metadata import is_list, mapping, section, text_map
from pumice.core.quantity import quantity_of

if TYPE_CHECKING:
    from pumice.core.objects.metadata import Object

CPU: Final = "cpu"
Cpus = frozenset[int]
NONE: Final[Cpus] = frozenset()
MOST_CPUS: Final = 65_536
"""Of a node; Linux has 8,192 at most. A longer list is not one of CPUs; the limit bounds the work."""


class CpuPlace(NamedTuple):
    """The place of a CPU. Cores are numbered within their socket or across all, as the topology's reporter decides."""

    cell: int
    socket: int
    core: int


@dataclass(frozen=True, slots=True)
class Topology:
    """The topology of one node: the place of each CPU, how many are reserved (rounded up), the policies of its kubelet,
    and the allocatable of each resource. `assigned`: the pods to which the kubelet has given CPUs, by uid and by
    namespace/name.
    """

    places: dict[int, CpuPlace]
    reserved: int
    cpu_policy: str
    policy: str
    allocatable: dict[str, Cpus]
    assigned: frozenset[str] = frozenset()

    @property
    def cells(self) -> list[int]:
        """Return the numbers of its cells."""
        return sorted({place.cell for place in self.places.values()})


def read_topology(obj: Object) -> Topology:
    """Return the topology that an object describes. An unreadable part counts as nothing, as in Volcano."""
    spec = section(obj, "spec")
    policies, details = text_map(spec.get("policies")), section(spec, "cpuDetail")
    places = {
        # Atoi's error is ignored in Volcano: a number that cannot be read is CPU 0.
        parse_int(str(cpu)) or 0: CpuPlace(*(int(detail.get(name) or 0) for name in ("numa", "socket", "core")))
        for cpu, detail in details.items()
    }
    resources: Object = section(spec, "numares")
    allocatable = {name: cpus_of(str(said.get("allocatable") or "")) for name, said in resources.items()}
    reserved = _rounded_up(section(spec, "resReserved").get(CPU))
    cpu_policy, policy = policies.get("CPUManagerPolicy", ""), policies.get("TopologyManagerPolicy", "")
    return Topology(places, reserved, cpu_policy, policy, allocatable, _assigned(spec.get("podAllocations")))


def _assigned(said: object) -> frozenset[str]:
    found: set[str] = set()
    for pod in map(mapping, said if is_list(said) else ()):
        found.update({str(pod.get("uid") or ""), f"{pod.get('namespace') or ''}/{pod.get('name') or ''}"})
    return frozenset(found - {"", "/"})


def _rounded_up(quantity: object) -> int:
    try:
        return 0 if quantity is None else quantity_of(quantity).value()
    except QuantityError:
        return 0


def cpus_of(text: str) -> Cpus:
    """Return the set of a text like "0,3-5"; empty for another text."""
    found: set[int] = set()
    for part in text.split(",") if text else ():
        first, dash, last = part.partition("-")
        low, high = parse_int(first), parse_int(last if dash else first)
        # One wrong part makes the whole set empty: cpuset.Parse returns no set beside its error.
        if low is None or high is None or not low <= high < MOST_CPUS:
            return NONE
        found.update(range(low, high + 1))
    return frozenset(found)


def text_of(cpus: Cpus) -> str:
    """Return the set as "0,3-5"."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
