"""Which kind is printed how, by the kind's key; a further kind is one more line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from pumice.actors.gateway.tables import installed, networks, plain, policies, volumes, workloads
from pumice.actors.gateway.tables.ages import age, human_duration
from pumice.actors.gateway.tables.column import AGE, NAME, NONE, UNKNOWN, UNSET, Printer, text
from pumice.actors.gateway.tables.custom import SERVERS, VOLCANO, custom_printer
from pumice.actors.gateway.tables.events import EVENTS
from pumice.actors.gateway.tables.words import count, deleted, name_of, or_none, quantity, spec_of, status_of
from pumice.cluster.api.fields import labels_of, rows
from pumice.core.objects.metadata import Object, parse_time, section

# --- Pods as kubectl prints them: what their containers say decides the STATUS column, not the phase alone.

_ENDED: Final = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


class _Tally(Struct):
    """What was counted so far; `last_restart` in seconds since the epoch, 0 for never."""

    reason: str
    ready: int = 0
    restarts: int = 0
    last_restart: float = 0.0

    def add_restarts(self, container: Object) -> None:
        self.restarts += count(container, "restartCount")
        ended = section(section(container, "lastState"), "terminated").get("finishedAt")
        self.last_restart = max(self.last_restart, parse_time(ended))


def _pod_cells(pod: Object, now: float) -> list[Any]:
    spec, status = spec_of(pod), status_of(pod)
    sidecars = {one["name"] for one in rows(spec, "initContainers") if one.get("restartPolicy") == "Always"}
    tally = _tally(spec, status, sidecars)
    restarts = str(tally.restarts)
    if tally.restarts and tally.last_restart:
        restarts += f" ({human_duration(now - tally.last_restart)} ago)"
    total = len(rows(spec, "containers")) + len(sidecars)
    addresses = rows(status, "podIPs")
    return [
        name_of(pod),
        f"{tally.ready}/{total}",
        _leaving(pod, status) or tally.reason,
        restarts,
        age(pod, now),
        or_none(addresses[0].get("ip") if addresses else ""),
        or_none(spec.get("nodeName")),
        or_none(status.get("nominatedNodeName")),
        _readiness_gates(spec, status),
    ]


def _leaving(pod: Object, status: Object) -> str:
    if not deleted(pod):
        return ""
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return "" if status.get("phase") in _ENDED else "Terminating"


def _tally(spec: Object, status: Object, sidecars: set[str]) -> _Tally:
    reason = status.get("reason") or status.get("phase") or ""
    for condition in rows(status, "conditions"):
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    starting, of_sidecars, waits = _init_containers(spec, status, sidecars, reason)
    if waits and not _true(status, "Initialized"):
        return starting
    of_sidecars.reason = starting.reason
    return _main_containers(status, of_sidecars)


def _init_containers(spec: Object, status: Object, sidecars: set[str], reason: str) -> tuple[_Tally, _Tally, bool]:
    """Counts of all init containers, of sidecars alone, and whether the pod still initialises."""
    every, alone = _Tally(reason), _Tally(reason)
    total = len(rows(spec, "initContainers"))
    for place, container in enumerate(rows(status, "initContainerStatuses")):
        every.add_restarts(container)
        sidecar = container.get("name") in sidecars
        if sidecar:
            alone.add_restarts(container)
        ended = section(container, "state").get("terminated")
        if ended is not None and not ended.get("exitCode"):
            continue
        if sidecar and container.get("started"):
            for tally in (every, alone):
                tally.ready += bool(container.get("ready"))
            continue
        every.reason = f"Init:{_why_not_done(container, f'{place}/{total}')}"
        return every, alone, True
    return every, alone, False


def _why_not_done(container: Object, progress: str) -> str:
    state = section(container, "state")
    if state.get("terminated") is not None:
        return _ending(state["terminated"])
    waiting = section(state, "waiting").get("reason") or ""
    return waiting if waiting not in ("", "PodInitializing") else progress


def _ending(ended: Object) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode') or 0}"


def _main_containers(status: Object, tally: _Tally) -> _Tally:
    running, failed = False, ""
    for container in reversed(rows(status, "containerStatuses")):
        tally.add_restarts(container)
        state = section(container, "state")
        ended, waiting = state.get("terminated"), section(state, "waiting").get("reason")
        if waiting:
            tally.reason = waiting
        elif ended is not None:
            tally.reason = _ending(ended)
            failed = tally.reason if ended.get("exitCode") else failed
        elif container.get("ready") and state.get("running") is not None:
            running = True
            tally.ready += 1
    if tally.reason == "Completed":
        tally.reason = _completed(status, running=running, failed=failed)
    return tally


def _completed(status: Object, *, running: bool, failed: str) -> str:
    """A pod with one container done is still Running while another runs and the pod is ready."""
    if running and _true(status, "Ready"):
        return "Running"
    return failed or ("NotReady" if running else "Completed")


def _true(status: Object, condition_type: str) -> bool:
    return any(one.get("type") == condition_type and one.get("status") == "True" for one in rows(status, "conditions"))


def _readiness_gates(spec: Object, status: Object) -> str:
    gates = rows(spec, "readinessGates")
    if not gates:
        return NONE
    return f"{sum(_true(status, str(gate.get('conditionType'))) for gate in gates)}/{len(gates)}"


def _conditions(pod: Object) -> list[dict[str, str]]:
    phase = status_of(pod).get("phase", "")
    message = _ENDED.get(phase)
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}] if message else []


PODS: Final = Printer(
    (
        NAME,
        text("Ready", "Containers that are ready, of all."),
        text("Status", "What the containers say, in one word."),
        text("Restarts", "How often containers were restarted, and when last."),
        AGE,
        text("IP", "The pod's address.", wide=True),
        text("Node", "The node that the pod is bound to.", wide=True),
        text("Nominated Node", "The node on which room is being made for the pod.", wide=True),
        text("Readiness Gates", "Readiness gates that hold, of all.", wide=True),
    ),
    _pod_cells,
    _conditions,
)


# ---

# --- Horizontal pod autoscalers: each metric as current/target.

_SHOWN: Final = 2
_SOURCES: Final = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _cells(obj: Object, now: float) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    target = section(spec, "scaleTargetRef")
    least = spec.get("minReplicas")
    return [
        name_of(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(rows(spec, "metrics"), rows(status, "currentMetrics")),
        UNSET if least is None else str(least),
        count(spec, "maxReplicas"),
        count(status, "currentReplicas"),
        age(obj, now),
    ]


def _metrics(specs: list[Object], statuses: list[Object]) -> str:
    if not specs:
        return NONE
    told = [_metric(one, statuses[place] if place < len(statuses) else {}) for place, one in enumerate(specs)]
    shown = ", ".join(told[:_SHOWN])
    return f"{shown} + {len(told) - _SHOWN} more..." if len(told) > _SHOWN else shown


def _metric(spec: Object, status: Object) -> str:
    field = _SOURCES.get(str(spec.get("type")))
    if field is None:
        return "<unknown type>"
    source = section(spec, field)
    target, current = section(source, "target"), section(section(status, field), "current")
    if field in ("resource", "containerResource"):
        return f"{source.get('name', '')}: {_of_resource(target, current)}"
    if field == "pods" or target.get("averageValue") is not None:
        told = f"{_amount(current, 'averageValue')}/{quantity(target.get('averageValue'))}"
        return told if field == "pods" else f"{told} (avg)"
    return f"{_amount(current, 'value')}/{quantity(target.get('value'))}"


def _of_resource(target: Object, current: Object) -> str:
    if target.get("averageValue") is not None:
        return f"{_amount(current, 'averageValue')}/{quantity(target['averageValue'])}"
    wanted, used = target.get("averageUtilization"), current.get("averageUtilization")
    told = UNKNOWN if used is None else f"{used}%"
    return f"{told}/{'<auto>' if wanted is None else f'{wanted}%'}"


def _amount(current: Object, field: str) -> str:
    return UNKNOWN if current.get(field) is None else quantity(current[field])


AUTOSCALERS: Final = Printer(
    (
        NAME,
        text("Reference", "What it scales."),
        text("Targets", "Each metric: current/target."),
        text("MinPods", "The fewest pods."),
        text("MaxPods", "The most pods."),
        text("Replicas", "Pods there."),
        AGE,
    ),
    _cells,
)


# ---

# --- Nodes and namespaces.

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE: Final = "kubernetes.io/role"


def _node_cells(node: Object, now: float) -> list[Any]:
    status = status_of(node)
    info = section(status, "nodeInfo")
    return [
        name_of(node),
        _state(node),
        ",".join(sorted(_roles(node))) or NONE,
        age(node, now),
        info.get("kubeletVersion") or "",
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _state(node: Object) -> str:
    said = [one.get("status") for one in rows(status_of(node), "conditions") if one.get("type") == "Ready"]
    state = "Unknown" if not said else "Ready" if said[-1] == "True" else "NotReady"
    return f"{state},SchedulingDisabled" if spec_of(node).get("unschedulable") else state


def _roles(node: Object) -> set[str]:
    labels = labels_of(node)
    found = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    return (found | {labels.get(_ROLE, "")}) - {""}


def _address(status: Object, wanted: str) -> str:
    found = (one.get("address", "") for one in rows(status, "addresses") if one.get("type") == wanted)
    return next(found, NONE)


def _namespace_cells(namespace: Object, now: float) -> list[Any]:
    return [name_of(namespace), status_of(namespace).get("phase") or "", age(namespace, now)]


NODES: Final = Printer(
    (
        NAME,
        text("Status", "Whether the node is ready, and whether pods may be bound to it."),
        text("Roles", "Roles given by labels."),
        AGE,
        text("Version", "The kubelet's version."),
        text("Internal-IP", "The first address inside the cluster.", wide=True),
        text("External-IP", "The first address outside the cluster.", wide=True),
        text("OS-Image", "The operating system.", wide=True),
        text("Kernel-Version", "The kernel.", wide=True),
        text("Container-Runtime", "The container runtime and its version.", wide=True),
    ),
    _node_cells,
)

NAMESPACES: Final = Printer((NAME, text("Status", "Active or Terminating."), AGE), _namespace_cells)


# ---

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
