"""Field types of what the scheduler reads beside pods, jobs and queues; see `actors.api.admission.shapes.kind_shapes`.

Only fields that are read stand here. One of a wrong type would otherwise fail every session until it was deleted.
"""

from __future__ import annotations

from typing import Any, Final

from pumice.cluster.api.admission.shapes.pod_shapes import (
    Amounts,
    Anything,
    KubernetesType,
    LabelSelector,
    Long,
    Metadata,
    NodeTerms,
    Number,
    Text,
    Texts,
    Whole,
)

Mapping = dict[str, Any] | None
Names = list[str] | None


class ExactMatch(KubernetesType):
    name: Text = None


class RegexMatch(KubernetesType):
    pattern: Text = None


class MemberSelector(KubernetesType):
    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: LabelSelector | None = None


class Member(KubernetesType):
    type: Text = None
    selector: MemberSelector | None = None


class HyperNodeSpec(KubernetesType):
    tier: Long = None
    tier_name: Text = None
    members: list[Member] | None = None


class HyperNode(KubernetesType):
    metadata: Metadata
    spec: HyperNodeSpec | None = None


class QuotaSpec(KubernetesType):
    hard: Amounts = None


class QuotaStatus(KubernetesType):
    hard: Amounts = None
    used: Amounts = None


class ResourceQuota(KubernetesType):
    metadata: Metadata
    spec: QuotaSpec | None = None
    status: QuotaStatus | None = None


class BudgetSpec(KubernetesType):
    selector: LabelSelector | None = None
    min_available: Whole | str | None = None
    max_unavailable: Whole | str | None = None


class BudgetStatus(KubernetesType):
    disruptions_allowed: Number = None
    current_healthy: Number = None
    desired_healthy: Number = None
    observed_generation: Long = None
    disrupted_pods: Texts = None
    conditions: Anything = None


class PodDisruptionBudget(KubernetesType):
    metadata: Metadata
    spec: BudgetSpec | None = None
    status: BudgetStatus | None = None


class StorageClass(KubernetesType):
    metadata: Metadata
    provisioner: Text = None
    volume_binding_mode: Text = None
    allowed_topologies: Anything = None


class VolumeNodeAffinity(KubernetesType):
    required: NodeTerms | None = None


class VolumeSpec(KubernetesType):
    capacity: Amounts = None
    node_affinity: VolumeNodeAffinity | None = None
    claim_ref: Texts = None
    csi: Mapping = None
    storage_class_name: Text = None
    volume_mode: Text = None
    access_modes: Names = None


class Phased(KubernetesType):
    phase: Text = None


class PersistentVolume(KubernetesType):
    metadata: Metadata
    spec: VolumeSpec | None = None
    status: Phased | None = None


class ClaimResources(KubernetesType):
    requests: Amounts = None


class ClaimSpec(KubernetesType):
    resources: ClaimResources | None = None
    selector: LabelSelector | None = None
    storage_class_name: Text = None
    volume_name: Text = None
    volume_mode: Text = None
    access_modes: Names = None


class PersistentVolumeClaim(KubernetesType):
    metadata: Metadata
    spec: ClaimSpec | None = None
    status: Phased | None = None


class DriverLimit(KubernetesType):
    count: Long = None


class NodeDriver(KubernetesType):
    name: Text = None
    allocatable: DriverLimit | None = None


class CSINodeSpec(KubernetesType):
    drivers: list[NodeDriver] | None = None


class CSINode(KubernetesType):
    metadata: Metadata
    spec: CSINodeSpec | None = None


class NodeMetrics(KubernetesType):
    metadata: Metadata
    usage: Amounts = None


class ConfigMap(KubernetesType):
    metadata: Metadata
    data: Texts = None


class NumaResource(KubernetesType):
    allocatable: Text = None
    capacity: Number = None


class CpuPlace(KubernetesType):
    numa: Number = None
    socket: Number = None
    core: Number = None


class ContainerAllocation(KubernetesType):
    """Says what of the node's NUMA cells a container has."""

    name: Text = None
    allocations: Texts = None


class PodAllocation(KubernetesType):
    """Names a pod that has its share of the node's NUMA cells."""

    uid: Text = None
    name: Text = None
    namespace: Text = None
    container_allocations: list[ContainerAllocation] | None = None


class NumatopologySpec(KubernetesType):
    policies: Texts = None
    numares: dict[str, NumaResource] | None = None
    cpu_detail: dict[str, CpuPlace] | None = None
    res_reserved: Amounts = None
    pod_allocations: list[PodAllocation] | None = None


class Numatopology(KubernetesType):
    metadata: Metadata
    spec: NumatopologySpec | None = None


class Sections(KubernetesType):
    """A kind whose fields are read with care, as long as spec and status are mappings."""

    metadata: Metadata
    spec: Mapping = None
    status: Mapping = None


CLUSTER_SHAPES: Final[dict[str, type[KubernetesType]]] = {
    "HyperNode": HyperNode,
    "ResourceQuota": ResourceQuota,
    "PodDisruptionBudget": PodDisruptionBudget,
    "StorageClass": StorageClass,
    "PersistentVolume": PersistentVolume,
    "PersistentVolumeClaim": PersistentVolumeClaim,
    "CSINode": CSINode,
    "NodeMetrics": NodeMetrics,
    "ConfigMap": ConfigMap,
    "Numatopology": Numatopology,
    **dict.fromkeys(
        (
            "VolumeAttachment",
            "CSIDriver",
            "ResourceClaim",
            "ResourceSlice",
            "DeviceClass",
            "NodeShard",
            "Namespace",
            "ReplicationController",
            "StatefulSet",
        ),
        Sections,
    ),
}
