# SPDX-License-Identifier: Apache-2.0
"""`claims`: pods with a claim for a device each, one cycle from nothing: the cluster of kube-scheduler's DRA gate.

That gate (`scheduler_perf`, 500 nodes of ten devices, 5,000 pods) measures the whole scheduler against an API server
and etcd; here it is one cycle of the core.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pumice.core.configuration import parse_scheduler_config
from pumice.core.objects.metadata import Object
from pumice.proof.bench import cluster
from pumice.proof.bench.allocate import run_on_fresh_views
from pumice.proof.bench.figures import Advance, Parameters, Samples

DEFAULTS: Final = Parameters(nodes=500, pods=5_000, runs=3)
DRIVER: Final = "devices.example.com"
CLASS: Final = "device"
API: Final = "resource.k8s.io/v1"
CONFIG: Final = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
    arguments:
      predicate.DynamicResourceAllocationEnable: true
  - name: proportion
  - name: nodeorder
configurations:
- name: pumice
  arguments:
    percentageOfNodesToFind: 100
"""


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure one cycle in which each pod gets its claim, on nodes whose devices just suffice."""
    a_node = -(-parameters.pods // parameters.nodes)
    objects = [
        {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": CLASS}, "spec": {}},
        *cluster.nodes(parameters.nodes),
        *(_slice(number, a_node) for number in range(parameters.nodes)),
        *cluster.queues(),
        *claiming(parameters.pods),
    ]
    config = parse_scheduler_config(CONFIG, source="bench")
    run_on_fresh_views(objects, config, parameters.runs, samples, advance)


def _slice(number: int, devices: int) -> Object:
    """Return the devices of a node."""
    name = f"n{number:05d}"
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": [{"name": f"d{at}"} for at in range(devices)]}
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def claiming(pods: int) -> Iterator[Object]:
    """Yield jobs of one pod, and the claim of each."""
    request = {"name": "one", "exactly": {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": 1}}
    for obj in cluster.pending_jobs(0, pods, 1):
        if obj["kind"] == "Pod":
            name = obj["metadata"]["name"]
            obj["spec"]["resourceClaims"] = [{"name": "device", "resourceClaimName": name}]
            requests = obj["spec"]["containers"][0]["resources"]["requests"]
            requests |= {"cpu": "100m", "memory": "100Mi"}
            metadata = {"name": name, "namespace": cluster.NAMESPACE, "uid": f"claim-{name}"}
            yield {
                "apiVersion": API,
                "kind": "ResourceClaim",
                "metadata": metadata,
                "spec": {"devices": {"requests": [request]}},
            }
        yield obj
