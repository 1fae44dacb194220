"""What a gang needs at least."""

from typing import Any

import pytest

from pumice.cluster.kube.min_resources import min_resources, pod_min_resources, pod_usage, texts
from pumice.core.objects.metadata import Object


def spec(requests: Object | None = None, limits: Object | None = None, **more: Any) -> Object:
    return {"containers": [{"resources": {"requests": requests or {}, "limits": limits or {}}}], **more}


def task(name: str, replicas: int, cpu: str, least: int | None = None, priority_class: str = "") -> Object:
    pod: Object = spec({"cpu": cpu})
    if priority_class:
        pod["priorityClassName"] = priority_class
    return {"name": name, "replicas": replicas, "template": {"spec": pod}} | (
        {} if least is None else {"minAvailable": least}
    )


def cpu(tasks: list[Object], least: int, **priorities: int) -> str:
    return min_resources(tasks, least, priorities).get("cpu", "0")


def test_one_pod_counts_itself_its_requests_and_its_limits() -> None:
    given = spec({"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "2", "hugepages-2Mi": "4Mi"}, {"cpu": "2"})
    assert texts(pod_usage(given)) == {
        "count/pods": "1",
        "pods": "1",
        "cpu": "1",
        "requests.cpu": "1",
        "limits.cpu": "2",
        "memory": "1Gi",
        "requests.memory": "1Gi",
        "nvidia.com/gpu": "2",
        "requests.nvidia.com/gpu": "2",
        "hugepages-2Mi": "4Mi",
        "requests.hugepages-2Mi": "4Mi",
    }


@pytest.mark.parametrize(
    ("given", "total"),
    [
        (spec({"cpu": "1"}, overhead={"cpu": "100m"}), "1100m"),
        (spec({"cpu": "1"}, initContainers=[{"resources": {"requests": {"cpu": "3"}}}]), "3"),
        (spec({"cpu": "1"}, initContainers=[{"resources": {"requests": {"cpu": "500m"}}}]), "1"),
        (
            spec({"cpu": "1"}, initContainers=[{"restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}}]),
            "3",
        ),
        (
            spec(
                {"cpu": "1"},
                initContainers=[
                    {"restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}},
                    {"resources": {"requests": {"cpu": "5"}}},
                ],
            ),
            "7",
        ),
    ],
)
def test_init_containers_sidecars_and_overhead(given: Object, total: str) -> None:
    assert texts(pod_usage(given))["cpu"] == total


def test_all_of_a_gang_is_all_of_it() -> None:
    assert cpu([task("a", 3, "1", 3), task("b", 2, "500m", 2)], 5) == "4"


def test_below_the_tasks_minimums_the_first_ones_count() -> None:
    assert cpu([task("a", 3, "1", 3), task("b", 2, "10", 2)], 4) == "13"
    assert cpu([task("a", 3, "1", 3), task("b", 2, "10", 2)], 2) == "2"


def test_above_them_every_minimum_counts_and_then_the_rest() -> None:
    tasks = [task("a", 4, "1", 1), task("b", 4, "10", 1)]
    assert cpu(tasks, 2) == "11"
    assert cpu(tasks, 4) == "13"
    assert cpu(tasks, 6) == "24"
    assert cpu(tasks, 8) == "44"


def test_higher_priority_classes_count_first() -> None:
    tasks = [task("a", 3, "1", 3), task("b", 3, "10", 3, "high")]
    assert cpu(tasks, 3, high=100) == "30"
    assert cpu(tasks, 3) == "3"


def test_nothing_is_needed_of_nothing() -> None:
    assert min_resources([], 0, {}) == {}
    assert pod_min_resources(spec({"cpu": "1"}), 0) == {}
    assert pod_min_resources(spec({"cpu": "100m"}), 3)["cpu"] == "300m"
