# SPDX-License-Identifier: Apache-2.0
"""Free room of a node, as judges count it: requests against allocatable, and host ports."""

from __future__ import annotations

from pumice.core.objects.metadata import Object, section
from pumice.proof.storm.invariants.pod_book import HostPort, PodBook, amounts, share_port
from pumice.proof.storm.invariants.truth import StormTruth


def placed_on(truth: StormTruth, node: str) -> list[PodBook]:
    """Return the pods that take up room on a node."""
    return [pod for pod in truth.pods.values() if pod.on_node and pod.node == node]


class JudgedRoom:
    """Room of a node beside the pods on it, and beside those that are put there in thought."""

    def __init__(self, truth: StormTruth, node: Object) -> None:
        self._free = dict(amounts(section(section(node, "status"), "allocatable")))
        self._ports: tuple[HostPort, ...] = ()
        for pod in placed_on(truth, node["metadata"]["name"]):
            self.put(pod)

    def has(self, pod: PodBook) -> bool:
        """Return whether the pod fits."""
        fits = all(self._free.get(resource, 0) >= amount for resource, amount in pod.requests.items() if amount)
        return fits and not share_port(pod.ports, self._ports)

    def put(self, pod: PodBook) -> None:
        """Take the room of the pod."""
        self._ports += pod.ports
        for resource, amount in pod.requests.items():
            self._free[resource] = self._free.get(resource, 0) - amount
