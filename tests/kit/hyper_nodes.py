"""HyperNodes."""

from collections.abc import Sequence

from pumice.core.objects.metadata import Object


def hyper_node(
    name: str, tier: int, *, nodes: Sequence[str] = (), children: Sequence[str] = (), tier_name: str = ""
) -> Object:
    """A HyperNode whose members are named one by one."""
    members = [("Node", node) for node in nodes] + [("HyperNode", child) for child in children]
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {
            "tier": tier,
            **({"tierName": tier_name} if tier_name else {}),
            "members": [{"type": kind, "selector": {"exactMatch": {"name": member}}} for kind, member in members],
        },
    }
