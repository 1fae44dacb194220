# SPDX-License-Identifier: Apache-2.0
"""Horizontal autoscalers as autoscaling/v1 shows them: a share of CPU, and annotations for what it has no field for.

Source: Kubernetes' `pkg/apis/autoscaling/v1/conversion.go` (v1.35). The annotations are JSON as Go writes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from pumice.core.objects.metadata import Object, annotations_of, is_list, is_mapping, mapping, rows, section

_CPU: Final = "targetCPUUtilizationPercentage"
_CURRENT_CPU: Final = "currentCPUUtilizationPercentage"
_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
METRICS: Final = f"{_PREFIX}metrics"
CURRENT: Final = f"{_PREFIX}current-metrics"
BEHAVIOR: Final = f"{_PREFIX}behavior"
CONDITIONS: Final = f"{_PREFIX}conditions"
ANNOTATIONS: Final = frozenset(
    (METRICS, CURRENT, BEHAVIOR, CONDITIONS, f"{_PREFIX}scale-down-tolerance", f"{_PREFIX}scale-up-tolerance")
)
"""Annotations that the conversion alone writes; those of a stored object are never shown."""

# --- Metrics
# By their part of a metric: the fields of v1, in Go's order, and where v2 has each. `!`: v1 always writes it.

_Fields = Mapping[str, str]

_RESOURCE: Final = {
    "name!": "name",
    "targetAverageUtilization": "target.averageUtilization",
    "targetAverageValue": "target.averageValue",
}
_SPEC: Final[Mapping[str, _Fields]] = {
    "object": {
        "target!": "describedObject",
        "metricName!": "metric.name",
        "targetValue!": "target.value",
        "selector": "metric.selector",
        "averageValue": "target.averageValue",
    },
    "pods": {
        "metricName!": "metric.name",
        "targetAverageValue!": "target.averageValue",
        "selector": "metric.selector",
    },
    "resource": _RESOURCE,
    "containerResource": {**_RESOURCE, "container!": "container"},
    "external": {
        "metricName!": "metric.name",
        "metricSelector": "metric.selector",
        "targetValue": "target.value",
        "targetAverageValue": "target.averageValue",
    },
}
_MEASURED: Final = {
    "name!": "name",
    "currentAverageUtilization": "current.averageUtilization",
    "currentAverageValue!": "current.averageValue",
}
_STATUS: Final[Mapping[str, _Fields]] = {
    "object": {
        "target!": "describedObject",
        "metricName!": "metric.name",
        "currentValue!": "current.value",
        "selector": "metric.selector",
        "averageValue": "current.averageValue",
    },
    "pods": {
        "metricName!": "metric.name",
        "currentAverageValue!": "current.averageValue",
        "selector": "metric.selector",
    },
    "resource": _MEASURED,
    "containerResource": {**_MEASURED, "container!": "container"},
    "external": {
        "metricName!": "metric.name",
        "metricSelector": "metric.selector",
        "currentValue!": "current.value",
        "currentAverageValue": "current.averageValue",
    },
}


def _first_metric(metric: Object, parts: Mapping[str, _Fields]) -> Object:
    made: Object = {"type": metric.get("type") or ""}
    return made | {part: _first_part(section(metric, part), parts[part]) for part in parts if metric.get(part)}


def _first_part(given: Object, fields: _Fields) -> Object:
    made: Object = {}
    for name, path in fields.items():
        field, forced = name.rstrip("!"), name.endswith("!")
        holder, _, last = path.rpartition(".")
        value = (section(given, holder) if holder else given).get(last)
        if value is None and forced:
            # Go writes an empty text, or the quantity 0, for what is not there.
            value = "0" if last in ("value", "averageValue") else ""
        if value is not None:
            made[field] = value
    return made


def _second_metric(metric: Object, parts: Mapping[str, _Fields]) -> Object:
    made: Object = {"type": metric.get("type") or ""}
    for part, fields in parts.items():
        if given := mapping(metric.get(part)):
            made[part] = _second_part(given, fields)
            if parts is _SPEC:
                made[part]["target"] = {"type": _target_type(part, given), **section(made[part], "target")}
    return made


def _second_part(given: Object, fields: _Fields) -> Object:
    made: Object = {}
    for name, path in fields.items():
        value = given.get(name.rstrip("!"))
        if value is not None:
            holder, _, last = path.rpartition(".")
            (made.setdefault(holder, {}) if holder else made)[last] = value
    return made


def _target_type(part: str, given: Object) -> str:
    if part in ("resource", "containerResource"):
        return "AverageValue" if given.get("targetAverageUtilization") is None else "Utilization"
    if part == "object":
        return "Value" if given.get("averageValue") is None else "AverageValue"
    return "AverageValue" if part == "pods" or given.get("targetValue") is None else "Value"


def _is_cpu(metric: Object, of: str, field: str) -> bool:
    """Return whether v1 has a field for the metric: a share of CPU."""
    resource = section(metric, "resource")
    share = section(resource, of).get(field)
    return metric.get("type") == "Resource" and resource.get("name") == "cpu" and share is not None


# --- The behavior
# Kubernetes writes an inner type there, whose fields have their Go names; Go reads them in any case of letters.

_POLICY: Final = ("type", "value", "periodSeconds")
_RULES: Final = ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
_SCALING: Final = ("scaleUp", "scaleDown")


def _go_named(given: Object, names: tuple[str, ...], inner: Callable[[str, Any], Any]) -> Object:
    return {f"{name[0].upper()}{name[1:]}": inner(name, given.get(name)) for name in names}


def _first_behavior(behavior: Object) -> Object:
    def policies(name: str, value: Any) -> Any:
        if name != "policies" or value is None:
            return value
        return [_go_named(each, _POLICY, lambda _, kept: kept) for each in value]

    return _go_named(behavior, _SCALING, lambda _, rules: None if rules is None else _go_named(rules, _RULES, policies))


def _second_behavior(behavior: Object) -> Object:
    known = {name.lower(): name for name in (*_SCALING, *_RULES, *_POLICY)}

    def renamed(value: Any) -> Any:
        if is_list(value):
            return [renamed(each) for each in value]
        if not is_mapping(value):
            return value
        found = {known.get(name.lower()): each for name, each in value.items()}
        return {name: renamed(each) for name, each in found.items() if name is not None and each is not None}

    made: Object = renamed(behavior)
    return made


# --- Both directions


def to_first(scaler: Object) -> Object:
    """Return a stored autoscaler in autoscaling/v1."""
    spec, status = dict(section(scaler, "spec")), section(scaler, "status")
    metrics, behavior = rows(spec, "metrics"), spec.pop("behavior", None)
    current, conditions = rows(status, "currentMetrics"), status.get("conditions")
    spec.pop("metrics", None)
    shares = [each for each in metrics if _is_cpu(each, "target", "averageUtilization")]
    if shares:
        spec[_CPU] = shares[0]["resource"]["target"]["averageUtilization"]
    kept = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
    told: Object = {name: status[name] for name in kept if name in status}
    for each in current:
        if _is_cpu(each, "current", "averageUtilization"):
            told[_CURRENT_CPU] = each["resource"]["current"]["averageUtilization"]
    others = [_first_metric(each, _SPEC) for each in metrics if not _is_cpu(each, "target", "averageUtilization")]
    written: dict[str, object] = {
        METRICS: others,
        CURRENT: [_first_metric(each, _STATUS) for each in current],
        BEHAVIOR: _first_behavior(behavior) if behavior else None,
        CONDITIONS: conditions,
    }
    made = {name: json.dumps(value, separators=(",", ":")) for name, value in written.items() if value}
    return {**_annotated(scaler, made), "spec": spec, "status": told}


def to_stored(scaler: Object) -> Object:
    """Return an autoscaler of autoscaling/v1, or a merge patch for one, as it is stored."""
    spec, status, annotations = dict(section(scaler, "spec")), dict(section(scaler, "status")), annotations_of(scaler)
    metrics = [_second_metric(each, _SPEC) for each in _read_list(annotations.get(METRICS))]
    percent, current_percent = spec.pop(_CPU, None), status.pop(_CURRENT_CPU, None)
    if isinstance(percent, int):
        # Behind those of the annotation, which Kubernetes puts first.
        metrics.append(_share("target", {"type": "Utilization", "averageUtilization": percent}))
    if metrics:
        spec["metrics"] = metrics
    if behavior := _second_behavior(_read_mapping(annotations.get(BEHAVIOR))):
        spec["behavior"] = behavior
    # What the annotation says of the current metrics is more than the field does.
    if current := [_second_metric(each, _STATUS) for each in _read_list(annotations.get(CURRENT))]:
        status["currentMetrics"] = current
    elif isinstance(current_percent, int):
        status["currentMetrics"] = [_share("current", {"averageUtilization": current_percent})]
    if conditions := _read_list(annotations.get(CONDITIONS)):
        status["conditions"] = conditions
    made = {**_annotated(scaler, {}), "spec": spec}
    return {**made, "status": status} if status else made


def _share(part: str, amount: Object) -> Object:
    return {"type": "Resource", "resource": {"name": "cpu", part: amount}}


def _annotated(scaler: Object, more: Mapping[str, str]) -> Object:
    """Return the autoscaler without the conversion's annotations, and with new ones."""
    before = annotations_of(scaler)
    if not more and ANNOTATIONS.isdisjoint(before):
        return scaler
    kept = {name: value for name, value in before.items() if name not in ANNOTATIONS}
    return {**scaler, "metadata": {**section(scaler, "metadata"), "annotations": {**kept, **more}}}


def _read_list(text: object) -> list[Object]:
    found = _read(text)
    return [each for each in found if is_mapping(each)] if is_list(found) else []


def _read_mapping(text: object) -> Object:
    found = _read(text)
    return found if is_mapping(found) else {}


def _read(text: object) -> Any:
    """Read JSON; what cannot be read counts as nothing."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
