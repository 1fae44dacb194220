"""A HyperNode: a performance domain of nodes, or of HyperNodes. Source: Volcano `api/hyper_node_info.go`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pumice.core.objects.metadata import Object, section


@dataclass(frozen=True, slots=True)
class HyperNode:
    """`children`: names of member HyperNodes (exact match only); `selectors`: how its member nodes are chosen."""

    name: str
    tier: int
    tier_name: str
    children: tuple[str, ...]
    selectors: tuple[dict[str, Any], ...]


def _exact_name(selector: dict[str, Any]) -> str:
    return str(section(selector, "exactMatch").get("name") or "")


def read_hyper_node(obj: Object) -> HyperNode:
    """Build a HyperNode from its object; members of an unknown type count for nothing."""
    spec = section(obj, "spec")
    members: list[dict[str, Any]] = spec.get("members") or []
    children = [_exact_name(section(m, "selector")) for m in members if m.get("type") == "HyperNode"]
    return HyperNode(
        name=section(obj, "metadata").get("name") or "",
        tier=int(spec.get("tier") or 0),
        tier_name=spec.get("tierName") or "",
        children=tuple(name for name in children if name),
        selectors=tuple(section(m, "selector") for m in members if m.get("type") == "Node"),
    )
