"""Nodes that somebody else's agent keeps, on which nothing is done here: a kubelet that joined, kwok.

kwok marks its nodes with an annotation. Whoever else keeps a node renews the Lease of its name.
"""

from __future__ import annotations

from typing import Final

from pumice.core.objects.metadata import Object, section, text_map

KWOK: Final = "kwok.x-k8s.io/node"
LEASES: Final = "kube-node-lease"
HOLDER: Final = "pumice-node-agents"


class OtherAgents:
    """`wrote` says when a lease was last renewed from here: a later time is somebody else's."""

    def __init__(self) -> None:
        self._marked: set[str] = set()
        self._leased: set[str] = set()
        self._renewed: dict[str, str] = {}

    def keeps(self, node: str) -> bool:
        """Whether the node is somebody else's."""
        return node in self._marked or node in self._leased

    def wrote(self, node: str, renewed: str) -> None:
        """The lease was renewed from here, at that time."""
        self._renewed[node] = renewed

    def node(self, node: Object, *, deleted: bool) -> None:
        """A node as it is now."""
        name = node["metadata"]["name"]
        marked = KWOK in text_map(node["metadata"].get("annotations")) and not deleted
        (self._marked.add if marked else self._marked.discard)(name)

    def lease(self, lease: Object, *, deleted: bool) -> None:
        """A lease as it is now."""
        meta = lease["metadata"]
        if meta.get("namespace") != LEASES:
            return
        name, spec = meta["name"], section(lease, "spec")
        renewed, own = str(spec.get("renewTime") or ""), self._renewed.get(name)
        others = spec.get("holderIdentity") != HOLDER or (own is not None and renewed > own)
        (self._leased.add if others and not deleted else self._leased.discard)(name)
