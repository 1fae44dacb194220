"""NodeMetrics as per cent of allocatable."""

from __future__ import annotations

from typing import Any

from pumice.load.documents import usage_of


def node(name: str, **allocatable: str) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": allocatable}}


def metrics(name: str, **usage: str) -> dict[str, Any]:
    return {"kind": "NodeMetrics", "metadata": {"name": name}, "usage": usage}


def test_usage_over_allocatable_fills_both_averages() -> None:
    found = usage_of([node("a", cpu="4", memory="8Gi"), metrics("a", cpu="1500m", memory="2Gi")])
    assert found == {"a": {"cpu": {"10m": 37.5, "5m": 37.5}, "memory": {"10m": 25.0, "5m": 25.0}}}


def test_nodes_without_metrics_and_metrics_without_nodes_are_left_out() -> None:
    assert usage_of([node("a", cpu="4"), metrics("b", cpu="1")]) == {}


def test_a_resource_that_the_node_does_not_have_is_left_out() -> None:
    assert usage_of([metrics("a", cpu="1", memory="1Gi"), node("a", cpu="2")]) == {
        "a": {"cpu": {"10m": 50.0, "5m": 50.0}}
    }
