# SPDX-License-Identifier: Apache-2.0
"""The controllers of ReplicaSets and ReplicationControllers: they keep the requested number of pods.

Source: Kubernetes' replicaset controller, which its replication controller reuses under another name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pumice.cluster.controllers.family import Agenda, OwnerRule, OwnFamily
from pumice.cluster.controllers.pods_of import Belongs, available_at, by_selector, is_active, least_missed, pod_from
from pumice.cluster.kube.merge_patch import diff_patch
from pumice.cluster.kube.statuses import merge_condition, timestamp
from pumice.core.messages.commands import Delete, UpdateStatus
from pumice.core.objects.metadata import Object, labels_of, section, text_map
from pumice.core.objects.parts import ORPHAN_POD, POD_OF_WORKLOAD
from pumice.storage.codec import pack


@dataclass(frozen=True, slots=True)
class KeptNumber:
    """A kind that keeps a number of pods. `plain`: its selector is a mapping of labels."""

    kind: str
    api_version: str
    reporter: str
    plain: bool
    summary: str


REPLICATION_CONTROLLERS: Final = KeptNumber(
    "ReplicationController",
    "v1",
    "replication-controller",
    plain=True,
    summary="as many pods as are wanted; a pod whose labels no longer match is let go",
)
REPLICA_SETS: Final = KeptNumber(
    "ReplicaSet",
    "apps/v1",
    "replicaset-controller",
    plain=False,
    summary="as many pods as are wanted, adopted where the selector finds them",
)


class ReplicationRule(OwnerRule):
    """Rule of ReplicaSets and ReplicationControllers."""

    children = (POD_OF_WORKLOAD, ORPHAN_POD)
    user = "workload-controller"

    def __init__(self, kept: KeptNumber) -> None:
        self.owner = kept.kind
        self.owner_type = (kept.api_version, kept.kind)
        self.reporter, self.summary = kept.reporter, kept.summary
        self._plain = kept.plain

    def belongs(self, owner: Object) -> Belongs | None:
        """Return a test that picks the owner's children among those that it `adopts`; None: those that the owner
        made.
        """
        selector = owner["spec"].get("selector")
        return by_selector({"matchLabels": selector} if self._plain else selector)

    def work(self, family: OwnFamily, now: float) -> Agenda:
        """Return the requests for an owner that is not being deleted."""
        owner, agenda = family.owner, Agenda()
        spec, (namespace, name) = owner["spec"], (owner["metadata"]["namespace"], owner["metadata"]["name"])
        active = [pod for pod in family.of("Pod") if is_active(pod)]
        wanted: int = spec["replicas"]
        agenda.new += [pod_from(spec["template"], owner) for _ in range(wanted - len(active))]
        # Kubernetes' order (`ActivePodsWithRanks`): pods without a node, then those that are not ready, then the
        # youngest.
        surplus = sorted(active, key=least_missed)[: max(len(active) - wanted, 0)]
        for pod in surplus:
            goes = pod["metadata"]
            agenda.requests.append(Delete("Pod", goes["namespace"], goes["name"], uid=goes["uid"], user=self.user))
        left = [pod for pod in active if pod not in surplus]
        times = [at for pod in left if (at := available_at(pod, spec.get("minReadySeconds") or 0)) is not None]
        # A pod becomes available by time alone (minReadySeconds), without any change to wake this rule.
        agenda.due = min((at for at in times if at > now), default=None)
        status = _status(owner, left, family.trouble, now)
        # Only a difference is written: a write without one would wake every watcher of the kind.
        if patch := diff_patch(section(owner, "status"), status):
            agenda.requests.append(UpdateStatus(self.owner, namespace, name, pack(patch), user=self.user))
        return agenda


def _status(owner: Object, pods: Sequence[Object], trouble: str, now: float) -> Object:
    least, labels = owner["spec"].get("minReadySeconds") or 0, section(owner["spec"], "template")
    full = labels_of(labels).items()
    times = [available_at(pod, least) for pod in pods]
    numbers = {
        "fullyLabeledReplicas": sum(full <= text_map(pod["metadata"].get("labels")).items() for pod in pods),
        "readyReplicas": sum(at is not None for at in times),
        "availableReplicas": sum(at is not None and at <= now for at in times),
    }
    status: Object = {
        "replicas": len(pods),
        "observedGeneration": owner["metadata"].get("generation", 1),
        **{name: number for name, number in numbers.items() if number},
    }
    if conditions := _conditions(section(owner, "status").get("conditions") or [], trouble, now):
        status["conditions"] = conditions
    return status


def _conditions(old: list[Object], trouble: str, now: float) -> list[Object]:
    """Return the condition that pods are refused, while they are."""
    if not trouble:
        return [each for each in old if each.get("type") != "ReplicaFailure"]
    said = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": trouble}
    made = merge_condition(old, said, timestamp(now))
    return old if made is None else made
