# SPDX-License-Identifier: Apache-2.0
"""Resources of an existing pod, changed in place (`podResizeStrategy`, `ValidatePodResize`)."""

from __future__ import annotations

from typing import Final

from pumice.cluster.api.admission.pod_spec import default_requests, pod_spec_problems
from pumice.cluster.api.refusals import Cause, forbidden_field, invalid_value
from pumice.cluster.kube.quota_usage import qos_class
from pumice.core.objects.metadata import Object, annotations_of, rows, section

RESIZABLE: Final = ("cpu", "memory")
_GROUPS: Final = ("containers", "initContainers")
_WRITTEN: Final = ("resources", "resizePolicy")
_LISTS: Final = ("requests", "limits")
_MIRROR: Final = "kubernetes.io/config.mirror"
_OF_PODS: Final = (
    "resize of pods with pod-level resources is forbidden when InPlacePodLevelResourcesVerticalScalingEnabled "
    "feature gate is disabled"
)


def write(old: Object, given: Object, _at: str) -> tuple[Object, list[Cause]]:
    """Return the pod with the resources that `given` names, and their problems; all other fields stay."""
    before, wanted = section(old, "spec"), section(given, "spec")
    new: Object = {**old, "metadata": dict(old["metadata"])}
    if causes := _order_problems(before, wanted):
        return new, causes
    resized = {
        group: [_resized(was, its) for was, its in zip(rows(before, group), rows(wanted, group), strict=True)]
        for group in _GROUPS
        if group in before
    }
    new["spec"] = {**before, **resized}
    return new, _problems(old, before, new["spec"])


def _resized(was: Object, given: Object) -> Object:
    kept = {name: value for name, value in was.items() if name not in _WRITTEN}
    made = kept | {name: given[name] for name in _WRITTEN if given.get(name) is not None}
    if made.get("resources"):
        default_requests(made["resources"])
    return made


def _order_problems(before: Object, wanted: Object) -> list[Cause]:
    found: list[Cause] = []
    for group in _GROUPS:
        old, new = ([each.get("name") for each in rows(spec, group)] for spec in (before, wanted))
        if len(old) != len(new):
            found.append(forbidden_field(f"spec.{group}", f"{group} may not be added or removed on resize"))
            continue
        why = f"{group} may not be renamed or reordered on resize"
        names = enumerate(zip(old, new, strict=True))
        found += [forbidden_field(f"spec.{group}[{index}].name", why) for index, (was, its) in names if was != its]
    return found


def _problems(old: Object, before: Object, after: Object) -> list[Cause]:
    if _MIRROR in annotations_of(old):
        return [forbidden_field("", "static pods cannot be resized")]
    if section(before, "os").get("name") == "windows":
        return [forbidden_field("", "windows pods cannot be resized")]
    found = pod_spec_problems(after, "spec")
    if qos_class(before) != qos_class(after):
        why = "Pod QOS Class may not change as a result of resizing"
        found.append(invalid_value("spec", section(old, "status").get("qosClass") or "", why))
    if not _is_supported(section(old, "status")):
        found.append(forbidden_field("spec", "Pod running on node without support for resize"))
    if section(before, "resources"):
        return [*found, forbidden_field("", _OF_PODS)]
    for group in _GROUPS:
        both = zip(rows(before, group), rows(after, group), strict=True)
        for index, (was, its) in enumerate(both):
            found += _of_container(was, its, f"spec.{group}[{index}].resources", first=group == "initContainers")
    return found


def _is_supported(status: Object) -> bool:
    """Return whether the node reports the resources of its containers; True for a node that has started none."""
    running = [each for each in rows(status, "containerStatuses") if "running" in section(each, "state")]
    return not running or running[0].get("resources") is not None


def _of_container(was: Object, its: Object, path: str, *, first: bool) -> list[Cause]:
    is_sidecar = first and was.get("restartPolicy") == "Always"
    if first and not is_sidecar:
        why = "resources for non-sidecar init containers are immutable"
        return [] if _spelled(was) == _spelled(its) else [forbidden_field("spec", why)]
    old, new = section(was, "resources"), section(its, "resources")
    found = [
        forbidden_field(f"{path}.{part}", f"resource {part} cannot be removed")
        for part in _LISTS
        if not section(old, part).keys() <= section(new, part).keys()
    ]
    if _spelled(was, RESIZABLE) != _spelled(its, RESIZABLE):
        of = " for sidecar containers" if is_sidecar else ""
        found.append(forbidden_field("spec", f"only cpu and memory resources{of} are mutable"))
    return found


def _spelled(container: Object, without: tuple[str, ...] = ()) -> Object:
    """Return the container without resources, and its resources without some; an empty list counts as absent."""
    resources = section(container, "resources")
    lists = {
        part: {name: amount for name, amount in section(resources, part).items() if name not in without}
        for part in _LISTS
    }
    rest = {name: value for name, value in container.items() if name not in _WRITTEN}
    return rest | lists | {"claims": rows(resources, "claims"), "resizePolicy": rows(container, "resizePolicy")}
