# SPDX-License-Identifier: Apache-2.0
"""`spread`: each pod of a gang on a node of its own, evenly over the zones; one cycle from nothing."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from pumice.core.objects.metadata import Object
from pumice.proof.bench import cluster
from pumice.proof.bench.allocate import run_on_fresh_views
from pumice.proof.bench.cycle import stock_config
from pumice.proof.bench.figures import Advance, Parameters, Samples

DEFAULTS: Final = Parameters(nodes=1000, pods=480, gang=8)
GROUP: Final = "scheduling.k8s.io/group-name"


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure with the stock configuration, all nodes examined, the predicate-error cache off (on, such gangs are never
    bound).
    """
    objects = [
        *cluster.nodes(parameters.nodes),
        *cluster.queues(),
        *(spread(obj) for obj in cluster.pending_jobs(0, parameters.pods, parameters.gang)),
    ]
    config = stock_config()
    without_cache = {**config.configurations, "allocate": {"predicateErrorCacheEnable": False}}
    run_on_fresh_views(objects, replace(config, configurations=without_cache), parameters.runs, samples, advance)


def spread(obj: Object) -> Object:
    """Return a pod with a zone spread of skew 1 and anti-affinity to its own job per node; other objects as
    they are.
    """
    if obj["kind"] != "Pod":
        return obj
    job = obj["metadata"]["annotations"][GROUP]
    selector = {"matchLabels": {"job": job}}
    constraints: Object = {
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
        ],
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
                ]
            }
        },
    }
    labels = {**obj["metadata"].get("labels", {}), "job": job}
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}, "spec": {**obj["spec"], **constraints}}
