# SPDX-License-Identifier: Apache-2.0
"""`topology`: gangs into racks and spines, one cycle from nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pumice.core.configuration import parse_scheduler_config
from pumice.core.objects.metadata import Object
from pumice.proof.bench import cluster
from pumice.proof.bench.allocate import run_on_fresh_views
from pumice.proof.bench.figures import Advance, Parameters, Samples

DEFAULTS: Final = Parameters(nodes=1000, pods=1280, gang=64)
NODES_A_RACK: Final = 25
RACKS_A_SPINE: Final = 10
HIGHEST_TIER: Final = 2
CONFIG: Final = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
  - name: proportion
  - name: binpack
  - name: network-topology-aware
"""


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure gangs that are all hard, up to the tier of the spines."""
    objects = [
        *cluster.nodes(parameters.nodes),
        *hyper_nodes(parameters.nodes),
        *cluster.queues(),
        *(hard(obj) for obj in cluster.pending_jobs(0, parameters.pods, parameters.gang)),
    ]
    config = parse_scheduler_config(CONFIG, source="bench")
    run_on_fresh_views(objects, config, parameters.runs, samples, advance)


def hyper_nodes(nodes: int) -> Iterator[Object]:
    """Return racks of 25 nodes (tier 1) and spines of 10 racks (tier 2)."""
    names = [f"n{i:05d}" for i in range(nodes)]
    racks = [names[i : i + NODES_A_RACK] for i in range(0, nodes, NODES_A_RACK)]
    for number, members in enumerate(racks):
        yield _hyper_node(f"rack-{number:04d}", 1, "Node", members)
    for number, first in enumerate(range(0, len(racks), RACKS_A_SPINE)):
        inside = range(first, min(first + RACKS_A_SPINE, len(racks)))
        yield _hyper_node(f"spine-{number:04d}", 2, "HyperNode", [f"rack-{rack:04d}" for rack in inside])


def _hyper_node(name: str, tier: int, kind: str, members: list[str]) -> Object:
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {
            "tier": tier,
            "members": [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members],
        },
    }


def hard(obj: Object) -> Object:
    """Return a PodGroup that requests at most one spine; other objects as they are."""
    if obj["kind"] != "PodGroup":
        return obj
    wish = {"mode": "hard", "highestTierAllowed": HIGHEST_TIER}
    return {**obj, "spec": {**obj["spec"], "networkTopology": wish}}
