"""Types of fields: an object whose JSON types are wrong would break every reader of its kind, so it is refused at the door.

Fields that are not listed may hold anything; all may be left out or null unless they have no default here.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import Struct

from actors.api.admission.amounts import Amount
from actors.api.refusals import Cause

Text = str | None
Number = int | None
Texts = dict[str, str] | None
Amounts = dict[str, Amount] | None
Anything = list[dict[str, Any]] | None


class Shape(Struct, rename="camel", gc=False):
    """Fields are named in snake case here and in camel case in the object."""


class OwnerReference(Shape):
    uid: str
    kind: str
    name: str
    api_version: Text = None
    controller: bool | None = None


class Metadata(Shape):
    name: Text = None
    generate_name: Text = None
    namespace: Text = None
    resource_version: Text = None
    uid: Text = None
    labels: Texts = None
    annotations: Texts = None
    finalizers: list[str] | None = None
    owner_references: list[OwnerReference] | None = None


class Any_(Shape):
    """A kind of which only the metadata matters."""

    metadata: Metadata


class Resources(Shape):
    requests: Amounts = None
    limits: Amounts = None


class Port(Shape):
    container_port: Number = None
    host_port: Number = None
    host_ip: Text = msgspec.field(default=None, name="hostIP")
    protocol: Text = None
    name: Text = None


class Container(Shape):
    name: Text = None
    image: Text = None
    resources: Resources | None = None
    ports: list[Port] | None = None
    env: Anything = None
    volume_mounts: Anything = None
    restart_policy: Text = None


class Toleration(Shape):
    key: Text = None
    operator: Text = None
    value: Text = None
    effect: Text = None
    toleration_seconds: Number = None


class Requirement(Shape):
    key: str
    operator: str
    values: list[str] | None = None


class LabelSelector(Shape):
    match_labels: Texts = None
    match_expressions: list[Requirement] | None = None


class NodeTerm(Shape):
    match_expressions: list[Requirement] | None = None
    match_fields: list[Requirement] | None = None


class NodeTerms(Shape):
    node_selector_terms: list[NodeTerm]


class PreferredNodeTerm(Shape):
    weight: int
    preference: NodeTerm


class NodeAffinity(Shape):
    required_during_scheduling_ignored_during_execution: NodeTerms | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredNodeTerm] | None = None


class PodTerm(Shape):
    topology_key: str
    label_selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None
    namespaces: list[str] | None = None


class PreferredPodTerm(Shape):
    weight: int
    pod_affinity_term: PodTerm


class PodAffinity(Shape):
    required_during_scheduling_ignored_during_execution: list[PodTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredPodTerm] | None = None


class Affinity(Shape):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Spread(Shape):
    topology_key: str
    max_skew: int
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    min_domains: Number = None


class Gate(Shape):
    name: str


class PodSpec(Shape):
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    overhead: Amounts = None
    node_name: Text = None
    node_selector: Texts = None
    scheduler_name: Text = None
    priority: Number = None
    priority_class_name: Text = None
    preemption_policy: Text = None
    restart_policy: Text = None
    termination_grace_period_seconds: Number = None
    tolerations: list[Toleration] | None = None
    affinity: Affinity | None = None
    topology_spread_constraints: list[Spread] | None = None
    scheduling_gates: list[Gate] | None = None
    host_network: bool | None = None
    hostname: Text = None
    subdomain: Text = None
    volumes: Anything = None
    resource_claims: Anything = None


class PodStatus(Shape):
    phase: Text = None
    conditions: Anything = None
    nominated_node_name: Text = None
    container_statuses: Anything = None


class Pod(Shape):
    metadata: Metadata
    spec: PodSpec | None = None
    status: PodStatus | None = None


class Template(Shape):
    metadata: Metadata | None = None
    spec: PodSpec | None = None


class Policy(Shape):
    action: Text = None
    event: Text = None
    events: list[str] | None = None
    exit_code: Number = None
    timeout: Text = None


class DependsOn(Shape):
    name: list[str] | None = None
    iteration: Text = None


class NetworkTopology(Shape):
    mode: Text = None
    highest_tier_allowed: Number = None
    highest_tier_name: Text = None


class PartitionPolicy(Shape):
    total_partitions: Number = None
    partition_size: Number = None
    min_partitions: Number = None
    network_topology: NetworkTopology | None = None


class TaskSpec(Shape):
    name: Text = None
    replicas: Number = None
    min_available: Number = None
    max_retry: Number = None
    template: Template | None = None
    policies: list[Policy] | None = None
    depends_on: DependsOn | None = None
    topology_policy: Text = None
    partition_policy: PartitionPolicy | None = None


class Volume(Shape):
    mount_path: Text = None
    volume_claim_name: Text = None
    volume_claim: dict[str, Any] | None = None


class JobSpec(Shape):
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


class Job(Shape):
    metadata: Metadata
    spec: JobSpec | None = None
    status: dict[str, Any] | None = None


class Guarantee(Shape):
    resource: Amounts = None


class QueueSpec(Shape):
    weight: Number = None
    capability: Amounts = None
    deserved: Amounts = None
    guarantee: Guarantee | None = None
    reclaimable: bool | None = None
    priority: Number = None
    parent: Text = None
    dequeue_strategy: Text = None
    affinity: dict[str, Any] | None = None


class QueueStatus(Shape):
    state: Text = None
    allocated: Amounts = None


class Queue(Shape):
    metadata: Metadata
    spec: QueueSpec | None = None
    status: QueueStatus | None = None


class SubGroup(Shape):
    name: Text = None
    sub_group_size: Number = None
    min_sub_groups: Number = None
    match_label_keys: list[str] | None = None
    label_selector: LabelSelector | None = None
    network_topology: NetworkTopology | None = None


class PodGroupSpec(Shape):
    min_member: Number = None
    min_task_member: dict[str, int] | None = None
    queue: Text = None
    priority_class_name: Text = None
    min_resources: Amounts = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: list[SubGroup] | None = None


class PodGroupStatus(Shape):
    phase: Text = None
    conditions: Anything = None
    running: Number = None
    succeeded: Number = None
    failed: Number = None


class PodGroup(Shape):
    metadata: Metadata
    spec: PodGroupSpec | None = None
    status: PodGroupStatus | None = None


class PriorityClass(Shape):
    metadata: Metadata
    value: Number = None
    global_default: bool | None = None
    preemption_policy: Text = None


class Taint(Shape):
    key: str
    effect: str
    value: Text = None


class NodeSpec(Shape):
    unschedulable: bool | None = None
    taints: list[Taint] | None = None


class NodeStatus(Shape):
    allocatable: Amounts = None
    capacity: Amounts = None
    conditions: Anything = None
    images: Anything = None


class Node(Shape):
    metadata: Metadata
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class WorkloadSpec(Shape):
    replicas: Number = None
    selector: LabelSelector | None = None
    template: Template | None = None


class Workload(Shape):
    metadata: Metadata
    spec: WorkloadSpec | None = None
    status: dict[str, Any] | None = None


SHAPES: Final[dict[str, type[Shape]]] = {
    "Pod": Pod,
    "Node": Node,
    "Job": Job,
    "Queue": Queue,
    "PodGroup": PodGroup,
    "PriorityClass": PriorityClass,
    "Deployment": Workload,
    "ReplicaSet": Workload,
}

_PLACE: Final = re.compile(r"(.*?)(?: - at `(?:key in )?\$\.?(.*)`)?", re.DOTALL)


def shape_problems(kind: str, obj: dict[str, Any]) -> list[Cause]:
    """The first field of the wrong type, as a cause, or nothing."""
    try:
        msgspec.convert(obj, SHAPES.get(kind, Any_))
    except msgspec.ValidationError as error:
        match = _PLACE.fullmatch(str(error))
        problem, place = (match[1], match[2]) if match else (str(error), "")
        return [Cause(place or "metadata", "FieldValueTypeInvalid", f"Invalid value: {problem.replace('`', '')}")]
    return []
