"""Types of fields: an object whose JSON types are wrong would break every reader of its kind, so it is refused.

Fields that are not listed may hold anything; all may be left out or null unless they have no default here.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from pumice.cluster.api.admission.shapes.cluster_shapes import CLUSTER_SHAPES
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
from pumice.cluster.api.refusals import Cause

# --- Field types of the kinds that make pods: see `pumice.cluster.api.admission.shapes.kind_shapes`.


class BatchJobSpec(KubernetesType):
    """Of a Job of batch/v1."""

    parallelism: Number = None
    completions: Number = None
    backoff_limit: Number = None
    backoff_limit_per_index: Number = None
    max_failed_indexes: Number = None
    ttl_seconds_after_finished: Number = None
    active_deadline_seconds: Long = None
    completion_mode: Text = None
    pod_replacement_policy: Text = None
    managed_by: Text = None
    suspend: bool | None = None
    manual_selector: bool | None = None
    selector: LabelSelector | None = None
    template: Template | None = None
    pod_failure_policy: dict[str, Any] | None = None
    success_policy: dict[str, Any] | None = None


class BatchJobStatus(KubernetesType):
    """What its controller reads again."""

    active: Number = None
    ready: Number = None
    succeeded: Number = None
    failed: Number = None
    terminating: Number = None
    completed_indexes: Text = None
    failed_indexes: Text = None
    start_time: Text = None
    conditions: Anything = None


class BatchJob(KubernetesType):
    """A Job of batch/v1."""

    metadata: Metadata
    spec: BatchJobSpec | None = None
    status: BatchJobStatus | None = None


class JobTemplate(KubernetesType):
    """Of a CronJob of Kubernetes."""

    metadata: Metadata | None = None
    spec: BatchJobSpec | None = None


class VolcanoJobTemplate(KubernetesType):
    """Of a CronJob of Volcano; its Jobs are looked at when they are made."""

    metadata: Metadata | None = None
    spec: dict[str, Any] | None = None


class CronSpec(KubernetesType):
    """When, and how many at a time."""

    schedule: Text = None
    time_zone: Text = None
    starting_deadline_seconds: Long = None
    concurrency_policy: Text = None
    suspend: bool | None = None
    successful_jobs_history_limit: Number = None
    failed_jobs_history_limit: Number = None


class CronJobSpec(CronSpec):
    """Of Kubernetes."""

    job_template: JobTemplate | None = None


class VolcanoCronSpec(CronSpec):
    """Of Volcano."""

    job_template: VolcanoJobTemplate | None = None


class CronStatus(KubernetesType):
    """What its controller reads again."""

    active: Anything = None
    last_schedule_time: Text = None
    last_successful_time: Text = None


class BatchCronJob(KubernetesType):
    """A CronJob of Kubernetes."""

    metadata: Metadata
    spec: CronJobSpec | None = None
    status: CronStatus | None = None


class VolcanoCronJob(KubernetesType):
    """A CronJob of Volcano."""

    metadata: Metadata
    spec: VolcanoCronSpec | None = None
    status: CronStatus | None = None


class SetStrategy(KubernetesType):
    """How pods go over to another template."""

    type: Text = None
    rolling_update: dict[str, Any] | None = None


class ClaimTemplate(KubernetesType):
    """Of a claim that a pod brings along."""

    metadata: Metadata | None = None
    spec: dict[str, Any] | None = None
    status: dict[str, Any] | None = None


class FirstOrdinal(KubernetesType):
    """Where a StatefulSet begins to count."""

    start: Number = None


class ClaimRetention(KubernetesType):
    """What becomes of claims."""

    when_deleted: Text = None
    when_scaled: Text = None


class SetSpec(KubernetesType):
    """Of StatefulSets and DaemonSets."""

    replicas: Number = None
    selector: LabelSelector | None = None
    template: Template | None = None
    min_ready_seconds: Number = None
    revision_history_limit: Number = None
    update_strategy: SetStrategy | None = None
    service_name: Text = None
    pod_management_policy: Text = None
    ordinals: FirstOrdinal | None = None
    persistent_volume_claim_retention_policy: ClaimRetention | None = None
    volume_claim_templates: list[ClaimTemplate] | None = None


class SetOfPods(KubernetesType):
    """A StatefulSet or a DaemonSet."""

    metadata: Metadata
    spec: SetSpec | None = None
    status: dict[str, Any] | None = None


class ReplicationSpec(KubernetesType):
    """Of a ReplicationController."""

    replicas: Number = None
    selector: dict[str, str] | None = None
    template: Template | None = None
    min_ready_seconds: Number = None


class ReplicationController(KubernetesType):
    """A ReplicationController."""

    metadata: Metadata
    spec: ReplicationSpec | None = None
    status: dict[str, Any] | None = None


class RememberedTemplate(KubernetesType):
    """A ControllerRevision."""

    metadata: Metadata
    data: dict[str, Any] | None = None
    revision: Long = None


class FlowTargets(KubernetesType):
    """What a flow waits for."""

    targets: list[str] | None = None


class OneFlow(KubernetesType):
    """A template, and when its turn is."""

    name: Text = None
    depends_on: FlowTargets | None = None


class FlowSpec(KubernetesType):
    """Of a JobFlow."""

    flows: list[OneFlow] | None = None
    job_retain_policy: Text = None


class FlowState(KubernetesType):
    """Where it stands."""

    phase: Text = None


class FlowStatus(KubernetesType):
    """What its controller reads again."""

    state: FlowState | None = None
    job_status_list: Anything = None


class JobFlow(KubernetesType):
    """A JobFlow."""

    metadata: Metadata
    spec: FlowSpec | None = None
    status: FlowStatus | None = None


class FlowTemplate(KubernetesType):
    """A JobTemplate; its Jobs are looked at when they are made."""

    metadata: Metadata
    spec: dict[str, Any] | None = None
    status: dict[str, Any] | None = None


MADE_SHAPES: dict[str, type[KubernetesType]] = {
    "ControllerRevision": RememberedTemplate,
    "CronJob": VolcanoCronJob,
    "CronJob.batch": BatchCronJob,
    "DaemonSet": SetOfPods,
    "Job.batch": BatchJob,
    "JobFlow": JobFlow,
    "JobTemplate": FlowTemplate,
    "ReplicationController": ReplicationController,
    "StatefulSet": SetOfPods,
}


# ---

# --- What is wrong with the type of a field, in the words of those who write manifests.

NAMES: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}
LONGEST: Final = 40
"""So much of a text is shown."""
MOST_DIGITS: Final = 18
"""So many fit into 64 bits, whatever they are."""
_EXPECTED: Final = re.compile(r"Expected `([a-z]+)(?: \| null)?`((?: [<>]=? \S+)?)(?:, got `[a-z]+`)?")
_STEP: Final = re.compile(r"([^.\[\]]+)|\[(\d+|\.\.\.)\]")


def in_words(problem: str, place: str, obj: Any) -> str:
    """What msgspec says of the value at `place` ("spec.tasks[0].replicas"): what was expected, and what was there."""
    match = _EXPECTED.fullmatch(problem)
    if match is None:
        return problem.replace("`", "")
    expected = f"expected {NAMES.get(match[1], match[1])}{match[2]}"
    try:
        return f"{expected}, was {_described(_at(place, obj))}"
    except LookupError:  # of a key's value only the mapping is known
        return expected


def _at(place: str, obj: Any) -> Any:
    for key, number in _STEP.findall(place):
        if number == "...":
            raise LookupError(place)
        obj = obj[int(number)] if number else obj[key]
    return obj


def _described(value: object) -> str:
    if isinstance(value, float) and abs(value) >= 2**63:
        return "a number of more than 64 bits"
    if isinstance(value, str):
        bare = value.lstrip("+-")
        long = bare.isdigit() and len(bare) > MOST_DIGITS
        return "a number of more than 64 bits" if long else repr(value[:LONGEST]) + "…" * (len(value) > LONGEST)
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool) or value is None:
        return {"True": "true", "False": "false"}.get(str(value), "null")
    return str(value)


# ---

# --- Field types of CustomResourceDefinitions; their schemas are checked in
# `pumice.cluster.api.definitions.structure`.

Mapping = dict[str, Any] | None
Names = list[str] | None


class DefinitionNames(KubernetesType):
    """How the kind and its resource are called."""

    plural: Text = None
    singular: Text = None
    kind: Text = None
    list_kind: Text = None
    short_names: Names = None
    categories: Names = None


class ScalePaths(KubernetesType):
    """Where the numbers of the scale subresource stand."""

    spec_replicas_path: Text = None
    status_replicas_path: Text = None
    label_selector_path: Text = None


class Subresources(KubernetesType):
    """Which there are."""

    status: Mapping = None
    scale: ScalePaths | None = None


class VersionSchema(KubernetesType):
    """What objects of a version look like."""

    open_api_v3_schema: Mapping = msgspec.field(default=None, name="openAPIV3Schema")


class PrinterColumn(KubernetesType):
    """A column of kubectl's table."""

    name: str
    type: str
    json_path: str = msgspec.field(name="jsonPath")
    format: Text = None
    description: Text = None
    priority: Number = None


class DefinitionVersion(KubernetesType):
    """One version of the kind."""

    name: str
    served: bool = False
    storage: bool = False
    schema: VersionSchema | None = None
    subresources: Subresources | None = None
    additional_printer_columns: list[PrinterColumn] | None = None


class DefinitionSpec(KubernetesType):
    """What is defined."""

    group: Text = None
    scope: Text = None
    names: DefinitionNames | None = None
    versions: list[DefinitionVersion] | None = None
    conversion: Mapping = None
    preserve_unknown_fields: bool | None = None


class Definition(KubernetesType):
    """A CustomResourceDefinition."""

    metadata: Metadata
    spec: DefinitionSpec
    status: Mapping = None


# ---

# --- Field types of LimitRanges; see `pumice.cluster.api.admission.shapes.kind_shapes`.


class LimitItem(KubernetesType):
    """The limits of one sort of thing."""

    type: Text = None
    max: Amounts = None
    min: Amounts = None
    default: Amounts = None
    default_request: Amounts = None
    max_limit_request_ratio: Amounts = None


class LimitSpec(KubernetesType):
    """All of them."""

    limits: list[LimitItem] | None = None


class LimitRange(KubernetesType):
    """A LimitRange."""

    metadata: Metadata
    spec: LimitSpec | None = None


# ---


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
