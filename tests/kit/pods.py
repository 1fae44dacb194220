"""Pods, and the pieces of a pod that say where it may run."""

from collections.abc import Mapping, Sequence

from pumice.core.objects.metadata import Object
from tests.kit.objects import CREATED, metadata, resources, without_empty

GROUP = "scheduling.k8s.io/group-name"
TASK = "volcano.sh/task-spec"
DURATION = "pumice.dev/duration"


def pod(
    name: str,
    *,
    namespace: str = "default",
    group: str | None = None,
    task: str = "worker",
    cpu: str | None = "1",
    memory: str | None = "1Gi",
    gpus: int = 0,
    extra: Mapping[str, str] | None = None,
    node: str | None = None,
    phase: str | None = None,
    priority: int | None = None,
    priority_class: str | None = None,
    node_selector: Mapping[str, str] | None = None,
    affinity: Object | None = None,
    tolerations: Sequence[Object] = (),
    host_ports: Sequence[int] = (),
    duration: str | None = None,
    scheduler: str = "volcano",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    uid: str | None = None,
    created: str = CREATED,
    grace_s: int | None = None,
) -> Object:
    """A pod of one container; Running when it has a node, Pending otherwise, unless `phase` says so.

    `cpu=None, memory=None` makes it best effort. `group` is the pod group it belongs to, in the same namespace.
    `grace_s`: how long it may take to end (30 unless said).
    """
    group_marks = without_empty(**{GROUP: group, TASK: task if group else None, DURATION: duration})
    placement = without_empty(
        nodeName=node,
        priority=priority,
        priorityClassName=priority_class,
        nodeSelector=dict(node_selector or {}),
        affinity=affinity,
        tolerations=list(tolerations),
        terminationGracePeriodSeconds=grace_s,
    )
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(
            name,
            namespace=namespace,
            labels=labels,
            annotations={**group_marks, **(annotations or {})},
            uid=uid,
            created=created,
        ),
        "spec": {"schedulerName": scheduler, "containers": [_container(cpu, memory, gpus, extra, host_ports)]}
        | placement,
        "status": {"phase": phase or ("Running" if node else "Pending")},
    }


def _container(
    cpu: str | None, memory: str | None, gpus: int, extra: Mapping[str, str] | None, host_ports: Sequence[int]
) -> Object:
    ports = [{"containerPort": port, "hostPort": port, "protocol": "TCP"} for port in host_ports]
    requests = resources(cpu, memory, gpus, extra)
    return {"name": "main", "image": "work"} | without_empty(
        resources={"requests": requests} if requests else None, ports=ports
    )


def toleration(key: str = "", *, operator: str = "Exists", value: str = "", effect: str = "") -> Object:
    """A toleration for `pod(tolerations=[…])`; with no key it tolerates every taint."""
    return without_empty(key=key, operator=operator, value=value, effect=effect)


def node_affinity(
    key: str, *values: str, operator: str = "In", weight: int | None = None, field: bool = False
) -> Object:
    """An affinity for `pod(affinity=…)`: required, or preferred with that weight; `field` matches on metadata.name."""
    term = {
        "matchFields" if field else "matchExpressions": [without_empty(key=key, operator=operator, values=list(values))]
    }
    if weight is not None:
        preferred = {"weight": weight, "preference": term}
        return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
