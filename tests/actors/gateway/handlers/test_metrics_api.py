"""What nodes and pods use: measured when it was, simulated when it was not."""

from typing import Any

import pytest

from pumice.actors.gateway.handlers.metrics_api import add_usage, node_metrics, pod_metrics

NOW = 1000.0
STAMP = "1970-01-01T00:16:40Z"


def pod(*containers: dict[str, Any], phase: str = "Running", node: str = "n1") -> dict[str, Any]:
    listed = [{"name": f"c{number}", "resources": {"requests": one}} for number, one in enumerate(containers)]
    metadata = {"name": "p", "namespace": "ns", "labels": {"app": "a"}, "uid": "u"}
    return {"metadata": metadata, "spec": {"nodeName": node, "containers": listed}, "status": {"phase": phase}}


def usage_of(*pods: dict[str, Any]) -> dict[str, dict[str, str]]:
    usage: dict[str, Any] = {}
    for one in pods:
        add_usage(usage, one)
    nodes = [{"metadata": {"name": name}} for name in ("n1", "n2")]
    return {one["metadata"]["name"]: one["usage"] for one in node_metrics(nodes, usage, [], NOW)}


def test_a_running_container_uses_what_it_requests() -> None:
    made = pod_metrics(pod({"cpu": "500m", "memory": "1Gi"}, {}), NOW)
    assert made == {
        "kind": "PodMetrics",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": {"name": "p", "namespace": "ns", "labels": {"app": "a"}, "creationTimestamp": STAMP},
        "timestamp": STAMP,
        "window": "30s",
        "containers": [
            {"name": "c0", "usage": {"cpu": "500m", "memory": "1Gi"}},
            {"name": "c1", "usage": {"cpu": "0", "memory": "0"}},
        ],
    }


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_a_pod_that_does_not_run_uses_nothing(phase: str) -> None:
    assert pod_metrics(pod({"cpu": "1"}, phase=phase), NOW) is None
    assert usage_of(pod({"cpu": "1"}, phase=phase))["n1"]["cpu"] == "0"


def test_a_node_uses_what_its_pods_use() -> None:
    used = usage_of(
        pod({"cpu": "500m", "memory": "1Gi"}, {"cpu": "2"}), pod({"cpu": "1"}), pod({"memory": "1Mi"}, node="n2")
    )
    assert used == {"n1": {"cpu": "3500m", "memory": "1Gi"}, "n2": {"cpu": "0", "memory": "1Mi"}}


def test_a_sidecar_counts_and_an_init_container_does_not() -> None:
    one = pod({"cpu": "1"})
    one["spec"]["initContainers"] = [
        {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}},
        {"name": "first", "resources": {"requests": {"cpu": "4"}}},
    ]
    assert usage_of(one)["n1"]["cpu"] == "3"


def test_a_measured_node_has_its_own_figures() -> None:
    stored = {
        "kind": "NodeMetrics",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": {"name": "n1", "resourceVersion": "7"},
        "timestamp": "1970-01-01T00:00:00Z",
        "window": "1m0s",
        "usage": {"cpu": "7", "memory": "8Gi"},
    }
    node = {"metadata": {"name": "n1", "labels": {"zone": "z"}}}
    (made,) = node_metrics([node], {}, [stored], NOW)
    assert (made["usage"], made["window"], made["timestamp"]) == (stored["usage"], "1m0s", "1970-01-01T00:00:00Z")
    assert made["metadata"]["labels"] == {"zone": "z"}
    assert made["metadata"]["resourceVersion"] == "7"


def test_averages_in_an_annotation_are_no_usage() -> None:
    """A Prometheus gives per cent only: `kubectl top` then shows the simulated figures."""
    stored = {"metadata": {"name": "n1", "annotations": {"pumice.dev/node-usage": "{}"}}, "usage": {}}
    (made,) = node_metrics([{"metadata": {"name": "n1"}}], {}, [stored], NOW)
    assert made["usage"] == {"cpu": "0", "memory": "0"}
    assert made["kind"] == "NodeMetrics"
