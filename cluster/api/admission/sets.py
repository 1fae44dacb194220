# SPDX-License-Identifier: Apache-2.0
"""StatefulSets, DaemonSets and ReplicationControllers: defaults and rules of Kubernetes' API (`apis/apps`)."""

from __future__ import annotations

from typing import Final

from pumice.cluster.api.admission.rules import Lookup
from pumice.cluster.api.admission.templates import (
    number_problems,
    selector_problems,
    settle_template,
    template_problems,
)
from pumice.cluster.api.names import label_problem
from pumice.cluster.api.refusals import Cause, forbidden_field, invalid_value, required, unsupported
from pumice.cluster.api.schema.table import enum_of
from pumice.cluster.api.selectors import matches, selector_of
from pumice.core.objects.metadata import Object, labels_of, rows, section

_ALWAYS: Final = ("Always",)
_STRATEGIES: Final = enum_of("apps.v1.StatefulSetUpdateStrategy", "type", declared=True)
_POD_MANAGEMENT: Final = enum_of("apps.v1.StatefulSetSpec", "podManagementPolicy")
_RETAIN: Final = ("Retain", "Delete")
_CHANGING: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


def _defaulted(workload: Object) -> Object:
    spec: Object = workload.setdefault("spec", {})
    settle_template(section(spec, "template"))
    return spec


def default_stateful_set(owner: Object, _lookup: Lookup) -> None:
    """Fill in the defaults: ordered pods, rolled over one by one; claims are kept."""
    spec = _defaulted(owner)
    spec["replicas"] = 1 if spec.get("replicas") is None else spec["replicas"]
    spec["podManagementPolicy"] = spec.get("podManagementPolicy") or "OrderedReady"
    spec.setdefault("revisionHistoryLimit", 10)
    strategy: Object = spec.setdefault("updateStrategy", {})
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {"partition": 0, **section(strategy, "rollingUpdate")}
    kept = section(spec, "persistentVolumeClaimRetentionPolicy")
    spec["persistentVolumeClaimRetentionPolicy"] = {"whenDeleted": "Retain", "whenScaled": "Retain", **kept}
    for claim in rows(spec, "volumeClaimTemplates"):
        claim.setdefault("apiVersion", "v1")
        claim.setdefault("kind", "PersistentVolumeClaim")
        if claim.get("spec"):
            claim["spec"].setdefault("volumeMode", "Filesystem")
        # A typed client sends `status: {}`.
        status: Object = claim.setdefault("status", {})
        status["phase"] = status.get("phase") or "Pending"


def validate_stateful_set(owner: Object, _lookup: Lookup) -> list[Cause]:
    """Return the problems of a new StatefulSet: numbers, policies, selector, template and claims."""
    spec, name = section(owner, "spec"), owner["metadata"]["name"]
    found = [invalid_value("metadata.name", name, problem)] if (problem := label_problem(name)) else []
    found += number_problems(spec, ("replicas", "minReadySeconds", "revisionHistoryLimit"), "spec")
    found += number_problems(section(spec, "ordinals"), ("start",), "spec.ordinals")
    if (policy := spec["podManagementPolicy"]) not in _POD_MANAGEMENT:
        why = f"must be {' or '.join(map(repr, _POD_MANAGEMENT))}"
        found.append(invalid_value("spec.podManagementPolicy", policy, why))
    found += _strategy_problems(spec)
    rolling = section(spec["updateStrategy"], "rollingUpdate")
    found += number_problems(rolling, ("partition",), "spec.updateStrategy.rollingUpdate")
    for name, value in section(spec, "persistentVolumeClaimRetentionPolicy").items():
        if value not in _RETAIN:
            found.append(unsupported(f"spec.persistentVolumeClaimRetentionPolicy.{name}", value, _RETAIN))
    for index, claim in enumerate(rows(spec, "volumeClaimTemplates")):
        if not section(claim, "metadata").get("name"):
            found.append(required(f"spec.volumeClaimTemplates[{index}].metadata.name"))
    return found + selector_problems(spec, "statefulset") + _template_problems(spec)


def update_stateful_set(old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed StatefulSet; selector, claims and names are fixed."""
    default_stateful_set(new, lookup)
    after, before = section(new, "spec"), section(old, "spec")
    fixed = {name for name in {*after, *before} if name not in _CHANGING}
    if any(after.get(name) != before.get(name) for name in fixed):
        names = ", ".join(f"'{name}'" for name in _CHANGING[:-1])
        why = f"updates to statefulset spec for fields other than {names} and '{_CHANGING[-1]}' are forbidden"
        return [forbidden_field("spec", why)]
    return validate_stateful_set(new, lookup)


def default_daemon_set(owner: Object, _lookup: Lookup) -> None:
    """Fill in the defaults: pods are replaced one by one."""
    spec = _defaulted(owner)
    spec.setdefault("revisionHistoryLimit", 10)
    strategy: Object = spec.setdefault("updateStrategy", {})
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {"maxUnavailable": 1, "maxSurge": 0, **section(strategy, "rollingUpdate")}


def validate_daemon_set(owner: Object, _lookup: Lookup) -> list[Cause]:
    """Return the problems of a new DaemonSet: numbers, the roll-out, selector and template."""
    spec = section(owner, "spec")
    found = number_problems(spec, ("minReadySeconds", "revisionHistoryLimit"), "spec") + _strategy_problems(spec)
    rolling = section(spec["updateStrategy"], "rollingUpdate")
    if rolling.get("maxUnavailable", 1) in (0, "0%") and rolling.get("maxSurge", 0) in (0, "0%"):
        where = "spec.updateStrategy.rollingUpdate.maxUnavailable"
        found.append(invalid_value(where, rolling["maxUnavailable"], "cannot be 0 when `maxSurge` is 0"))
    return found + selector_problems(spec, "daemonset") + _template_problems(spec)


def update_daemon_set(old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed DaemonSet; the selector is fixed."""
    default_daemon_set(new, lookup)
    if section(new, "spec").get("selector") != section(old, "spec").get("selector"):
        return [invalid_value("spec.selector", section(new, "spec").get("selector"), "field is immutable")]
    return validate_daemon_set(new, lookup)


def default_replication_controller(owner: Object, _lookup: Lookup) -> None:
    """Fill in the defaults: one pod; the selector, and the controller's labels, from the template's labels."""
    spec = _defaulted(owner)
    spec["replicas"] = 1 if spec.get("replicas") is None else spec["replicas"]
    labels = dict(labels_of(section(spec, "template")))
    if labels and not spec.get("selector"):
        spec["selector"] = labels
    if labels and not labels_of(owner):
        owner["metadata"]["labels"] = labels


def validate_replication_controller(owner: Object, _lookup: Lookup) -> list[Cause]:
    """Return the problems of a new ReplicationController: numbers, selector and template."""
    spec = section(owner, "spec")
    found = number_problems(spec, ("replicas", "minReadySeconds"), "spec")
    labels, selector = labels_of(section(spec, "template")), section(spec, "selector")
    if not selector:
        found.append(required("spec.selector"))
    elif not matches(selector_of({"matchLabels": selector}), labels):
        why = "`selector` does not match template `labels`"
        found.append(invalid_value("spec.template.metadata.labels", labels, why))
    return found + _template_problems(spec)


def update_replication_controller(_old: Object, new: Object, lookup: Lookup) -> list[Cause]:
    """Return the problems of a changed ReplicationController; the rules are those of a new one."""
    default_replication_controller(new, lookup)
    return validate_replication_controller(new, lookup)


def _strategy_problems(spec: Object) -> list[Cause]:
    kind = spec["updateStrategy"]["type"]
    return [] if kind in _STRATEGIES else [unsupported("spec.updateStrategy.type", kind, _STRATEGIES)]


def _template_problems(spec: Object) -> list[Cause]:
    return template_problems(section(spec, "template"), "spec.template", _ALWAYS)
