# SPDX-License-Identifier: Apache-2.0
"""Objects as Go's typed clients encode them: quantities in canonical form, and the fields that their types never leave
out.
"""

from __future__ import annotations

from typing import Any, Final

from pumice.core.errors import QuantityError
from pumice.core.objects.metadata import Object, section
from pumice.core.objects.queue import AMOUNTS
from pumice.core.quantity import quantity_of

# Kubernetes' own tag has the capital P (`core/v1/types.go`, DaemonEndpoint).
_DAEMONS: Final[Object] = {"kubeletEndpoint": {"Port": 0}}
_SYSTEM: Final[Object] = dict.fromkeys(
    (
        "machineID",
        "systemUUID",
        "bootID",
        "kernelVersion",
        "osImage",
        "containerRuntimeVersion",
        "kubeletVersion",
        "kubeProxyVersion",
        "operatingSystem",
        "architecture",
    ),
    "",
)
# omitempty leaves out no struct, and an unset metav1.Time encodes to null.
_TIMES: Final[Object] = {"lastHeartbeatTime": None, "lastTransitionTime": None}


def typed_pod(pod: Object) -> Object:
    """Return a v1.Pod."""
    spec = dict(section(pod, "spec"))
    for kind in ("containers", "initContainers"):
        if isinstance(spec.get(kind), list):
            spec[kind] = [{**each, "resources": _resources(section(each, "resources"))} for each in spec[kind]]
    if "resources" in spec:
        spec["resources"] = _resources(section(spec, "resources"))
    return {**untyped(pod), "spec": _counted(spec, "overhead")}


def typed_node(node: Object) -> Object:
    """Return a v1.Node."""
    status = _counted(section(node, "status"), "allocatable", "capacity")
    if isinstance(status.get("conditions"), list):
        status["conditions"] = [{**_TIMES, **each} for each in status["conditions"]]
    status["daemonEndpoints"] = {**_DAEMONS, **section(status, "daemonEndpoints")}
    status["nodeInfo"] = {**_SYSTEM, **section(status, "nodeInfo")}
    return {**untyped(node), "spec": section(node, "spec"), "status": status}


def typed_group(group: Object) -> Object:
    """Return a PodGroup."""
    return {**untyped(group), "spec": _counted(section(group, "spec"), "minResources")}


def typed_queue(queue: Object) -> Object:
    """Return a Queue."""
    spec: Object = {**section(queue, "spec")}
    for name, inner in AMOUNTS.items():
        spec |= {name: _counted(section(spec, name), inner)} if inner else _counted(spec, name)
    status: Object = {"reservation": {}, **_counted(section(queue, "status"), "allocated")}
    return {**untyped(queue), "spec": spec, "status": status}


def untyped(obj: Object) -> Object:
    """Return the object without its kind, which these clients drop."""
    return {name: value for name, value in obj.items() if name not in ("kind", "apiVersion")}


def canonical(quantities: Object) -> Object:
    """Return each quantity as Go writes it: 3000 as 3k, 0.5 as 500m."""
    return {name: _one(value) for name, value in quantities.items()}


def _one(value: object) -> Any:
    try:
        return quantity_of(value).canonical()
    except QuantityError:
        return value


def _counted(fields: Object, *names: str) -> Object:
    """Return a copy with these lists of quantities in canonical form."""
    return {**fields, **{name: canonical(section(fields, name)) for name in names if fields.get(name)}}


def _resources(resources: Object) -> Object:
    return _counted(resources, "requests", "limits")
