"""NodeMetrics objects (what `kubectl get nodemetrics -o yaml` prints) as node usage in per cent of allocatable."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pumice.core.objects.metadata import Object
from pumice.core.quantity import parse_quantity

PERIODS: Final = ("10m", "5m")
"""One sample stands for both averages."""

Usage = dict[str, dict[str, dict[str, float]]]


def usage_of(objects: Iterable[Object]) -> Usage:
    """Usage ÷ allocatable × 100 by node, resource (cpu, memory) and period; only nodes with metrics."""
    allocatable: dict[str, Object] = {}
    sampled: dict[str, Object] = {}
    for obj in objects:
        name: str = obj["metadata"]["name"]
        if obj["kind"] == "Node":
            status: Object = obj.get("status") or {}
            allocatable[name] = status.get("allocatable") or {}
        elif obj["kind"] == "NodeMetrics":
            sampled[name] = obj.get("usage") or {}
    return {name: _shares(usage, allocatable[name]) for name, usage in sampled.items() if name in allocatable}


def _shares(usage: Object, allocatable: Object) -> dict[str, dict[str, float]]:
    shares: dict[str, dict[str, float]] = {}
    for resource in ("cpu", "memory"):
        whole = _amount(resource, allocatable.get(resource))
        used = _amount(resource, usage.get(resource))
        if whole:
            shares[resource] = dict.fromkeys(PERIODS, used / whole * 100)
    return shares


def _amount(resource: str, text: Any) -> float:
    if text is None:
        return 0.0
    quantity = parse_quantity(str(text))
    return float(quantity.milli_value() if resource == "cpu" else quantity.value())
