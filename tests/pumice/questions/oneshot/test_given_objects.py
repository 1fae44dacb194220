"""What admission may ask of objects that were handed in, and not only of an api."""

from __future__ import annotations

from pumice.questions.oneshot.prepare import GivenObjects, admitted
from tests.kit.pods import pod


def limits(namespace: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "limits", "namespace": namespace},
        "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "500m"}}]},
    }


def test_all_of_a_kind_or_of_a_namespace() -> None:
    given = GivenObjects([limits("b"), pod("p"), limits("a")])
    assert [each["metadata"]["namespace"] for each in given.all("LimitRange")] == ["a", "b"]
    assert [each["metadata"]["namespace"] for each in given.all("LimitRange", "b")] == ["b"]


def test_limits_of_its_namespace_fill_in_a_pods_requests() -> None:
    bare = pod("p", cpu=None, memory=None)
    del bare["metadata"]["uid"], bare["status"]  # of an object that an api has taken, nothing is filled in again
    obj, problems = admitted(bare, GivenObjects([bare, limits("default"), limits("other")]))
    assert problems == []
    assert obj["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m"}
