"""What a pod asks for while it is resized in place."""

import pytest

from pumice.core.objects.metadata import Object
from pumice.core.objects.pod_template import FIX, counted_spec
from pumice.core.state.view import View
from pumice.core.state.volumes import volume_rules
from tests.core.plugins.world import configuration
from tests.kit.nodes import node
from tests.kit.pods import pod

INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
DEFERRED = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}


def resized(spec: str, actual: str | None, allocated: str | None, condition: Object | None = None) -> Object:
    made = pod("p", cpu=spec, node="n1")
    said: Object = {"name": made["spec"]["containers"][0]["name"]}
    if actual is not None:
        said["resources"] = {"requests": {"cpu": actual}}
    if allocated is not None:
        said["allocatedResources"] = {"cpu": allocated}
    made["status"] = {"phase": "Running", "containerStatuses": [said], "conditions": [condition] if condition else []}
    return made


def cpu(spec: Object) -> str:
    found: str = spec["containers"][0]["resources"]["requests"]["cpu"]
    return found


@pytest.mark.parametrize(
    ("spec", "actual", "allocated", "condition", "counts"),
    [
        ("1", "3", "3", None, "3"),
        ("3", "1", "1", None, "3"),
        ("1", "1", "2", None, "2"),
        ("3", "1", "1", DEFERRED, "3"),
        ("3", "1", "1", INFEASIBLE, "1"),
        ("3", "1", "2", INFEASIBLE, "2"),
        ("1", None, "3", None, "1"),  # without status.resources nothing of the status counts
        ("1500m", "1.5", "1500m", None, "1500m"),
    ],
)
def test_largest_counts_unless_the_resize_is_infeasible(
    spec: str, actual: str | None, allocated: str | None, condition: Object | None, counts: str
) -> None:
    made = resized(spec, actual, allocated, condition)
    assert cpu(counted_spec(made)) == counts
    assert made["spec"]["containers"][0]["resources"]["requests"]["cpu"] == spec, "the pod itself is left alone"


def test_only_sidecars_among_the_first_containers_are_resized() -> None:
    made = resized("1", None, None)
    first = [
        {"name": "init", "resources": {"requests": {"cpu": "1"}}},
        {"name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
    ]
    made["spec"]["initContainers"] = first
    said = {"resources": {"requests": {"cpu": "4"}}}
    made["status"]["initContainerStatuses"] = [{"name": "init", **said}, {"name": "side", **said}]
    counted = counted_spec(made)["initContainers"]
    assert [each["resources"]["requests"]["cpu"] for each in counted] == ["1", "4"]


def test_view_follows_the_status_unless_the_switch_says_not() -> None:
    view = View()
    view.apply("Node", node("n1"))
    view.apply("Pod", resized("1", "1", "1"))
    assert used(view) == 1000
    view.apply("Pod", resized("1", "3", "3"))
    assert used(view) == 3000
    assert used(view, fix=[FIX]) == 1000
    assert used(view) == 3000
    view.apply("Pod", resized("1", "1", "1"))
    assert used(view) == 1000
    assert view.check() == []


def used(view: View, fix: list[str] | None = None) -> float:
    snapshot = view.snapshot(volume_rules(configuration([], fix=fix or [])))
    return float(snapshot.nodes.used[0, 0])
