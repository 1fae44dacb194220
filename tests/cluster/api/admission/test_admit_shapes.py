"""Fields of wrong types and amounts: one would fail every session that reads it, so no such object is stored."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.cluster.api.kinds import KINDS
from pumice.cluster.api.schema.field_types import key_problems, status_problems
from tests.actors.cluster import Cluster

WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("HyperNode", {"spec": {"members": "all"}}, "spec.members"),
    ("HyperNode", {"spec": {"tier": "one"}}, "spec.tier"),
    ("HyperNode", {"spec": {"members": [{"type": "Node", "selector": {"exactMatch": "n0"}}]}}, "exactMatch"),
    ("ResourceQuota", {"spec": {"hard": ["cpu"]}}, "spec.hard"),
    ("PodDisruptionBudget", {"spec": {"selector": "app"}}, "spec.selector"),
    ("PersistentVolume", {"spec": {"capacity": "1Gi"}}, "spec.capacity"),
    ("PersistentVolumeClaim", {"spec": {"resources": {"requests": 1}}}, "spec.resources.requests"),
    ("StorageClass", {"volumeBindingMode": 3}, "volumeBindingMode"),
    ("CSINode", {"spec": {"drivers": {"name": "d"}}}, "spec.drivers"),
    ("ResourceSlice", {"spec": []}, "spec"),
    ("ConfigMap", {"data": {"device-config.yaml": 5}}, "data"),
    ("Numatopology", {"spec": {"cpuDetail": {"0": {"numa": "none"}}}}, "spec.cpuDetail"),
    ("Numatopology", {"spec": {"numares": {"cpu": {"allocatable": 4}}}}, "spec.numares"),
]
"""Kind, fields, and where the fault is to be found."""


@pytest.mark.parametrize(("kind", "fields", "place"), WRONG)
def test_a_wrong_type_is_named(kind: str, fields: dict[str, Any], place: str) -> None:
    (cause,) = key_problems(kind, {"metadata": {"name": "x"}, **fields})
    assert place in cause.field


def test_a_status_is_judged_alone() -> None:
    assert [kind for kind in KINDS if status_problems(kind, {})] == []
    (cause,) = status_problems("Queue", {"allocated": 3})
    assert cause.field == "status.allocated"


@pytest.mark.parametrize("amount", ["abc", "-1", "9e30"])
def test_a_quota_states_amounts(amount: str) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"cpu": amount}}}
    assert [cause["field"] for cause in Cluster().refused(quota).details["causes"]] == ["spec.hard[cpu]"]
