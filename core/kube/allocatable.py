# SPDX-License-Identifier: Apache-2.0
"""The allocatable of a node, as kube-scheduler's NodeInfo has it.

Status.allocatable, without Volcano's oversubscription.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pumice.core.objects.metadata import section
from pumice.core.objects.node import OVERSUBSCRIPTION_CPU, OVERSUBSCRIPTION_MEMORY
from pumice.core.resources import Resource
from pumice.core.state.derived import derived
from pumice.core.state.dimensions import cells_of
from pumice.core.state.sources import NODES

if TYPE_CHECKING:
    from pumice.core.kube.rows import BoolArray
    from pumice.core.objects.node import NodeSpec
    from pumice.core.state.dimensions import CellColumn
    from pumice.core.state.sources import NodeSpecs


@dataclass(frozen=True, slots=True)
class AllocatableColumn:
    """One resource over node rows [N].

    `amount`: what is allocatable; `divisor`: the same with infinity for 0, so that a share of nothing is 0; `present`:
    where it is not 0.
    """

    amount: CellColumn
    divisor: CellColumn
    present: BoolArray
    everywhere: bool


def _kube_allocatable(spec: NodeSpec) -> Resource:
    # Only these nodes are read again: for all others the spec's amount is the same.
    if OVERSUBSCRIPTION_CPU in spec.annotations or OVERSUBSCRIPTION_MEMORY in spec.annotations:
        return Resource.from_list(section(section(spec.node, "status"), "allocatable"))
    return spec.allocatable


@derived(NODES)
def _resources(nodes: NodeSpecs) -> list[Resource]:
    return [_kube_allocatable(spec) for spec in nodes.specs]


def _amounts(nodes: NodeSpecs, name: str) -> list[float]:
    resources = _resources(nodes)
    if name == "cpu":
        return [resource.milli_cpu for resource in resources]
    if name == "memory":
        return [resource.memory for resource in resources]
    return [(resource.scalars or {}).get(name, 0.0) for resource in resources]


@derived(NODES)
def capacity(nodes: NodeSpecs, name: str) -> AllocatableColumn:
    """Return the allocatable amount of a resource: cpu in milli-cores, memory in bytes, others in thousandths."""
    amount = np.array(_amounts(nodes, name), dtype=np.float64)
    present = amount != 0.0
    everywhere = bool(present.all())
    column = cells_of(amount)
    divisor = column if everywhere else cells_of(np.where(present, amount, np.inf))  # one is read faster than two
    return AllocatableColumn(column, divisor, present, everywhere)
