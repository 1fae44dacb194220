# SPDX-License-Identifier: Apache-2.0
"""`cards`: one cycle from nothing on nodes of eight cards, which the pods share by memory and cores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pumice.core.configuration import parse_scheduler_config
from pumice.core.objects.metadata import Object
from pumice.proof.bench import cluster
from pumice.proof.bench.allocate import run_on_fresh_views
from pumice.proof.bench.figures import Advance, Parameters, Samples

DEFAULTS: Final = Parameters(nodes=5000, pods=2000, gang=8)
CARDS: Final = 8
SPLIT: Final = 10
"""Number of pods that may share a card."""
MIB: Final = 81_920
ASKED: Final = ((1, 20_480, 25), (2, 10_240, 10), (1, 40_960, 50), (1, 4_096, 0))
"""(cards, MiB and cores of each) of every pod of job j: entry j mod 4."""
SHARING: Final = """\
  - name: deviceshare
    arguments:
      deviceshare.VGPUEnable: true
      deviceshare.SchedulePolicy: binpack
      deviceshare.ScheduleWeight: 1
"""


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure `allocate` with Volcano's stock plugins and deviceshare."""
    text = cluster.STOCK.replace("  - name: proportion\n", SHARING + "  - name: proportion\n")
    config = parse_scheduler_config(text, source="bench")
    objects = [
        *map(with_cards, cluster.nodes(parameters.nodes)),
        *cluster.queues(),
        *sharing(cluster.pending_jobs(0, parameters.pods, parameters.gang)),
    ]
    run_on_fresh_views(objects, config, parameters.runs, samples, advance)


def with_cards(node: Object) -> Object:
    """Return the node with its cards registered, and their amounts beside its own."""
    name, status = node["metadata"]["name"], node["status"]
    said = "".join(f"GPU-{name}-{card},{SPLIT},{MIB},NVIDIA-A100,true,hami-core:" for card in range(CARDS))
    metadata = {**node["metadata"], "annotations": {"volcano.sh/node-vgpu-register": said}}
    amounts = _named(CARDS * SPLIT, CARDS * MIB, CARDS * 100)
    both = {part: {**status[part], **amounts} for part in ("allocatable", "capacity")}
    return {**node, "metadata": metadata, "status": {**status, **both}}


def sharing(objects: Iterator[Object]) -> Iterator[Object]:
    """Yield the jobs, each of whose pods requests shares of cards."""
    jobs = 0
    for each in objects:
        if each["kind"] != "Pod":
            jobs += 1
            yield each
            continue
        (container,) = each["spec"]["containers"]
        limits = _named(*ASKED[jobs % len(ASKED)])
        requests = {**container["resources"]["requests"], **limits}
        containers = [{**container, "resources": {"requests": requests, "limits": limits}}]
        yield {**each, "spec": {**each["spec"], "containers": containers}}


def _named(number: int, memory: int, cores: int) -> dict[str, str]:
    amounts = {"number": number, "memory": memory, "cores": cores}
    return {f"volcano.sh/vgpu-{name}": str(amount) for name, amount in amounts.items() if amount}
