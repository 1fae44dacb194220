"""Types of fields: an object whose JSON types are wrong would break every reader of its kind, so it is refused.

Fields that are not listed may hold anything; all may be left out or null unless they have no default here.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from pumice.cluster.api.admission.shapes.cluster_shapes import CLUSTER_SHAPES
from pumice.cluster.api.admission.shapes.definition_shapes import Definition
from pumice.cluster.api.admission.shapes.limit_shapes import LimitRange
from pumice.cluster.api.admission.shapes.made_shapes import MADE_SHAPES
from pumice.cluster.api.admission.shapes.pod_shapes import (
    Amounts,
    Anything,
    KubernetesType,
    LabelSelector,
    Long,
    Metadata,
    Number,
    Pod,
    Template,
    Text,
    Whole,
)
from pumice.cluster.api.admission.shapes.type_words import in_words
from pumice.cluster.api.refusals import Cause


class Bare(KubernetesType):
    """A kind of which only the metadata matters."""

    metadata: Metadata


class Policy(KubernetesType):
    action: Text = None
    event: Text = None
    events: list[str] | None = None
    exit_code: Number = None
    timeout: Text = None


class DependsOn(KubernetesType):
    name: list[str] | None = None
    iteration: Text = None


class NetworkTopology(KubernetesType):
    mode: Text = None
    highest_tier_allowed: Long = None
    highest_tier_name: Text = None


class PartitionPolicy(KubernetesType):
    total_partitions: Number = None
    partition_size: Number = None
    min_partitions: Number = None
    network_topology: NetworkTopology | None = None


class TaskSpec(KubernetesType):
    name: Text = None
    replicas: Number = None
    min_available: Number = None
    max_retry: Number = None
    template: Template | None = None
    policies: list[Policy] | None = None
    depends_on: DependsOn | None = None
    topology_policy: Text = None
    partition_policy: PartitionPolicy | None = None


class Volume(KubernetesType):
    mount_path: Text = None
    volume_claim_name: Text = None
    volume_claim: dict[str, Any] | None = None


class JobSpec(KubernetesType):
    scheduler_name: Text = None
    min_available: Number = None
    min_success: Number = None
    queue: Text = None
    max_retry: Number = None
    ttl_seconds_after_finished: Number = None
    priority_class_name: Text = None
    tasks: list[TaskSpec] | None = None
    policies: list[Policy] | None = None
    plugins: dict[str, list[str] | None] | None = None
    volumes: list[Volume] | None = None
    network_topology: NetworkTopology | None = None


class Job(KubernetesType):
    metadata: Metadata
    spec: JobSpec | None = None
    status: dict[str, Any] | None = None


class Guarantee(KubernetesType):
    resource: Amounts = None


class QueueSpec(KubernetesType):
    weight: Number = None
    capability: Amounts = None
    deserved: Amounts = None
    guarantee: Guarantee | None = None
    reclaimable: bool | None = None
    priority: Number = None
    parent: Text = None
    dequeue_strategy: Text = None
    affinity: dict[str, Any] | None = None


class QueueStatus(KubernetesType):
    state: Text = None
    allocated: Amounts = None


class Queue(KubernetesType):
    metadata: Metadata
    spec: QueueSpec | None = None
    status: QueueStatus | None = None


class SubGroup(KubernetesType):
    name: Text = None
    sub_group_size: Number = None
    min_sub_groups: Number = None
    match_label_keys: list[str] | None = None
    label_selector: LabelSelector | None = None
    network_topology: NetworkTopology | None = None


class PodGroupSpec(KubernetesType):
    min_member: Number = None
    min_task_member: dict[str, Whole] | None = None
    queue: Text = None
    priority_class_name: Text = None
    min_resources: Amounts = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: list[SubGroup] | None = None


class PodGroupStatus(KubernetesType):
    phase: Text = None
    conditions: Anything = None
    running: Number = None
    succeeded: Number = None
    failed: Number = None


class PodGroup(KubernetesType):
    metadata: Metadata
    spec: PodGroupSpec | None = None
    status: PodGroupStatus | None = None


class PriorityClass(KubernetesType):
    metadata: Metadata
    value: Number = None
    global_default: bool | None = None
    preemption_policy: Text = None


class Taint(KubernetesType):
    key: str
    effect: str
    value: Text = None


class NodeSpec(KubernetesType):
    unschedulable: bool | None = None
    taints: list[Taint] | None = None


class NodeStatus(KubernetesType):
    allocatable: Amounts = None
    capacity: Amounts = None
    conditions: Anything = None
    images: Anything = None


class Node(KubernetesType):
    metadata: Metadata
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class WorkloadSpec(KubernetesType):
    replicas: Number = None
    selector: LabelSelector | None = None
    template: Template | None = None


class Workload(KubernetesType):
    metadata: Metadata
    spec: WorkloadSpec | None = None
    status: dict[str, Any] | None = None


SHAPES: Final[dict[str, type[KubernetesType]]] = {
    "Pod": Pod,
    "Node": Node,
    "Job": Job,
    "Queue": Queue,
    "PodGroup": PodGroup,
    "PriorityClass": PriorityClass,
    "Deployment": Workload,
    "ReplicaSet": Workload,
    "CustomResourceDefinition": Definition,
    "LimitRange": LimitRange,
    **CLUSTER_SHAPES,
    **MADE_SHAPES,
}

_PLACE: Final = re.compile(r"(.*?)(?: - at `(?:key in )?\$\.?(.*)`)?", re.DOTALL)


def shape_problems(kind: str, obj: dict[str, Any]) -> list[Cause]:
    """The first field of the wrong type, as a cause, or nothing."""
    try:
        msgspec.convert(obj, SHAPES.get(kind, Bare))
    except msgspec.ValidationError as error:
        match = _PLACE.fullmatch(str(error))
        problem, place = (match[1], match[2] or "") if match else (str(error), "")
        return [Cause(place or "metadata", "FieldValueTypeInvalid", f"Invalid value: {in_words(problem, place, obj)}")]
    return []


def status_problems(kind: str, status: Any) -> list[Cause]:
    """`shape_problems` of an object's status alone."""
    return shape_problems(kind, {"metadata": {}, "spec": {}, "status": status})
