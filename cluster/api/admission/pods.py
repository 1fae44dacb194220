# SPDX-License-Identifier: Apache-2.0
"""Pods: defaults, priority, and the fields that may change once they exist (source: Kubernetes' pod strategy, Priority
plugin).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from pumice.cluster.api.admission.limit_ranges import fill_in, own_copy, pod_problem, problems, settled
from pumice.cluster.api.admission.pod_spec import pod_spec_problems
from pumice.cluster.api.admission.rules import DURATIONS, EXIT_CODE, Lookup, run_problems
from pumice.cluster.api.refusals import Cause, forbidden_field, invalid_value
from pumice.cluster.kube.quota_usage import qos_class
from pumice.core.go_numbers import parse_int
from pumice.core.objects.metadata import Object, annotations_of, labels_of, rows, section
from pumice.storage.codec import repack, unpack

# --- Label keys of affinity terms
# Source: Kubernetes' pod strategy (`applyMatchLabelKeysAndMismatchLabelKeys`). Spread constraints keep their keys:
# the scheduler reads those itself.

_OPERATORS: Final = (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))


def settle_label_keys(pod: Object) -> None:
    """Extend the selectors by label keys; a term without a selector selects no pod and stays so."""
    if not pod["spec"].get("affinity"):
        return
    # the settled spec is shared by all pods that say the same
    pod["spec"] = own_copy(pod["spec"])
    affinity, labels = section(pod["spec"], "affinity"), labels_of(pod)
    for side in ("podAffinity", "podAntiAffinity"):
        terms = section(affinity, side)
        for term in rows(terms, "requiredDuringSchedulingIgnoredDuringExecution"):
            _extend(term, labels)
        for choice in rows(terms, "preferredDuringSchedulingIgnoredDuringExecution"):
            _extend(section(choice, "podAffinityTerm"), labels)


def _extend(term: Object, labels: dict[str, str]) -> None:
    selector: Object | None = term.get("labelSelector")
    if selector is None:
        return
    found = list(rows(selector, "matchExpressions"))
    for field, operator in _OPERATORS:
        for key in term.get(field) or ():
            wanted = {"key": key, "operator": operator, "values": [labels[key]]} if key in labels else None
            if wanted is not None and wanted not in found:  # it is there already in a pod that comes from a cluster
                found.append(wanted)
    if found:
        selector["matchExpressions"] = found


SYSTEM_CLASSES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Classes that exist without an object."""

_BUDGETS: Final = ("volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable")
JUDGED: Final = (*DURATIONS, EXIT_CODE, *_BUDGETS)
"""Annotations that can be wrong."""
_KEPT: Final = 64
_REMEMBERED: Final = 16 * 1024
"""Size of the largest spec with a cached verdict, in bytes."""
_MUTABLE: Final = ("activeDeadlineSeconds", "tolerations", "schedulingGates", "terminationGracePeriodSeconds")


def initial_status(pod: Object) -> None:
    """Reset the status: a new pod is Pending. Its QoS class follows from the fields that `default` fills in."""
    pod["status"] = {"phase": "Pending"}


def default(pod: Object, lookup: Lookup) -> None:
    """Fill in the priority of the class, policies, requests from limits, and affinity terms with the pod's own
    labels.
    """
    spec: Object = pod.get("spec", {})
    _settle_priority(spec, lookup)
    pod["spec"], service = settled(spec)
    filled_in = fill_in(pod, lookup)
    settle_label_keys(pod)
    # the cached class is that of the spec before LimitRanges added to it
    pod["status"]["qosClass"] = qos_class(pod["spec"]) if filled_in else service


def fill_loaded(pod: Object, lookup: Lookup) -> None:
    """Fill in a pod that exists: its priority and its QoS class stay, and no LimitRange adds to it. A running pod is
    ready unless it says otherwise.
    """
    spec, status = pod.get("spec", {}), pod["status"]
    if "priority" not in spec:
        _settle_priority(spec, lookup)
    pod["spec"], service = settled(spec)
    status.setdefault("qosClass", service)
    if status["phase"] == "Running" and not status.get("conditions"):
        status["conditions"] = [{"type": "Ready", "status": "True"}]


def _settle_priority(spec: Object, lookup: Lookup) -> None:
    found = _priority_class(spec, lookup)
    if found is not None:
        spec["priority"], spec["preemptionPolicy"] = found
    elif not spec.get("priorityClassName"):
        spec.setdefault("priority", 0)  # Kubernetes refuses a bare number; here it is how traces and tests say it
        spec.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _priority_class(spec: Object, lookup: Lookup) -> tuple[int, str] | None:
    name: str = spec.get("priorityClassName") or ""
    # these exist in every cluster, here without an object
    if name in SYSTEM_CLASSES:
        return SYSTEM_CLASSES[name], "PreemptLowerPriority"
    if not name and "priority" in spec:
        return None
    found = lookup.get("PriorityClass", "", name) if name else lookup.default_priority_class()
    if found is None:
        return None
    spec["priorityClassName"] = found["metadata"]["name"]
    return found.get("value", 0), found.get("preemptionPolicy") or "PreemptLowerPriority"


def forbid(pod: Object, lookup: Lookup) -> str | None:
    """Return why the pod is forbidden: a priority class that does not exist, or amounts outside the ranges of its
    namespace.
    """
    name: str = section(pod, "spec").get("priorityClassName") or ""
    if name and name not in SYSTEM_CLASSES and lookup.get("PriorityClass", "", name) is None:
        return f"no PriorityClass with name {name} was found"
    return pod_problem(pod, lookup)


def validate(pod: Object, _lookup: Lookup) -> list[Cause]:
    """Return the problems of the spec, the restart policy, and Volcano's budget annotations; computed once for all
    equal pods.
    """
    annotations = annotations_of(pod)
    said = {name: annotations[name] for name in JUDGED if name in annotations} if annotations else {}
    blob = repack([pod["spec"], said])
    # pods of a job are alike to the byte: one verdict for all; large specs are left out of the cache
    return list(_problems(blob) if len(blob) <= _REMEMBERED else _problems.__wrapped__(blob))


@lru_cache(maxsize=_KEPT)
def _problems(blob: bytes) -> tuple[Cause, ...]:
    spec, annotations = unpack(blob)
    found = pod_spec_problems(spec, "spec") + run_problems(annotations, "metadata")
    if spec.get("schedulerName") == "volcano":
        found += budget_problems(annotations)
    return tuple(found)


def budget_problems(annotations: dict[str, str]) -> list[Cause]:
    """Return the problems of the job disruption budget: at most one of the two annotations, a positive number or 1% to
    99%.
    """
    path = "metadata.annotations"
    given = [key for key in _BUDGETS if key in annotations]
    if len(given) > 1:
        return [forbidden_field(path, f"not allow configure multiple annotations <{' '.join(given)}> at same time")]
    found: list[Cause] = []
    for key in given:
        text = annotations[key]
        number, share = parse_int(text, 32), parse_int(text.replace("%", "")) or 0
        if number is not None and number <= 0:
            found.append(invalid_value(f"{path}[{key}]", text, "it must be a positive integer"))
        elif number is None and not 0 < share < 100:
            why = "it must be a positive integer, or a valid percentage which between 1% ~ 99%"
            found.append(invalid_value(f"{path}[{key}]", text, why))
    return found


def validate_update(old: Object, new: Object, _lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed pod: only images, tolerations, gates and deadlines of the spec may change; gates
    may only be removed.
    """
    before, after = section(old, "spec"), section(new, "spec")
    if before == after:
        return []
    if _frozen(before) != _frozen(after):
        why = (
            "pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`, "
            "`spec.activeDeadlineSeconds`, `spec.tolerations` or `spec.schedulingGates`"
        )
        return [forbidden_field("spec", why)]
    gates = {gate["name"] for gate in rows(before, "schedulingGates")}
    if any(gate["name"] not in gates for gate in rows(after, "schedulingGates")):
        return [forbidden_field("spec.schedulingGates", "only deletion is allowed, but found new scheduling gate")]
    return problems(after)


def _frozen(spec: Object) -> Object:
    kept = {name: value for name, value in spec.items() if name not in _MUTABLE}
    for group in ("containers", "initContainers"):
        kept[group] = [{k: v for k, v in each.items() if k != "image"} for each in rows(spec, group)]
    return kept
