# SPDX-License-Identifier: Apache-2.0
"""Amounts of every resource over time: requested, held, and available.

Two integrals use these amounts, and their published numbers differ by definition, so neither replaces the other. The
figures here compare two runs (what-if, replay): they count from the beginning of the run, and on a deleted node a pod
holds nothing. The series of `resource_use.py` describe one run: they begin with its first job, since a cluster that
waits for a record to begin wastes nothing, and a pod holds its request to its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pumice.core.objects.metadata import Object
from pumice.core.objects.pod_template import pod_request
from pumice.core.resources.amounts import CPU, MEMORY, PODS
from pumice.core.resources.resource import Resource

Amount = Mapping[str, float]
"""By resource: cores of cpu, bytes of memory, pieces of everything else."""


@dataclass
class ResourceFigures:
    """One resource in amount × seconds: `requested_s` from a pod's creation to its end, `allocated_s` from its binding
    to its end, while its node existed. `utilisation`: the allocated part of all that the nodes had in that time.
    """

    requested_s: float = 0.0
    allocated_s: float = 0.0
    utilisation: float = 0.0


@dataclass
class ClusterFigures(ResourceFigures):
    """Figures of the cluster. `capacity_s`: the nodes' allocatable, times seconds."""

    capacity_s: float = 0.0


def add(total: dict[str, float], amount: Amount, seconds: float) -> None:
    """Add an amount times so many seconds."""
    for name, value in amount.items():
        total[name] = total.get(name, 0.0) + value * seconds


def figures(requested: Amount, allocated: Amount, capacity: Amount) -> dict[str, ResourceFigures]:
    """Return the figures by resource, for those that a pod asked for."""
    amounts = requested, allocated, capacity
    return {name: ResourceFigures(*_of_one(name, *amounts)) for name in _in_order(requested)}


def cluster_figures(requested: Amount, allocated: Amount, capacity: Amount) -> dict[str, ClusterFigures]:
    """Return the figures by resource, for all that nodes have or that a pod asked for."""
    amounts = requested, allocated, capacity
    return {
        name: ClusterFigures(*_of_one(name, *amounts), round(capacity.get(name, 0.0), 3))
        for name in _in_order({*requested, *capacity})
    }


def request_of(pod_spec: Object) -> Amount:
    """Return the amounts that a pod takes."""
    return _amount(pod_request(pod_spec))


def allocatable_of(node_status: Object) -> Amount:
    """Return the amounts that a node gives away."""
    return _amount(Resource.from_list(node_status.get("allocatable")))


def _amount(resource: Resource) -> Amount:
    found = {CPU: resource.milli_cpu / 1000, MEMORY: resource.memory}
    for name, value in (resource.scalars or {}).items():
        found[name] = value if name == PODS else value / 1000
    return {name: value for name, value in found.items() if value}


def _of_one(name: str, requested: Amount, allocated: Amount, capacity: Amount) -> tuple[float, float, float]:
    held, whole = allocated.get(name, 0.0), capacity.get(name)
    return round(requested.get(name, 0.0), 3), round(held, 3), round(held / whole, 4) if whole else 0.0


def _in_order(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: (name != CPU, name != MEMORY, name))
