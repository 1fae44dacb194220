"""Where a node's load is read, and what is made of broken sources."""

import json
from typing import Any

import pytest

from pumice.core.objects.metadata import Object
from pumice.core.objects.node import read_node
from pumice.core.objects.node_usage import ANNOTATION, NodeUsage, read_usage, usage_of
from tests.kit import node

STAMP, SECONDS = "2026-01-01T00:00:00Z", 1767225600.0
WRITTEN = {"cpu": {"10m": 40, "5m": 1.5}, "memory": {"10m": 30}, "measuredAt": STAMP}


def metrics(**extra: Any) -> Object:
    usage = {"cpu": "2", "memory": "4Gi"}
    return {"kind": "NodeMetrics", "metadata": {"name": "n0"}, "timestamp": STAMP, "usage": usage, **extra}


def annotated(data: object) -> dict[str, str]:
    return {ANNOTATION: data if isinstance(data, str) else json.dumps(data)}


def test_handed_in_comes_first() -> None:
    spec = read_node(node("n0", annotations=annotated(WRITTEN)))
    found = usage_of(spec, {"n0": {"cpu": {"10m": 7}}}, {"n0": metrics()}, 99.0)
    assert found == NodeUsage(99.0, {"10m": 7.0}, {})


def test_metrics_come_before_the_nodes_annotation() -> None:
    spec = read_node(node("n0", cpu="8", memory="16Gi", annotations=annotated(WRITTEN)))
    assert usage_of(spec, {"n1": {}}, {"n0": metrics()}, 99.0) == NodeUsage(
        SECONDS, {"10m": 25.0, "5m": 25.0}, {"10m": 25.0, "5m": 25.0}
    )


def test_averages_on_the_metrics_come_before_its_sample() -> None:
    averages = metrics(metadata={"name": "n0", "annotations": annotated({"cpu": {"10m": 9}})})
    assert usage_of(read_node(node("n0")), {}, {"n0": averages}, 99.0) == NodeUsage(SECONDS, {"10m": 9.0}, {})


def test_the_nodes_annotation_comes_last() -> None:
    spec = read_node(node("n0", annotations=annotated(WRITTEN)))
    assert usage_of(spec, {}, {}, 99.0) == NodeUsage(SECONDS, {"10m": 40.0, "5m": 1.5}, {"10m": 30.0})
    assert usage_of(read_node(node("n0")), {}, {}, 99.0) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_an_annotation_that_cannot_be_read_says_nothing(text: str) -> None:
    assert usage_of(read_node(node("n0", annotations=annotated(text))), {}, {}, 99.0) is None


def test_an_annotation_without_a_time_was_measured_never() -> None:
    found = usage_of(read_node(node("n0", annotations=annotated({"cpu": {"10m": 1}}))), {}, {}, 99.0)
    assert found == NodeUsage(0.0, {"10m": 1.0}, {})


def test_values_that_are_no_numbers_are_left_out() -> None:
    assert read_usage({"cpu": {"10m": "1", "5m": True}, "memory": [1]}, 5.0) == NodeUsage(5.0, {}, {})


@pytest.mark.parametrize(("stamp", "seconds"), [(STAMP, SECONDS), (12, 12.0), ("yesterday", 0.0), ({}, 0.0), ("", 0.0)])
def test_when_it_was_measured(stamp: object, seconds: float) -> None:
    assert read_usage({"measuredAt": stamp}, 5.0).measured_at == seconds


def test_a_sample_of_what_a_node_cannot_allocate_is_none() -> None:
    spec = read_node(node("n0", cpu="0", memory="16Gi"))
    found = usage_of(spec, {}, {"n0": metrics(usage={"cpu": "1", "memory": "lots"})}, 0.0)
    assert found == NodeUsage(SECONDS, {}, {})
