# SPDX-License-Identifier: Apache-2.0
"""The content of a resource: cpu, memory and scalars, and the questions that concern one resource alone.

Source: Volcano ``pkg/scheduler/api/resource_info.go``. cpu is in milli-units, memory in bytes, scalars in milli-units
except ``pods``, a plain count. Everything is float64. Go's nil map is ``scalars is None``; it differs from an empty one
in some comparisons. Go's map order is random where names are listed; here it is key order, after cpu and memory.
"""

from __future__ import annotations

from typing import Final, Self

MIN_RESOURCE: Final = 0.1
"""Below this an amount counts as nothing, and two amounts closer than this as equal (Volcano's ``minResource``)."""

CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"

LARGEST: Final = 1.7976931348623157e308
"""Go's ``math.MaxFloat64``: no limit."""
_LARGEST_INT64: Final = 9.223372036854775807e18


class Amounts:
    """Amounts of resources. Mutable, as in Volcano: arithmetic changes the left side. ``==`` is exact; the tolerant
    test is ``equal``.
    """

    __slots__ = ("memory", "milli_cpu", "scalars")
    __hash__ = None  # type: ignore[assignment]  # mutable

    milli_cpu: float
    memory: float
    scalars: dict[str, float] | None

    def __init__(self, milli_cpu: float = 0.0, memory: float = 0.0, scalars: dict[str, float] | None = None) -> None:
        self.milli_cpu = milli_cpu
        self.memory = memory
        self.scalars = scalars

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Amounts):
            return NotImplemented
        return (
            self.milli_cpu == other.milli_cpu
            and self.memory == other.memory
            and self.scalars == other.scalars
            # Go's DeepEqual tells a nil map from an empty one, and `sub_without_assert` treats them differently.
            and (self.scalars is None) == (other.scalars is None)
        )

    def __repr__(self) -> str:
        return f"Resource(milli_cpu={self.milli_cpu!r}, memory={self.memory!r}, scalars={self.scalars!r})"

    def __str__(self) -> str:
        return self.string()

    def clone(self) -> Self:
        """Return a deep copy."""
        scalars = self.scalars
        return type(self)(self.milli_cpu, self.memory, None if scalars is None else scalars.copy())

    def get(self, name: str) -> float:
        """Return the amount of one resource; 0 for an unknown one (Volcano's ``Get``)."""
        if name == CPU:
            return self.milli_cpu
        if name == MEMORY:
            return self.memory
        return 0.0 if self.scalars is None else self.scalars.get(name, 0.0)

    def set_scalar(self, name: str, amount: float) -> None:
        """Set one scalar, in milli-units (``pods``: a count)."""
        if self.scalars is None:
            self.scalars = {}
        self.scalars[name] = amount

    def is_empty(self) -> bool:
        """Return whether every dimension is below 0.1; ``pods`` does not count (Volcano's ``IsEmpty``)."""
        if not (self.milli_cpu < MIN_RESOURCE and self.memory < MIN_RESOURCE):
            return False
        if not self.scalars:
            return True
        # Every pod requests one of `pods`, so Volcano never looks at it here (ignoredScalarResources).
        return not any(amount >= MIN_RESOURCE and name != PODS for name, amount in self.scalars.items())

    def resource_names(self) -> list[str]:
        """Return the names of the dimensions that are at least 0.1: cpu, memory, then scalars in key order."""
        names: list[str] = []
        if self.milli_cpu >= MIN_RESOURCE:
            names.append(CPU)
        if self.memory >= MIN_RESOURCE:
            names.append(MEMORY)
        if self.scalars:
            # `pods` is named here, unlike in `is_empty`: Volcano's ResourceNames ignores nothing.
            names += sorted(name for name, amount in self.scalars.items() if amount >= MIN_RESOURCE)
        return names

    def string(self) -> str:
        """Return a resource as Volcano's messages write it: ``cpu 100.00, memory 0.10, nvidia.com/gpu 1000.00``."""
        parts = [f"cpu {_shown(self.milli_cpu)}", f"memory {_shown(self.memory)}"]
        if self.scalars:
            parts += [f"{name} {_shown(amount)}" for name, amount in sorted(self.scalars.items())]
        return ", ".join(parts)


def _shown(amount: float) -> str:
    # Volcano's two ways to say "no limit": in most places the largest float, in some the largest int64.
    if amount == LARGEST:
        return "maxFloat"
    if amount == _LARGEST_INT64:
        return "maxInt"
    return f"{amount:.2f}"
