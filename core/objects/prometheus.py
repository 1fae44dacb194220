"""What a Prometheus is asked about the nodes' load, and what its answers mean. Source: Volcano
`metrics/source/metrics_client_prometheus.go`.

Its two queries a node are one query for all nodes here: the label `instance` is the node's name in both. A node that
the answer does not have was not measured; Volcano takes it for idle.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.core.objects.node_usage import ANNOTATION, KIND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.core.objects.metadata import Object

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
    """What came back is no answer to an instant query."""


class _Sample(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Vector(msgspec.Struct):
    result: list[_Sample]


class _Answer(msgspec.Struct):
    data: _Vector | None = None
    error: str = ""


def values_of(answer: bytes) -> dict[str, float]:
    """Instance -> value of an instant query's vector; samples that are no finite number are left out.

    Raises AnswerError with what Prometheus says is wrong, or with what is wrong with its answer.
    """
    try:
        decoded = msgspec.json.decode(answer, type=_Answer)
    except msgspec.DecodeError as error:
        raise AnswerError(str(error)) from error
    if decoded.data is None:
        raise AnswerError(decoded.error or "no data")
    found = ((sample.metric.get("instance", ""), _number(sample.value[1])) for sample in decoded.data.result)
    return {instance: value for instance, value in found if instance and isfinite(value)}


def what_is_wrong(answer: bytes) -> str:
    """What a failed query's answer says; what does not come from Prometheus itself (a proxy, say) is quoted shortly."""
    try:
        said = msgspec.json.decode(answer, type=_Answer).error
    except msgspec.DecodeError:
        said = ""
    return said or answer.decode(errors="replace").strip()[:LONGEST]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def node_metrics(name: str, cpu: Mapping[str, float], memory: Mapping[str, float], measured_at: str) -> Object:
    """The NodeMetrics object that holds a node's averages; `measured_at` is an RFC 3339 time."""
    averages: dict[str, Any] = {
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
