"""Volcano's per-node scorers one node at a time, over whole Resource objects: slow and obvious."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.resources import ZERO, Resource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.core.objects.pod import Task
    from pumice.core.session.nodes import SessionNodes
    from pumice.core.session.session import Session

Strategies = dict[str, tuple[str, int]]


def amounts(session: Session, column: str, row: int) -> Resource:
    """One node's column as a resource."""
    lines = getattr(session.nodes, column)
    return session.dims.resource([float(line[row]) for line in lines])


def allocatable(nodes: SessionNodes, row: int) -> Resource:
    """What one node can allocate."""
    return nodes.specs[row].allocatable


def binpack(session: Session, task: Task, row: int, weights: dict[str, int], weight: int) -> float:
    """BinPackingScore."""
    requested, node, used = task.template.request, allocatable(session.nodes, row), amounts(session, "used", row)
    score, total = 0.0, 0
    for name in requested.resource_names():
        if name not in weights:
            continue
        capacity, taken = node.get(name), requested.get(name) + used.get(name)
        if capacity != 0 and weights[name] != 0:
            if taken > capacity:
                return 0.0
            score += taken * weights[name] / capacity
        total += weights[name]
    if total > 0:
        score /= total
    return score * (100 * weight)


def strategy_of(name: str, strategies: Strategies) -> tuple[str, int] | None:
    """The exact entry, else the one with the longest prefix."""
    if name in strategies:
        return strategies[name]
    best = ""
    for pattern in strategies:
        if pattern.endswith("*") and name.startswith(pattern[:-1]) and len(pattern) > len(best):
            best = pattern
    return strategies[best] if best else None


def fit(session: Session, task: Task, row: int, strategies: Strategies, weight: int) -> float:
    """Score of resource-strategy-fit."""
    requested, node, used = task.template.request, allocatable(session.nodes, row), amounts(session, "used", row)
    score, total = 0.0, 0
    for name in requested.resource_names():
        strategy = strategy_of(name, strategies)
        if strategy is None:
            continue
        kind, resource_weight = strategy
        capacity, taken = node.get(name), requested.get(name) + used.get(name)
        if capacity != 0 and resource_weight != 0 and kind in ("MostAllocated", "LeastAllocated"):
            if taken > capacity:
                return 0.0
            part = taken if kind == "MostAllocated" else capacity - taken
            score += part * resource_weight / capacity
        total += resource_weight
    if total > 0:
        score /= total
    return score * (100.0 * weight)


def sra(session: Session, task: Task, row: int, weights: dict[str, int], weight: int) -> float:
    """sraScore."""
    node = allocatable(session.nodes, row)
    if any(node.get(name) == 0 for name in task.template.request.resource_names()):
        return 0.0
    held, total = sum(w for name, w in weights.items() if node.get(name) > 0), sum(weights.values())
    score = float(held)
    if total > 0:
        score = 1.0 - score / total
    return score * (100 * weight)


def disproportionate(session: Session, task: Task, row: int, shares: dict[str, tuple[float, float]]) -> str:
    """checkNodeResourceIsProportional: the resource that would be left without its share, or ""."""
    requested, idle = task.template.request, amounts(session, "idle", row)
    if any((requested.scalars or {}).get(name, 0) > 0 for name in shares):
        return ""
    for name in sorted(shares):
        if name not in (allocatable(session.nodes, row).scalars or {}):
            continue
        cpu, memory = shares[name]
        kept = idle.get(name)
        if idle.milli_cpu - requested.milli_cpu < kept * cpu:
            return name
        if idle.memory - requested.memory < kept * memory * 1000 * 1000:
            return name
    return ""


def left_out(bucket: Resource, others: Iterable[Task], room: Resource) -> int:
    """How many of the others have to go until the rest of the bucket fits."""
    remains, gone = bucket.clone(), 0
    for other in others:
        if remains.less_equal(room, ZERO):
            break
        remains.sub_without_assert(other.template.request)
        gone += 1
    return gone
