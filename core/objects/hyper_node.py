# SPDX-License-Identifier: Apache-2.0
"""A HyperNode: a performance domain of nodes, or of HyperNodes. Source: Volcano `api/hyper_node_info.go`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pumice.core.objects.metadata import Object, section, text_map
from pumice.core.texts import whole_number

NAME_LENGTH: Final = "pumice.dev/name-length"
"""On a HyperNode under a pseudonym: siblings are tried in the order of their names' lengths."""


@dataclass(frozen=True, slots=True)
class HyperNode:
    """A HyperNode. `children`: names of member HyperNodes (exact match only); `selectors`: how its member nodes are
    chosen.

    `length`: how long its name is, or was before a pseudonym took its place.
    """

    name: str
    tier: int
    tier_name: str
    children: tuple[str, ...]
    selectors: tuple[Object, ...]
    length: int


def _exact_name(selector: Object) -> str:
    return str(section(selector, "exactMatch").get("name") or "")


def read_hyper_node(obj: Object) -> HyperNode:
    """Build a HyperNode from its object; members of an unknown type do not count."""
    spec = section(obj, "spec")
    members: list[Object] = spec.get("members") or []
    # An exact name alone: Volcano builds no tree from members that a pattern or labels select.
    children = [_exact_name(section(m, "selector")) for m in members if m.get("type") == "HyperNode"]
    meta = section(obj, "metadata")
    name = str(meta.get("name") or "")
    return HyperNode(
        name=name,
        tier=int(spec.get("tier") or 0),
        tier_name=spec.get("tierName") or "",
        children=tuple(child for child in children if child),
        selectors=tuple(section(m, "selector") for m in members if m.get("type") == "Node"),
        length=whole_number(text_map(meta.get("annotations")).get(NAME_LENGTH, "")) or len(name),
    )
