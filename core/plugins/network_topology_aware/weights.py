"""The plugin's arguments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pumice.config.arguments import Arguments

DEFAULT_WEIGHT, DEFAULT_FADING, DEFAULT_MAX_HYPER_NODES = 1, 0.8, 8


@dataclass(frozen=True, slots=True)
class Weights:
    """`weight` scales all scores; `resources`: weight of each resource in binpacking; `normal_pods`: whether pods
    without a topology are scored, tiers fading by `fading`; `max_hyper_nodes`: how many domains an eviction may look
    at.
    """

    weight: int = DEFAULT_WEIGHT
    resources: dict[str, int] = field(default_factory=dict[str, int])
    normal_pods: bool = True
    fading: float = DEFAULT_FADING
    max_hyper_nodes: int = DEFAULT_MAX_HYPER_NODES


def _weight(arguments: Arguments, key: str) -> int:
    weight = arguments.get_int(key, DEFAULT_WEIGHT)
    return DEFAULT_WEIGHT if weight < 0 else weight


def read_weights(name: str, values: dict[str, Any]) -> Weights:
    """Read the arguments; negative weights and fading, and a cap that is not positive, become the defaults."""
    arguments = Arguments(name, values)
    resources = {
        "cpu": _weight(arguments, "hypernode.binpack.cpu"),
        "memory": _weight(arguments, "hypernode.binpack.memory"),
    }
    listed = values.get("hypernode.binpack.resources")
    for resource in listed.split(",") if isinstance(listed, str) else ():
        if resource.strip():
            resources[resource.strip()] = _weight(arguments, f"hypernode.binpack.resources.{resource.strip()}")
    fading = arguments.get_float("hypernode.binpack.normal-pod.fading", DEFAULT_FADING)
    most = arguments.get_int("hypernode.gradient.evict.max-hypernodes", DEFAULT_MAX_HYPER_NODES)
    return Weights(
        weight=_weight(arguments, "weight"),
        resources=resources,
        normal_pods=arguments.get_bool("hypernode.binpack.normal-pod.enable", True),
        fading=DEFAULT_FADING if fading < 0 else fading,
        max_hyper_nodes=DEFAULT_MAX_HYPER_NODES if most <= 0 else most,
    )
