"""Which kind is printed how, by the kind's key; a further kind is one more line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pumice.actors.gateway.tables import installed, networks, plain, policies, volumes, workloads
from pumice.actors.gateway.tables.autoscalers import AUTOSCALERS
from pumice.actors.gateway.tables.column import Printer
from pumice.actors.gateway.tables.custom import SERVERS, VOLCANO, custom_printer
from pumice.actors.gateway.tables.events import EVENTS
from pumice.actors.gateway.tables.nodes import NAMESPACES, NODES
from pumice.actors.gateway.tables.pods import PODS

PRINTERS: Final[dict[str, Printer]] = {
    "Pod": PODS,
    "Node": NODES,
    "Namespace": NAMESPACES,
    "Event": EVENTS,
    "Service": networks.SERVICES,
    "Endpoints": networks.ENDPOINTS,
    "EndpointSlice": networks.ENDPOINT_SLICES,
    "NetworkPolicy": networks.NETWORK_POLICIES,
    "ConfigMap": plain.CONFIG_MAPS,
    "Secret": plain.SECRETS,
    "ServiceAccount": plain.AGED,
    "LimitRange": plain.CREATED,
    "CustomResourceDefinition": plain.CREATED,
    "Role": plain.CREATED,
    "ClusterRole": plain.CREATED,
    "RoleBinding": plain.BINDINGS,
    "ClusterRoleBinding": plain.BINDINGS,
    "ControllerRevision": plain.REVISIONS,
    "Scale": plain.SCALES,
    "Status": plain.STATUSES,
    "NodeMetrics": plain.USAGES,
    "PodMetrics": plain.USAGES,
    "ReplicationController": workloads.REPLICATION_CONTROLLERS,
    "Deployment": workloads.DEPLOYMENTS,
    "ReplicaSet": workloads.REPLICA_SETS,
    "StatefulSet": workloads.STATEFUL_SETS,
    "DaemonSet": workloads.DAEMON_SETS,
    "Job.batch": workloads.JOBS,
    "CronJob.batch": workloads.CRON_JOBS,
    "HorizontalPodAutoscaler": AUTOSCALERS,
    "PersistentVolume": volumes.VOLUMES,
    "PersistentVolumeClaim": volumes.CLAIMS,
    "StorageClass": volumes.STORAGE_CLASSES,
    "VolumeAttachment": volumes.ATTACHMENTS,
    "CSINode": volumes.CSI_NODES,
    "CSIDriver": volumes.CSI_DRIVERS,
    "CSIStorageCapacity": volumes.CSI_CAPACITIES,
    "PodDisruptionBudget": policies.BUDGETS,
    "ResourceQuota": policies.QUOTAS,
    "PriorityClass": policies.PRIORITY_CLASSES,
    "Lease": policies.LEASES,
    "CertificateSigningRequest": policies.CERTIFICATE_REQUESTS,
    "ResourceClaim": plain.RESOURCE_CLAIMS,
    "ResourceClaimTemplate": plain.AGED,
    "ResourceSlice": plain.RESOURCE_SLICES,
    "DeviceClass": plain.AGED,
    "PodTemplate": installed.POD_TEMPLATES,
    "Ingress": installed.INGRESSES,
    "IngressClass": installed.INGRESS_CLASSES,
    "RuntimeClass": installed.RUNTIME_CLASSES,
    "MutatingWebhookConfiguration": installed.WEBHOOKS,
    "ValidatingWebhookConfiguration": installed.WEBHOOKS,
    "ValidatingAdmissionPolicy": installed.POLICIES,
    "ValidatingAdmissionPolicyBinding": installed.POLICY_BINDINGS,
    **SERVERS,
    **VOLCANO,
}

_DEFAULT: Final = custom_printer(None)


def printer_of(key: str, columns: Sequence[Mapping[str, Any]] | None = None) -> Printer:
    """The printer of a kind; `columns` are a user's CRD's. A kind without either shows its name and age."""
    known = PRINTERS.get(key)
    return known or (custom_printer(columns) if columns else _DEFAULT)
