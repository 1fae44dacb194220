# SPDX-License-Identifier: Apache-2.0
"""Printed columns by the kind's key: one table.

A column is its name, how its cell is read (the path of a field, or a cell of `words` or `cells`), and its description.
Volcano's kinds, and those that are not here, are printed as their definitions say (additionalPrinterColumns). Those
here are Kubernetes' own: its columns are functions in Go (`pkg/printers/internalversion/printers.go`), which no schema
describes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from pumice.actors.gateway.columns import cells
from pumice.actors.gateway.columns.json_path import Effort, JsonPathError, find
from pumice.actors.gateway.columns.table import Printer, TableColumn, column, flag, joined, number, text, together
from pumice.actors.gateway.columns.words import (
    NONE,
    UNKNOWN,
    UNSET,
    access_modes,
    age,
    amount,
    at,
    counted,
    filled,
    human_duration,
    labels,
    length,
    name_of,
    or_none,
    quantity,
    ratio,
    selector,
    since,
    unset,
)
from pumice.cluster.api.kinds import KINDS
from pumice.core.objects.metadata import Object

# --- Kinds that say themselves how they are printed

_CREATED: Final = ".metadata.creationTimestamp"
_NAME: Final = text("Name", name_of, "The object's name, unique in its namespace.", form="name")


def custom_printer(columns: Sequence[Object] | None) -> Printer:
    """Return a printer of the name, then the columns of a definition (`name`, `type`, `jsonPath`, `priority` ...) in
    their order.
    """
    # A definition without columns is printed with name and age (apiextensions' serveDefaultColumnsIfEmpty).
    wanted = list(columns or ({"name": "Age", "type": "date", "jsonPath": _CREATED},))
    paths = [(str(one.get("type", "")), str(one.get("jsonPath", ""))) for one in wanted]

    def read(obj: Object, now: float) -> list[Any]:
        # One budget a row: a budget a column would let a definition multiply it by its columns.
        effort = Effort()
        return [_cell(of, path, obj, now, effort) for of, path in paths]

    return joined(_NAME, Printer(tuple(map(_column, wanted)), read))


def _column(given: Object) -> TableColumn:
    return TableColumn(
        str(given.get("name", "")),
        str(given.get("type", "")),
        str(given.get("format") or ""),
        str(given.get("description") or f"What is at {given.get('jsonPath', '')}."),
        int(given.get("priority") or 0),
    )


def _cell(column_type: str, path: str, obj: Object, now: float, effort: Effort) -> Any:
    """Return the first result in the column's type; null without one, or for another type."""
    try:
        found = find(path, obj, effort)
    except JsonPathError:
        return None
    if not found or found[0] is None:
        # Go's templates print a null so, and only columns of strings are printed that way.
        return "<no value>" if found and column_type == "string" else None
    value = found[0]
    match column_type:
        case "string":
            return value if isinstance(value, str) else msgspec.json.encode(value, order="sorted").decode()
        case "integer":
            return int(value) if _numeric(value) else None
        case "number":
            return float(value) if _numeric(value) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return since(value, now) if isinstance(value, str) else None
        case _:
            return None


def _numeric(value: object) -> bool:
    # In Python a boolean is an integer; in JSON it is not a number.
    return isinstance(value, int | float) and not isinstance(value, bool)


def _custom(*given: tuple[str, str, str] | tuple[str, str, str, int]) -> Printer:
    return custom_printer([dict(zip(("name", "type", "jsonPath", "priority"), one, strict=False)) for one in given])


# --- Columns that kinds share

_AGE: Final = text("Age", age, "Time since the object was created.")
_AGED: Final = joined(_NAME, _AGE)
# These kinds show the moment itself, as printRole does, where most kinds show an age.
_MADE: Final = joined(
    _NAME, column(TableColumn("Created At", "date", "", "When it was created."), at("metadata.creationTimestamp"))
)
_CONTAINERS: Final = (
    ("Containers", "Names of the template's containers."),
    ("Images", "Images of the template's containers."),
)
_LABELS_CHOSEN: Final = "Which pods belong to it, by label."
_READY: Final = text(
    "Ready", ratio("status.readyReplicas", "spec.replicas", 1), "Pods that are ready, of those wanted."
)
_REPLICAS: Final = joined(
    _NAME,
    number("Desired", counted("spec.replicas", 1), "Pods wanted."),
    number("Current", "status.replicas", "Pods there."),
    number("Ready", "status.readyReplicas", "Pods that are ready."),
    _AGE,
)
_WEBHOOKS: Final = joined(_NAME, number("Webhooks", length("webhooks"), "How many webhooks it has."), _AGE)
_CLASS: Final = text("StorageClass", cells.storage_class, "Its class.")
_VOLUME_MODE: Final = text("VolumeMode", unset("spec.volumeMode"), "Filesystem or Block.", wide=True)
_BINDING: Final = joined(
    _NAME,
    text("Role", cells.role, "The role given."),
    _AGE,
    together(
        cells.subjects,
        ("Users", "To which users."),
        ("Groups", "To which groups."),
        ("ServiceAccounts", "To which service accounts."),
        wide=True,
    ),
)
_USAGE: Final = joined(
    _NAME,
    together(cells.usage, ("cpu", "Processor time used."), ("memory", "Memory used.")),
    text("Window", "window", "Over which time."),
)


def _selector(path: str = "spec.selector", empty: str = NONE) -> Printer:
    return text("Selector", selector(path, empty), _LABELS_CHOSEN, wide=True)


def _containers(path: str = "spec") -> Printer:
    return together(cells.containers(path), *_CONTAINERS, wide=True)


def _template(path: str = "spec") -> Printer:
    return joined(_containers(path), _selector(f"{path}.selector"))


PRINTERS: Final[dict[str, Printer]] = {
    "Pod": joined(
        _NAME,
        together(
            cells.ready_status_restarts,
            ("Ready", "Containers that are ready, of all."),
            ("Status", "What the containers say, in one word."),
            ("Restarts", "How often containers were restarted, and when last."),
        ),
        _AGE,
        text("IP", cells.pod_address, "The pod's address.", wide=True),
        text("Node", at("spec.nodeName", or_none), "The node that the pod is bound to.", wide=True),
        text(
            "Nominated Node",
            at("status.nominatedNodeName", or_none),
            "The node on which room is being made for the pod.",
            wide=True,
        ),
        text("Readiness Gates", cells.readiness_gates, "Readiness gates that hold, of all.", wide=True),
        conditions=cells.pod_conditions,
    ),
    "Node": joined(
        _NAME,
        text("Status", cells.node_state, "Whether the node is ready, and whether pods may be bound to it."),
        text("Roles", cells.node_roles, "Roles given by labels."),
        _AGE,
        text("Version", "status.nodeInfo.kubeletVersion", "The kubelet's version."),
        text("Internal-IP", cells.node_address("InternalIP"), "The first address inside the cluster.", wide=True),
        text("External-IP", cells.node_address("ExternalIP"), "The first address outside the cluster.", wide=True),
        text("OS-Image", filled("status.nodeInfo.osImage", UNKNOWN), "The operating system.", wide=True),
        text("Kernel-Version", filled("status.nodeInfo.kernelVersion", UNKNOWN), "The kernel.", wide=True),
        text(
            "Container-Runtime",
            filled("status.nodeInfo.containerRuntimeVersion", UNKNOWN),
            "The container runtime and its version.",
            wide=True,
        ),
    ),
    "Namespace": joined(_NAME, text("Status", "status.phase", "Active or Terminating."), _AGE),
    # In Kubernetes' order, unlike other kinds: the name comes last, and with `-o wide` only.
    "Event": joined(
        text("Last Seen", cells.last_seen, "Time since it was last seen."),
        text("Type", "type", "Normal or Warning."),
        text("Reason", "reason", "Why, in one word."),
        text("Object", cells.event_object, "What it is about."),
        text("Subobject", "involvedObject.fieldPath", "The part of the object that it is about.", wide=True),
        text("Source", cells.event_source, "Who says so.", wide=True),
        text("Message", at("message", lambda value: str(value or "").strip()), "What happened."),
        text("First Seen", cells.first_seen, "Time since it was first seen.", wide=True),
        text("Count", cells.times_seen, "How often it was seen.", wide=True),
        text("Name", name_of, "The event's own name.", wide=True, form="name"),
    ),
    "Service": joined(
        _NAME,
        text("Type", at("spec.type", lambda value: str(value or "ClusterIP")), "How it is reached."),
        text("Cluster-IP", cells.cluster_address, "Its address inside the cluster."),
        text("External-IP", cells.external_address, "Its addresses outside the cluster."),
        text("Port(s)", cells.service_ports, "The ports it listens on."),
        _AGE,
        text("Selector", labels("spec.selector"), _LABELS_CHOSEN, wide=True),
    ),
    "Endpoints": joined(_NAME, text("Endpoints", cells.endpoints, "Addresses behind a service."), _AGE),
    "EndpointSlice": joined(
        _NAME,
        text("AddressType", "addressType", "IPv4, IPv6 or FQDN."),
        text("Ports", cells.slice_ports, "The ports of every endpoint."),
        text("Endpoints", cells.slice_addresses, "Addresses behind a service."),
        _AGE,
    ),
    "NetworkPolicy": joined(_NAME, text("Pod-Selector", selector("spec.podSelector"), "The pods it holds for."), _AGE),
    "ConfigMap": joined(_NAME, text("Data", cells.keys, "How many keys it has."), _AGE),
    "Secret": joined(
        _NAME,
        text("Type", filled("type", "Opaque"), "What it is for."),
        text("Data", length("data"), "How many keys it has."),
        _AGE,
    ),
    "ServiceAccount": _AGED,
    "LimitRange": _MADE,
    "CustomResourceDefinition": _MADE,
    "Role": _MADE,
    "ClusterRole": _MADE,
    "RoleBinding": _BINDING,
    "ClusterRoleBinding": _BINDING,
    "ControllerRevision": joined(
        _NAME,
        text("Controller", cells.controller, "Whose revision it is."),
        text("Revision", counted("revision"), "Its number."),
        _AGE,
    ),
    "Scale": joined(
        text("Name", name_of),
        number("Desired", "spec.replicas", "Pods wanted."),
        number("Available", "status.replicas", "Pods there."),
        _AGE,
    ),
    "Status": joined(text("Status", "status"), text("Reason", "reason"), text("Message", "message")),
    "NodeMetrics": _USAGE,
    "PodMetrics": _USAGE,
    "ReplicationController": joined(
        _REPLICAS, _containers(), text("Selector", labels("spec.selector"), _LABELS_CHOSEN, wide=True)
    ),
    "Deployment": joined(
        _NAME,
        _READY,
        # Numbers in columns of strings: Kubernetes declares these two so for Deployments.
        text("Up-to-date", counted("status.updatedReplicas"), "Pods of the newest template."),
        text("Available", counted("status.availableReplicas"), "Pods that have been ready for long enough."),
        _AGE,
        _containers(),
        # printDeployment leaves an empty selector empty; printReplicaSet writes `<none>`.
        _selector(empty=""),
    ),
    "ReplicaSet": joined(_REPLICAS, _template()),
    "StatefulSet": joined(_NAME, _READY, _AGE, _containers()),
    "DaemonSet": joined(
        _NAME,
        number("Desired", "status.desiredNumberScheduled", "Nodes that should run a pod of it."),
        number("Current", "status.currentNumberScheduled", "Nodes that do."),
        number("Ready", "status.numberReady", "Nodes whose pod is ready."),
        number("Up-to-date", "status.updatedNumberScheduled", "Nodes whose pod is of the newest template."),
        number("Available", "status.numberAvailable", "Nodes whose pod has been ready for long enough."),
        text("Node Selector", labels("spec.template.spec.nodeSelector"), "Which nodes."),
        _AGE,
        _template(),
    ),
    "Job.batch": joined(
        _NAME,
        text("Status", cells.job_state, "The job's state."),
        text("Completions", cells.completions, "Pods that have succeeded, of those wanted."),
        text("Duration", cells.job_duration, "How long it took, or has taken so far."),
        _AGE,
        _template(),
    ),
    "CronJob.batch": joined(
        _NAME,
        text("Schedule", "spec.schedule", "When, in cron's format."),
        text("Timezone", filled("spec.timeZone", NONE), "Whose clock the schedule follows."),
        text(
            "Suspend",
            at("spec.suspend", lambda value: UNSET if value is None else str(bool(value))),
            "Whether it is held.",
        ),
        number("Active", length("status.active"), "Jobs of it that run."),
        text("Last Schedule", cells.last_schedule, "Time since the last job was made."),
        _AGE,
        _template("spec.jobTemplate.spec"),
    ),
    "HorizontalPodAutoscaler": joined(
        _NAME,
        text("Reference", cells.scaled, "What it scales."),
        text("Targets", cells.metrics, "Each metric: current/target."),
        text("MinPods", unset("spec.minReplicas"), "The fewest pods."),
        text("MaxPods", counted("spec.maxReplicas"), "The most pods."),
        text("Replicas", counted("status.currentReplicas"), "Pods there."),
        _AGE,
    ),
    "PersistentVolume": joined(
        _NAME,
        text("Capacity", amount("spec.capacity.storage"), "Its size."),
        text("Access Modes", at("spec.accessModes", access_modes), "How it may be mounted."),
        text("Reclaim Policy", "spec.persistentVolumeReclaimPolicy", "What becomes of it after its claim."),
        text("Status", cells.phase, "Its phase."),
        text("Claim", cells.bound_claim, "The claim it is bound to."),
        _CLASS,
        text("VolumeAttributesClass", unset("spec.volumeAttributesClassName"), "The class of its attributes."),
        text("Reason", "status.reason", "Why it is in this phase."),
        _AGE,
        _VOLUME_MODE,
    ),
    "PersistentVolumeClaim": joined(
        _NAME,
        text("Status", cells.phase, "Its phase."),
        together(
            cells.bound_volume,
            ("Volume", "The volume it is bound to."),
            ("Capacity", "The volume's size."),
            ("Access Modes", "How the volume may be mounted."),
        ),
        _CLASS,
        text(
            "VolumeAttributesClass",
            unset("spec.volumeAttributesClassName"),
            "The class of the volume's attributes.",
        ),
        _AGE,
        _VOLUME_MODE,
    ),
    "StorageClass": joined(
        text("Name", cells.name_and_default, "The object's name, unique in its namespace.", form="name"),
        text("Provisioner", "provisioner", "Who makes the volumes."),
        text("ReclaimPolicy", filled("reclaimPolicy", "Delete"), "What becomes of a volume after its claim."),
        text(
            "VolumeBindingMode",
            filled("volumeBindingMode", "Immediate"),
            "Immediately, or when the first pod is placed.",
        ),
        text("AllowVolumeExpansion", at("allowVolumeExpansion", bool), "Whether a claim may grow."),
        _AGE,
    ),
    "VolumeAttachment": joined(
        _NAME,
        text("Attacher", "spec.attacher", "The driver.", form="name"),
        text("PV", "spec.source.persistentVolumeName", "The volume."),
        text("Node", "spec.nodeName", "Where it is to be attached."),
        flag("Attached", "status.attached", "Whether it is."),
        _AGE,
    ),
    "CSINode": joined(_NAME, number("Drivers", length("spec.drivers"), "Storage drivers on the node."), _AGE),
    "CSIDriver": joined(
        _NAME,
        flag(
            "AttachRequired",
            "spec.attachRequired",
            "Whether its volumes are attached before they are mounted.",
            absent=True,
        ),
        flag("PodInfoOnMount", "spec.podInfoOnMount", "Whether it is told about the pod."),
        flag("StorageCapacity", "spec.storageCapacity", "Whether it says how much room it has."),
        text("TokenRequests", cells.audiences, "For whom it wants tokens."),
        flag("RequiresRepublish", "spec.requiresRepublish", "Whether it wants to be called again and again."),
        text(
            "Modes",
            at("spec.volumeLifecycleModes", lambda value: ",".join(value or ()) or NONE),
            "Lives of volumes it supports.",
        ),
        _AGE,
    ),
    "CSIStorageCapacity": joined(
        _NAME,
        text("StorageClassName", "storageClassName", "Whose room it is."),
        text("Capacity", at("capacity", lambda value: UNSET if value is None else quantity(value)), "How much."),
    ),
    "PodDisruptionBudget": joined(
        _NAME,
        text("Min Available", unset("spec.minAvailable", "N/A"), "The fewest pods that must be there."),
        text("Max Unavailable", unset("spec.maxUnavailable", "N/A"), "The most pods that may be missing."),
        number("Allowed Disruptions", "status.disruptionsAllowed", "Pods that may be evicted now."),
        _AGE,
    ),
    "ResourceQuota": joined(
        _NAME,
        together(cells.used_of_hard, ("Request", "Requests: used/hard."), ("Limit", "Limits: used/hard.")),
        _AGE,
    ),
    "PriorityClass": joined(
        _NAME,
        number("Value", "value", "The priority of its pods."),
        flag("Global-Default", "globalDefault", "Whether pods without a class get this one."),
        _AGE,
        text("PreemptionPolicy", "preemptionPolicy", "Whether its pods may preempt others."),
    ),
    "Lease": joined(_NAME, text("Holder", "spec.holderIdentity", "Who holds it."), _AGE),
    "CertificateSigningRequest": joined(
        _NAME,
        _AGE,
        text("SignerName", filled("spec.signerName", NONE), "Who is asked to sign."),
        text("Requestor", "spec.username", "Who asks."),
        text(
            "RequestedDuration",
            at("spec.expirationSeconds", lambda value: NONE if value is None else human_duration(float(value))),
            "How long the certificate is to be good.",
        ),
        text("Condition", cells.request_condition, "What has been decided, and what has come of it."),
    ),
    "ResourceClaim": joined(_NAME, text("State", cells.claim_state, "pending, allocated, reserved."), _AGE),
    "ResourceClaimTemplate": _AGED,
    "ResourceSlice": joined(
        _NAME,
        text("Node", "spec.nodeName", "Whose devices they are."),
        text("Driver", "spec.driver", "Who manages them."),
        text("Pool", "spec.pool.name", "The pool they are of."),
        _AGE,
    ),
    "DeviceClass": _AGED,
    "PodTemplate": joined(
        _NAME,
        together(cells.containers(""), *_CONTAINERS),
        text("Pod Labels", labels("template.metadata.labels"), "Labels of the pods made from it."),
    ),
    "Ingress": joined(
        _NAME,
        text("Class", filled("spec.ingressClassName", NONE), "Whose configuration it follows."),
        text("Hosts", cells.hosts, "The hosts that its rules are for."),
        text("Address", lambda obj, _now: ",".join(cells.load_balancers(obj)), "Where it is reached."),
        text("Ports", at("spec.tls", lambda value: "80, 443" if value else "80"), "443 too when it has certificates."),
        _AGE,
    ),
    "IngressClass": joined(
        _NAME,
        text("Controller", "spec.controller", "Who serves ingresses of this class."),
        text("Parameters", cells.class_parameters, "Where more of its configuration is."),
        _AGE,
    ),
    "RuntimeClass": joined(_NAME, text("Handler", "handler", "The handler in the container runtime."), _AGE),
    "MutatingWebhookConfiguration": _WEBHOOKS,
    "ValidatingWebhookConfiguration": _WEBHOOKS,
    "ValidatingAdmissionPolicy": joined(
        _NAME,
        number("Validations", length("spec.validations"), "How many rules it has."),
        text("ParamKind", cells.parameter_kind, "The kind of its parameters."),
        _AGE,
    ),
    "ValidatingAdmissionPolicyBinding": joined(
        _NAME,
        text("PolicyName", "spec.policyName", "The policy."),
        text("ParamRef", cells.parameter_reference, "Its parameters."),
        _AGE,
    ),
    "APIService": _custom(
        ("Service", "string", ".spec.service.name"),
        ("Available", "string", '.status.conditions[?(@.type=="Available")].status'),
        ("Age", "date", _CREATED),
    ),
    "FlowSchema": _custom(
        ("PriorityLevel", "string", ".spec.priorityLevelConfiguration.name"),
        ("MatchingPrecedence", "integer", ".spec.matchingPrecedence"),
        ("DistinguisherMethod", "string", ".spec.distinguisherMethod.type"),
        ("Age", "date", _CREATED),
    ),
    "PriorityLevelConfiguration": _custom(
        ("Type", "string", ".spec.type"),
        ("NominalConcurrencyShares", "integer", ".spec.limited.nominalConcurrencyShares"),
        ("Age", "date", _CREATED),
    ),
    **{row.key: custom_printer(msgspec.to_builtins(row.columns)) for row in KINDS.values() if row.columns},
}

_DEFAULT: Final = custom_printer(None)


def printer_of(key: str, columns: Sequence[Object] | None = None) -> Printer:
    """Return the printer of a kind; `columns` are those of its CRD. A kind without either shows its name and age."""
    known = PRINTERS.get(key)
    # Volcano's own kinds are in the table, so a definition of theirs that a client changes does not matter here.
    return known or (custom_printer(columns) if columns else _DEFAULT)
