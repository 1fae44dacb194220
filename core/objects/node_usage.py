# SPDX-License-Identifier: Apache-2.0
"""The measured load of a node, in per cent of its allocatable: averages over periods, and their queries.

Three sources, the first that has a node counts: data handed in with the cycle (`SessionOptions.node_usage`),
NodeMetrics objects, and an annotation of the Node. One shape serves all three:

    {"cpu": {"10m": 41.5, "5m": 43.0}, "memory": {"10m": 60.0}, "measuredAt": "2026-01-02T03:04:05Z"}

A NodeMetrics object has it as the annotation `pumice.dev/node-usage` (the component that asks a Prometheus writes it
there), or else its one sample stands for every period. Source: Volcano's `NodeUsage` (`api/node_info.go`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Final

import msgspec

from pumice.core.errors import QuantityError
from pumice.core.go_numbers import parse_float
from pumice.core.objects.metadata import Object, annotations_of, mapping, parse_time, section
from pumice.core.quantity import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.core.objects.node import NodeSpec

ANNOTATION: Final = "pumice.dev/node-usage"
KIND: Final = "NodeMetrics"
PERIODS: Final = ("10m", "5m")


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """Loads in per cent by period ("10m"), `measured_at` in seconds since the epoch."""

    measured_at: float
    cpu: Mapping[str, float]
    memory: Mapping[str, float]


def read_usage(data: Object, measured_at: float) -> NodeUsage:
    """Read a load of the form above; `measured_at` stands in for a missing measuredAt.

    Values that are not numbers are left out, and a measuredAt that is not a time counts as "never".
    """
    stamp = data.get("measuredAt")
    when = measured_at if stamp is None else _moment(stamp)
    return NodeUsage(when, _numbers(data.get("cpu")), _numbers(data.get("memory")))


def usage_of(spec: NodeSpec, handed_in: Object, metrics: Mapping[str, Object], now: float) -> NodeUsage | None:
    """Return the known load of a node; None when it was not measured.

    `handed_in`: by node, measured now unless it says otherwise; `metrics`: NodeMetrics objects by name.
    """
    given = handed_in.get(spec.name)
    if given is not None:
        return read_usage(given, now)
    sampled = metrics.get(spec.name)
    if sampled is not None:
        return _of_metrics(sampled, spec)
    return _annotated(spec.annotations, 0.0)


def _of_metrics(metrics: Object, spec: NodeSpec) -> NodeUsage:
    measured_at = _moment(metrics.get("timestamp"))
    annotations = annotations_of(metrics)
    written = _annotated(annotations, measured_at)
    if written is not None:
        return written
    used, whole = section(metrics, "usage"), section(section(spec.node, "status"), "allocatable")
    return NodeUsage(measured_at, _sample(used, whole, "cpu"), _sample(used, whole, "memory"))


def _annotated(annotations: Mapping[str, str], measured_at: float) -> NodeUsage | None:
    text = annotations.get(ANNOTATION)
    if text is None:
        return None
    try:
        data = msgspec.json.decode(text, type=Object)
    except msgspec.DecodeError:
        return None
    return read_usage(data, measured_at)


def _sample(used: Object, whole: Object, resource: str) -> dict[str, float]:
    amount, limit = _amount(resource, used.get(resource)), _amount(resource, whole.get(resource))
    return dict.fromkeys(PERIODS, amount / limit * 100) if amount is not None and limit else {}


def _amount(resource: str, text: object) -> float | None:
    try:
        quantity = None if text is None else parse_quantity(str(text))
    except QuantityError:
        return None
    if quantity is None:
        return None
    return float(quantity.milli_value() if resource == "cpu" else quantity.value())


def _numbers(value: object) -> dict[str, float]:
    items = mapping(value).items()
    # A boolean is an int to Python, but not a load.
    return {k: float(v) for k, v in items if isinstance(v, int | float) and not isinstance(v, bool)}


def _moment(value: object) -> float:
    if isinstance(value, int | float):
        return float(value)
    try:
        return parse_time(value) if isinstance(value, str) else 0.0
    except ValueError:
        return 0.0


# --- Queries to Prometheus
# Source: Volcano `metrics/source/metrics_client_prometheus.go`.
#
# Its two queries a node are one query for all nodes here: the label `instance` is the node's name in both. A node
# that the answer does not have was not measured; Volcano takes it for idle.

PERIOD: Final = "10m"
LONGEST: Final = 200  # characters of an answer that are quoted
CPU_QUERY: Final = (
    'avg_over_time(clamp_min(100 - (avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5m])) * 100), 0)'
    f"[{PERIOD}:30s])"
)
MEMORY_QUERY: Final = (
    f"100*avg_over_time(((1-node_memory_MemAvailable_bytes/node_memory_MemTotal_bytes))[{PERIOD}:30s])"
)


class AnswerError(ValueError):
    """An answer that does not have the form of an instant query's."""


class _Sample(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Vector(msgspec.Struct):
    result: list[_Sample]


class _Answer(msgspec.Struct):
    data: _Vector | None = None
    error: str = ""


def values_of(answer: bytes) -> dict[str, float]:
    """Return instance -> value of an instant query's vector, without samples that are not finite numbers.

    Raises AnswerError with what Prometheus says is wrong, or with what is wrong with its answer.
    """
    try:
        decoded = msgspec.json.decode(answer, type=_Answer)
    except msgspec.DecodeError as error:
        raise AnswerError(str(error)) from error
    if decoded.data is None:
        raise AnswerError(decoded.error or "no data")
    found = ((sample.metric.get("instance", ""), parse_float(sample.value[1])) for sample in decoded.data.result)
    return {instance: value for instance, value in found if instance and value is not None and isfinite(value)}


def what_is_wrong(answer: bytes) -> str:
    """Return the error text of a failed query's answer; an answer that does not come from Prometheus itself (a proxy's,
    say) is quoted shortly.
    """
    try:
        said = msgspec.json.decode(answer, type=_Answer).error
    except msgspec.DecodeError:
        said = ""
    return said or answer.decode(errors="replace").strip()[:LONGEST]


def node_metrics(name: str, cpu: Mapping[str, float], memory: Mapping[str, float], measured_at: str) -> Object:
    """Return the NodeMetrics object that holds a node's averages; `measured_at` is an RFC 3339 time."""
    averages: Object = {
        resource: {PERIOD: values[name]} for resource, values in (("cpu", cpu), ("memory", memory)) if name in values
    }
    return {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": KIND,
        "metadata": {"name": name, "annotations": {ANNOTATION: msgspec.json.encode(averages).decode()}},
        "timestamp": measured_at,
        "window": PERIOD,
        "usage": {},
    }
