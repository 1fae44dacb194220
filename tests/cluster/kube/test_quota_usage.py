"""What a pod that is resized in place counts in a quota: the larger of what it asks for and what its node gave it."""

from __future__ import annotations

import pytest

from pumice.cluster.kube.min_resources import texts
from pumice.cluster.kube.quota_usage import usage_of_pod
from pumice.core.objects.metadata import Object


def pod(asked: str, given: str, *conditions: Object, phase: str = "Running") -> Object:
    resources = {"requests": {"cpu": asked}, "limits": {"cpu": asked}}
    said = {"name": "c", "resources": {"requests": {"cpu": given}, "limits": {"cpu": given}}}
    status = {"phase": phase, "containerStatuses": [said], "conditions": list(conditions)}
    return {"kind": "Pod", "spec": {"containers": [{"name": "c", "resources": resources}]}, "status": status}


@pytest.mark.parametrize(
    ("asked", "given", "reason", "counts"),
    [
        ("1", "1", "", "1"),
        ("3", "1", "", "3"),  # it grows
        ("1", "3", "", "3"),  # it shrinks, and has not yet
        ("3", "1", "Deferred", "3"),  # its node will try again
        ("3", "1", "Infeasible", "1"),  # and never will
    ],
)
def test_a_resized_pod_counts_the_larger_amounts(asked: str, given: str, reason: str, counts: str) -> None:
    pending = [{"type": "PodResizePending", "status": "True", "reason": reason}] if reason else []
    used = texts(usage_of_pod(pod(asked, given, *pending)))
    assert (used["requests.cpu"], used["limits.cpu"], used["cpu"]) == (counts, counts, counts)


def test_a_resized_pod_that_has_ended_counts_as_an_object() -> None:
    assert texts(usage_of_pod(pod("3", "1", phase="Succeeded"))) == {"count/pods": "1"}
