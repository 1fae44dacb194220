# SPDX-License-Identifier: Apache-2.0
"""Objects in a version whose fields differ from the stored ones: of autoscaling/v1 and events.k8s.io/v1.

Source: the conversions of Kubernetes' `pkg/apis`. Patches are turned as objects are, field by field.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from pumice.core.objects.metadata import Object, annotations_of, is_list, is_mapping, rows, section

Turn = Callable[[Object], Object]

_EVENT: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_EVENT_BACK: Final = {stored: shown for shown, stored in _EVENT.items()}
_CPU: Final = "targetCPUUtilizationPercentage"
_METRICS: Final = "autoscaling.alpha.kubernetes.io/metrics"


def stored(obj: Object, api_version: str) -> Object:
    """Return an object, or a merge patch for one, as it is stored."""
    turn = _STORED.get((api_version, _kind(obj)))
    return obj if turn is None else turn(obj)


def shown(obj: Object, api_version: str) -> Object:
    """Return a stored object in another version."""
    turn = _SHOWN.get((api_version, _kind(obj)))
    return {**(obj if turn is None else turn(obj)), "apiVersion": api_version}


def is_turned(api_version: str, kind: str) -> bool:
    """Return whether the fields of this version differ from the stored ones."""
    return (api_version, kind) in _STORED


def _kind(obj: Object) -> str:
    return str(obj.get("kind"))


def _renamed(names: dict[str, str]) -> Turn:
    return lambda obj: {names.get(name, name): value for name, value in obj.items()}


def _cpu(percent: int) -> Object:
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _to_metrics(scaler: Object) -> Object:
    """Convert the metrics: autoscaling/v1 has one share of CPU, and an annotation holds the others."""
    spec = dict(section(scaler, "spec"))
    percent = spec.pop(_CPU, None)
    annotations = dict(annotations_of(scaler))
    try:
        others: Any = json.loads(annotations.pop(_METRICS, "[]"))
    except ValueError:
        others = []
    metrics = [each for each in others if is_mapping(each)] if is_list(others) else []
    if isinstance(percent, int):
        # Behind those of the annotation, as in Kubernetes' `pkg/apis/autoscaling/v1/conversion.go`.
        metrics = [*metrics, _cpu(percent)]
    made = {**scaler, "spec": {**spec, "metrics": metrics} if metrics else spec}
    if _METRICS in annotations_of(scaler):
        made["metadata"] = {**scaler["metadata"], "annotations": annotations}
    return made


def _to_share(scaler: Object) -> Object:
    spec, status = dict(section(scaler, "spec")), section(scaler, "status")
    metrics = rows(spec, "metrics")
    spec.pop("metrics", None)
    spec.pop("behavior", None)
    others: list[Object] = []
    for each in metrics:
        target = section(section(each, "resource"), "target")
        if _CPU not in spec and section(each, "resource").get("name") == "cpu" and "averageUtilization" in target:
            spec[_CPU] = target["averageUtilization"]
        else:
            others.append(each)
    kept = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
    made = {**scaler, "spec": spec, "status": {name: status[name] for name in kept if name in status}}
    if others:
        # An annotation holds what v1 has no field for, so that an object written back loses nothing.
        meta = scaler["metadata"]
        made["metadata"] = {**meta, "annotations": {**section(meta, "annotations"), _METRICS: json.dumps(others)}}
    return made


_STORED: Final[dict[tuple[str, str], Turn]] = {
    ("events.k8s.io/v1", "Event"): _renamed(_EVENT),
    ("autoscaling/v1", "HorizontalPodAutoscaler"): _to_metrics,
}
_SHOWN: Final[dict[tuple[str, str], Turn]] = {
    ("events.k8s.io/v1", "Event"): _renamed(_EVENT_BACK),
    ("autoscaling/v1", "HorizontalPodAutoscaler"): _to_share,
}
