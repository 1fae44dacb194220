"""Horizontal pod autoscalers: each metric as current/target."""

from __future__ import annotations

from typing import Any, Final

from pumice.actors.gateway.tables.ages import age
from pumice.actors.gateway.tables.column import AGE, NAME, NONE, UNKNOWN, UNSET, Printer, text
from pumice.actors.gateway.tables.words import count, name_of, quantity, spec_of, status_of
from pumice.cluster.api.fields import rows
from pumice.core.objects.metadata import Object, section

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
