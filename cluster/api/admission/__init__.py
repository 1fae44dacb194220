# SPDX-License-Identifier: Apache-2.0
"""Admission: the requirements on a new or changed object before it is stored, one module a kind, one table.

A kind without a row is stored as it is, once its shape, name and labels are right.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pumice.cluster.api.admission import (
    admission_policies,
    aggregated,
    batch_jobs,
    certificate_requests,
    cron_jobs,
    definitions,
    device_selectors,
    disruption_budgets,
    hyper_nodes,
    job_flows,
    jobs,
    limit_ranges,
    namespaces,
    nodes,
    pod_groups,
    pods,
    priority_classes,
    queues,
    roles,
    secrets,
    services,
    sets,
    webhook_configurations,
    workloads,
)
from pumice.cluster.api.admission.amounts import STATED
from pumice.cluster.api.admission.rules import Admission, Lookup

__all__ = ["ADMISSION", "Admission", "Lookup", "admission_of"]

ADMISSION: Final[dict[str, Admission]] = {
    "APIService": Admission(
        default=aggregated.default,
        validate=aggregated.validate,
        validate_update=aggregated.validate_update,
        settle=aggregated.settle,
    ),
    "CertificateSigningRequest": Admission(
        initial_status=certificate_requests.initial_status,
        default=certificate_requests.default,
        validate=certificate_requests.validate,
        validate_update=certificate_requests.validate_update,
    ),
    "CustomResourceDefinition": Admission(
        default=definitions.default,
        validate=definitions.validate,
        # a wrong definition would mislead all who read objects of its kind, so a loaded one is refused as well
        indispensable=definitions.validate,
        validate_update=definitions.validate_update,
        settle=definitions.settle,
    ),
    "DeviceClass": Admission(validate=device_selectors.validate_class, validate_update=device_selectors.update_class),
    "ResourceClaim": Admission(validate=device_selectors.validate_claim),
    "ResourceClaimTemplate": Admission(validate=device_selectors.validate_template),
    "HyperNode": Admission(
        validate=hyper_nodes.validate,
        validate_update=hyper_nodes.validate_update,
        webhook="validatehypernode.volcano.sh",
    ),
    "Job": Admission(
        default=jobs.default,
        validate=jobs.validate,
        validate_update=jobs.validate_update,
        webhook="validatejob.volcano.sh",
    ),
    "CronJob": Admission(
        default=cron_jobs.default,
        validate=cron_jobs.validate_volcano,
        validate_update=cron_jobs.validate_volcano_update,
        webhook="validatecronjob.volcano.sh",
    ),
    "CronJob.batch": Admission(
        default=cron_jobs.default, validate=cron_jobs.validate, validate_update=cron_jobs.validate_update
    ),
    "Job.batch": Admission(
        default=batch_jobs.default,
        validate=batch_jobs.validate,
        validate_update=batch_jobs.validate_update,
        settle=batch_jobs.settle,
    ),
    "JobFlow": Admission(
        default=job_flows.default,
        validate=job_flows.validate,
        validate_update=job_flows.validate_update,
        webhook="validatejobflow.volcano.sh",
    ),
    "LimitRange": Admission(
        default=limit_ranges.default,
        validate=limit_ranges.validate,
        validate_update=limit_ranges.validate_update,
    ),
    "Namespace": Admission(
        initial_status=namespaces.initial_status,
        default=namespaces.default,
        validate=namespaces.validate,
        validate_update=namespaces.validate_update,
        forbid_delete=namespaces.forbid_delete,
    ),
    "Node": Admission(default=nodes.default, validate=nodes.validate, validate_update=nodes.validate_update),
    "Pod": Admission(
        initial_status=pods.initial_status,
        default=pods.default,
        fill_loaded=pods.fill_loaded,
        forbid=pods.forbid,
        validate=pods.validate,
        validate_update=pods.validate_update,
    ),
    "PodGroup": Admission(
        default=pod_groups.default,
        validate=pod_groups.validate,
        webhook="validatepodgroup.volcano.sh",
    ),
    "PodDisruptionBudget": Admission(
        validate=disruption_budgets.validate, validate_update=disruption_budgets.validate_update
    ),
    "PriorityClass": Admission(
        validate=priority_classes.validate,
        validate_update=priority_classes.validate_update,
    ),
    "Queue": Admission(
        initial_status=queues.initial_status,
        default=queues.default,
        validate=queues.validate,
        validate_update=queues.validate_update,
        forbid_delete=queues.forbid_delete,
        webhook="validatequeue.volcano.sh",
    ),
    "Secret": Admission(default=secrets.default, validate=secrets.validate, validate_update=secrets.validate_update),
    "Service": Admission(
        default=services.default, validate=services.validate, validate_update=services.validate_update
    ),
    "Deployment": Admission(
        default=workloads.default_deployment, validate=workloads.validate, validate_update=workloads.update_deployment
    ),
    "DaemonSet": Admission(
        default=sets.default_daemon_set, validate=sets.validate_daemon_set, validate_update=sets.update_daemon_set
    ),
    "ReplicationController": Admission(
        default=sets.default_replication_controller,
        validate=sets.validate_replication_controller,
        validate_update=sets.update_replication_controller,
    ),
    "StatefulSet": Admission(
        default=sets.default_stateful_set,
        validate=sets.validate_stateful_set,
        validate_update=sets.update_stateful_set,
    ),
    "ReplicaSet": Admission(
        default=workloads.default, validate=workloads.validate, validate_update=workloads.validate_update
    ),
    "ValidatingAdmissionPolicy": Admission(
        default=admission_policies.default,
        validate=admission_policies.validate,
        validate_update=admission_policies.validate_update,
    ),
    "ValidatingAdmissionPolicyBinding": Admission(
        default=admission_policies.default_binding,
        validate=admission_policies.validate_binding,
        validate_update=admission_policies.validate_binding_update,
    ),
    **dict.fromkeys(
        ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
        Admission(
            default=webhook_configurations.default,
            validate=webhook_configurations.validate,
            validate_update=webhook_configurations.validate_update,
        ),
    ),
    **dict.fromkeys(
        ("ClusterRole", "Role"),
        Admission(validate=roles.validate_role, validate_update=roles.validate_role_update),
    ),
    **dict.fromkeys(
        ("ClusterRoleBinding", "RoleBinding"),
        Admission(
            default=roles.default_binding,
            validate=roles.validate_binding,
            validate_update=roles.validate_binding_update,
        ),
    ),
    **STATED,
    "PersistentVolumeClaim": replace(STATED["PersistentVolumeClaim"], forbid=limit_ranges.claim_problem),
}

_NONE: Final = Admission()


def admission_of(kind: str) -> Admission:
    """Return the rules of a kind, by its key; none for a kind without a row."""
    return ADMISSION.get(kind, _NONE)
