"""Field types of the kinds that make pods: see `pumice.cluster.api.admission.shapes.kind_shapes`."""

from __future__ import annotations

from typing import Any

from pumice.cluster.api.admission.shapes.pod_shapes import (
    Anything,
    KubernetesType,
    LabelSelector,
    Long,
    Metadata,
    Number,
    Template,
    Text,
)


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
