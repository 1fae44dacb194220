"""Admission of pods, priority classes and workloads."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.cluster.api.admission.amounts import amount_problem
from pumice.core.messages.replies import Accepted
from pumice.core.objects.metadata import Object
from tests.actors.cluster import Cluster, fields
from tests.kit.pods import pod
from tests.kit.priority_classes import priority_class

# --- pods


def test_a_pods_defaults(cluster: Cluster) -> None:
    bare = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}
    stored = cluster.create(bare)
    assert stored["spec"] | {"containers": []} == {
        "containers": [],
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    assert stored["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


def test_a_new_pod_is_pending_whatever_it_says(cluster: Cluster) -> None:
    assert cluster.create(pod("p", node="n1", phase="Running"))["status"]["phase"] == "Pending"


def test_requests_come_from_limits_and_numbers_become_text(cluster: Cluster) -> None:
    given_ = pod("p")
    given_["spec"]["containers"][0]["resources"] = {"limits": {"cpu": 2, "memory": "1Gi"}, "requests": {"cpu": 0.5}}
    resources = cluster.create(given_)["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}}


QUALITIES: list[tuple[list[Object], str]] = [
    ([{}], "BestEffort"),
    ([{"requests": {"cpu": "1"}}], "Burstable"),
    ([{"limits": {"cpu": "1", "memory": "1Gi"}}], "Guaranteed"),
    ([{"limits": {"cpu": "1", "memory": "1Gi"}}, {"limits": {}}], "Burstable"),
    ([{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}], "Burstable"),
]


@pytest.mark.parametrize(("resources", "expected"), QUALITIES)
def test_quality_of_service(cluster: Cluster, resources: list[Object], expected: str) -> None:
    given_ = pod("p")
    given_["spec"]["containers"] = [{"name": f"c{n}", "resources": each} for n, each in enumerate(resources)]
    assert cluster.create(given_)["status"]["qosClass"] == expected


def test_priority_comes_from_the_class(cluster: Cluster) -> None:
    cluster.create(priority_class("high", 1000, preemption_policy="Never"))
    spec = cluster.create(pod("p", priority_class="high"))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")
    assert cluster.create(pod("s", priority_class="system-node-critical"))["spec"]["priority"] == 2_000_001_000


def test_a_global_default_is_for_pods_without_a_class(cluster: Cluster) -> None:
    cluster.create(priority_class("usual", 7, default=True))
    spec = cluster.create(pod("p"))["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (7, "usual")
    cluster.delete("PriorityClass", "usual", "")
    assert cluster.create(pod("q"))["spec"]["priority"] == 0


def test_an_unknown_class_is_forbidden(cluster: Cluster) -> None:
    reply = cluster.refused(pod("p", priority_class="none"))
    assert (reply.code, reply.reason) == (403, "Forbidden")
    assert reply.message == 'pods "p" is forbidden: no PriorityClass with name none was found'


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
Change = Callable[[Object], object]
CASES: list[tuple[Change, str]] = [
    (lambda s: s.update(containers=[]), "spec.containers"),
    (lambda s: s.update(containers="none"), "spec.containers"),
    (lambda s: s["containers"][0].pop("name"), "spec.containers[0].name"),
    (lambda s: s["containers"].append(dict(s["containers"][0])), "spec.containers[1].name"),
    (lambda s: s.update(restartPolicy="Sometimes"), "spec.restartPolicy"),
    (lambda s: s.update(terminationGracePeriodSeconds=-1), "spec.terminationGracePeriodSeconds"),
    (lambda s: s.update(nodeSelector={"a b": "c"}), "spec.nodeSelector"),
    (lambda s: s.update(nodeSelector={"a": 1}), "spec.nodeSelector[a]"),
    (lambda s: s.update(tolerations=[{"key": "a", "operator": "Like"}]), "spec.tolerations[0].operator"),
    (lambda s: s.update(tolerations=[{"key": "a", "effect": "Never"}]), "spec.tolerations[0].effect"),
    (lambda s: s.update(tolerations=[{"operator": "Exists", "value": "v"}]), "spec.tolerations[0].value"),
    (lambda s: s["containers"][0].update(ports=[{"hostPort": 70000}]), "spec.containers[0].ports[0].hostPort"),
    (
        lambda s: s["containers"][0].update(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
        "spec.containers[0].resources.requests[cpu]",
    ),
    (lambda s: s.update(overhead={"cpu": "-1"}), "spec.overhead[cpu]"),
    (lambda s: s.update(topologySpreadConstraints=[{"maxSkew": 1}]), "spec.topologySpreadConstraints[0].topologyKey"),
    (
        lambda s: s.update(
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]
                    }
                }
            }
        ),
        f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values",
    ),
    (
        lambda s: s.update(
            affinity={
                "podAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 101, "podAffinityTerm": {"topologyKey": "zone"}}
                    ]
                }
            }
        ),
        "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight",
    ),
]


@pytest.mark.parametrize(("change", "field"), CASES, ids=[field for _, field in CASES])
def test_each_rule_names_its_field(cluster: Cluster, change: Change, field: str) -> None:
    given_ = pod("p")
    change(given_["spec"])
    assert fields(cluster.refused(given_)) == [field]


@pytest.mark.parametrize(
    ("name", "amount", "good"),
    [
        ("cpu", "1", True),
        ("cpu", "0", True),
        ("cpu", 2, True),
        ("cpu", "-1m", False),
        ("cpu", "abc", False),
        ("cpu", "", False),
        ("cpu", "9223372036854775", True),
        ("cpu", "9223372036854776", False),
        ("memory", "9223372036854775807", True),
        ("memory", "9223372036854775808", False),
        ("memory", "8Ei", False),
        ("memory", "7Ei", True),
        ("memory", "1e30", False),
        ("memory", "99999999Ei", False),
        ("memory", "1n", True),
        ("nvidia.com/gpu", "1e18", False),
        ("nvidia.com/gpu", 8.0, True),
        ("hugepages-2Mi", "1Gi", True),
    ],
)
def test_amounts_are_readable_not_negative_and_fit(name: str, amount: str | float, good: bool) -> None:
    assert (amount_problem(name, amount) is None) is good


@given(st.text(max_size=12) | st.integers() | st.floats(allow_nan=True))
def test_no_amount_is_a_surprise(amount: str | float) -> None:
    problem = amount_problem("memory", amount)
    assert problem is None or problem


def test_amounts_of_several_containers_fit_together(cluster: Cluster) -> None:
    given_ = pod("p")
    given_["spec"]["containers"] = [
        {"name": f"c{number}", "resources": {"requests": {"memory": "5Ei"}}} for number in range(2)
    ]
    assert fields(cluster.refused(given_)) == ["spec.containers"]


def test_a_pod_larger_than_any_node_is_welcome(cluster: Cluster) -> None:
    cluster.create(pod("p", cpu="1000000", memory="1000Ti"))


@pytest.mark.parametrize(
    ("annotations", "good"),
    [
        ({"volcano.sh/jdb-min-available": "2"}, True),
        ({"volcano.sh/jdb-min-available": "50%"}, True),
        ({"volcano.sh/jdb-min-available": "+3"}, True),
        ({"volcano.sh/jdb-min-available": "%5%"}, True),  # Volcano takes all signs out
        ({"volcano.sh/jdb-min-available": "-3"}, False),
        ({"volcano.sh/jdb-min-available": "3000000000"}, False),
        ({"volcano.sh/jdb-min-available": "100%"}, False),
        ({"volcano.sh/jdb-max-unavailable": "0"}, False),
        ({"volcano.sh/jdb-max-unavailable": "some"}, False),
        ({"volcano.sh/jdb-min-available": "1", "volcano.sh/jdb-max-unavailable": "1"}, False),
    ],
)
def test_budget_annotations(cluster: Cluster, annotations: dict[str, str], good: bool) -> None:
    given_ = pod("p", annotations=annotations)
    if good:
        cluster.create(given_)
    else:
        assert all(field.startswith("metadata.annotations") for field in fields(cluster.refused(given_)))


def test_of_a_pods_spec_little_may_change(cluster: Cluster) -> None:
    gated = pod("p")
    gated["spec"]["schedulingGates"] = [{"name": "a"}, {"name": "b"}]
    cluster.create(gated)
    assert fields(cluster.patch("Pod", "p", {"spec": {"nodeName": "n1"}})) == ["spec"]
    assert fields(cluster.patch("Pod", "p", {"spec": {"schedulingGates": [{"name": "c"}]}})) == ["spec.schedulingGates"]
    assert isinstance(cluster.patch("Pod", "p", {"spec": {"schedulingGates": [{"name": "b"}]}}), Accepted)
    assert isinstance(cluster.patch("Pod", "p", {"metadata": {"labels": {"a": "b"}}}), Accepted)


@pytest.mark.parametrize(
    ("gates", "field"),
    [
        ([{"name": "two words"}], "spec.schedulingGates[0].name"),
        ([{"name": "a"}, {"name": "a"}], "spec.schedulingGates[1]"),
    ],
)
def test_gates_are_qualified_names_each_once(cluster: Cluster, gates: list[Object], field: str) -> None:
    gated = pod("p")
    gated["spec"]["schedulingGates"] = gates
    assert fields(cluster.refused(gated)) == [field]


# --- priority classes


@pytest.mark.parametrize(
    ("found", "field"),
    [
        (priority_class("big", 1_000_000_001), "value"),
        (priority_class("small", -(2**31) - 1), "value"),
        (priority_class("system-mine", 1), "metadata.name"),
        (priority_class("odd", 1, preemption_policy="Maybe"), "preemptionPolicy"),
    ],
)
def test_priority_classes(cluster: Cluster, found: Object, field: str) -> None:
    assert fields(cluster.refused(found)) == [field]


def test_there_is_one_global_default(cluster: Cluster) -> None:
    cluster.create(priority_class("first", 1, default=True))
    assert fields(cluster.refused(priority_class("second", 2, default=True))) == ["globalDefault"]


def test_a_priority_classes_value_is_fixed(cluster: Cluster) -> None:
    cluster.create(priority_class("high", 1))
    assert fields(cluster.patch("PriorityClass", "high", {"value": 2}, "")) == ["value"]


# --- workloads


WEB: Object = {"labels": {"app": "web"}}
SPEC: Object = {"containers": [{"name": "c"}]}
NEVER: Object = {**SPEC, "restartPolicy": "Never"}


def workload(kind: str = "ReplicaSet", **spec: Any) -> Object:
    template = {"metadata": WEB, "spec": SPEC}
    full = {"selector": {"matchLabels": {"app": "web"}}, "template": template} | spec
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w"}, "spec": full}


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet"])
def test_workloads(cluster: Cluster, kind: str) -> None:
    assert cluster.create(workload(kind))["spec"]["replicas"] == 1
    assert fields(cluster.patch(kind, "w", {"spec": {"selector": {"matchLabels": {"a": "b"}}}})) == ["spec.selector"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"replicas": -1}, "spec.replicas"),
        ({"selector": {"matchExpressions": [{"key": "app", "operator": "Near"}]}}, "spec.selector"),
        ({"selector": {"matchLabels": {"app": "db"}}}, "spec.template.metadata.labels"),
        ({"selector": {}}, "spec.selector"),
        ({"template": {"metadata": WEB, "spec": NEVER}}, "spec.template.spec.restartPolicy"),
        ({"template": {"metadata": WEB, "spec": {}}}, "spec.template.spec.containers"),
    ],
)
def test_broken_workloads(cluster: Cluster, spec: Object, field: str) -> None:
    assert fields(cluster.refused(workload(**spec))) == [field]


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet"])
def test_the_labels_of_a_template_are_no_selector(cluster: Cluster, kind: str) -> None:
    assert fields(cluster.refused(workload(kind, selector=None))) == ["spec.selector", "spec.template.metadata.labels"]
