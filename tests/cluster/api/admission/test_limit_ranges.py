"""LimitRanges: what they default to, what they give to pods, and what they refuse."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.messages.commands import Create
from pumice.core.messages.replies import Accepted, Refused
from pumice.core.objects.metadata import Object
from pumice.storage.codec import pack
from tests.actors.cluster import Cluster
from tests.kit.pods import pod


def limit_range(*limits: Object, name: str = "limits", namespace: str = "default") -> Object:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": {"limits": list(limits)}}


def bare_pod(resources: Object | None = None) -> Object:
    found = pod("p")
    found["spec"]["containers"] = [{"name": "main", "image": "x", "resources": resources or {}}]
    return found


def resources_of(cluster: Cluster, given_: Object | None = None) -> Object:
    found: Object = cluster.create(bare_pod(given_))["spec"]["containers"][0]["resources"]
    return found


@pytest.mark.parametrize(
    ("item", "default", "request_"),
    [
        ({"max": {"cpu": 2}}, {"cpu": "2"}, {"cpu": "2"}),
        ({"min": {"cpu": "1"}}, {}, {"cpu": "1"}),
        ({"default": {"cpu": "3"}, "max": {"cpu": "4"}, "min": {"cpu": "1"}}, {"cpu": "3"}, {"cpu": "3"}),
        ({"default": {"cpu": "3"}, "defaultRequest": {"cpu": "2"}}, {"cpu": "3"}, {"cpu": "2"}),
    ],
)
def test_what_a_range_defaults_to(item: Object, default: Object, request_: Object) -> None:
    found = Cluster().create(limit_range({"type": "Container", **item}))["spec"]["limits"][0]
    assert (found["default"], found["defaultRequest"]) == (default, request_)


def test_a_container_gets_what_it_left_out() -> None:
    cluster = Cluster()
    cluster.create(
        limit_range({"type": "Container", "default": {"cpu": "2", "memory": "1Gi"}, "defaultRequest": {"cpu": "500m"}})
    )
    assert resources_of(cluster, {"requests": {"memory": "512Mi"}}) == {
        "requests": {"memory": "512Mi", "cpu": "500m"},
        "limits": {"cpu": "2", "memory": "1Gi"},
    }
    note = cluster.get("Pod", "p")["metadata"]["annotations"]["kubernetes.io/limit-ranger"]
    assert note == "LimitRanger plugin set: cpu request for container main; cpu, memory limit for container main"


def test_other_namespaces_are_left_alone() -> None:
    cluster = Cluster()
    cluster.create(limit_range({"type": "Container", "default": {"cpu": "2"}}, namespace="other"))
    assert resources_of(cluster) == {}


@pytest.mark.parametrize(
    ("item", "resources", "why"),
    [
        (
            {"type": "Container", "max": {"cpu": "1"}},
            {"limits": {"cpu": "2"}},
            "maximum cpu usage per Container is 1, but limit is 2",
        ),
        (
            {"type": "Container", "min": {"cpu": "1"}},
            {"requests": {"cpu": "500m"}},
            "minimum cpu usage per Container is 1, but request is 500m",
        ),
        (
            {"type": "Pod", "max": {"cpu": "1"}},
            {"requests": {"cpu": "500m"}},
            "maximum cpu usage per Pod is 1.  No limit is specified",
        ),
        (
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        (
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
            {"requests": {"cpu": "1"}},
            "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
        ),
    ],
)
def test_a_pod_outside_is_forbidden(item: Object, resources: Object, why: str) -> None:
    cluster = Cluster()
    cluster.create(limit_range(item))
    reply = cluster.refused(bare_pod(resources))
    assert (reply.code, reply.reason) == (403, "Forbidden")
    assert reply.message == f'pods "p" is forbidden: {why}'


def test_several_problems_are_listed() -> None:
    cluster = Cluster()
    cluster.create(limit_range({"type": "Container", "max": {"cpu": "1", "memory": "1Gi"}}))
    reply = cluster.refused(bare_pod({"limits": {"cpu": "2", "memory": "2Gi"}}))
    assert reply.message.startswith('pods "p" is forbidden: [maximum cpu usage')
    assert "but limit is 2Gi]" in reply.message


def test_a_pod_counts_with_its_largest_init_container() -> None:
    cluster = Cluster()
    cluster.create(limit_range({"type": "Pod", "max": {"cpu": "2"}}))
    found = bare_pod({"limits": {"cpu": "1"}})
    found["spec"]["initContainers"] = [{"name": "i", "image": "x", "resources": {"limits": {"cpu": "3"}}}]
    assert "but limit is 3" in cluster.refused(found).message
    found["spec"]["initContainers"][0]["resources"]["limits"]["cpu"] = "2"
    cluster.create(found)


def test_a_claim_outside_is_forbidden() -> None:
    cluster = Cluster()
    cluster.create(limit_range({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "5Gi"}}))

    def claim(size: str) -> Object:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        meta = {"name": f"c{size.lower()}", "namespace": "default"}
        return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}

    assert "is 1Gi, but request is 1Mi" in cluster.refused(claim("1Mi")).message
    assert "is 5Gi, but request is 6Gi" in cluster.refused(claim("6Gi")).message
    cluster.create(claim("5Gi"))


@pytest.mark.parametrize(
    ("item", "field"),
    [
        ({"type": "Box"}, "spec.limits[0].type"),
        ({"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}, "spec.limits[0].min[cpu]"),
        ({"type": "Container", "max": {"cpu": "x"}}, "spec.limits[0].max[cpu]"),
        ({"type": "Pod", "default": {"cpu": "1"}}, "spec.limits[0].default"),
    ],
)
def test_a_bad_range_is_refused(item: Object, field: str) -> None:
    reply = Cluster().refused(limit_range(item))
    assert field in [cause["field"] for cause in reply.details["causes"]]


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_a_limit_passes_exactly_within_its_range(low: int, high: int, asked: int) -> None:
    cluster = Cluster()
    bounds = {"min": {"cpu": str(low)}, "max": {"cpu": str(high)}}
    made = cluster.ask(Create(pack(limit_range({"type": "Container", **bounds}))))
    assert isinstance(made, Accepted if low <= high else Refused)
    if low <= high:
        amounts = {"cpu": str(asked)}
        reply = cluster.ask(Create(pack(bare_pod({"requests": amounts, "limits": amounts}))))
        assert isinstance(reply, Accepted if low <= asked <= high else Refused)
