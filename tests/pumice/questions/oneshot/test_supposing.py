# SPDX-License-Identifier: Apache-2.0
"""Remarks about what a future leaves out."""

from __future__ import annotations

from typing import Any

import pytest

import pumice
from pumice.questions.oneshot.supposing import unplaced

POD: dict[str, Any] = {"containers": [{"name": "main", "image": "work"}]}


def made(kind: str, spec: dict[str, Any], *, uid: str = "", version: str = "v1", phase: str = "") -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "default", **({"uid": uid} if uid else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec, "status": {"phase": phase}}


def of_template(pod: dict[str, Any]) -> dict[str, Any]:
    return {"template": {"spec": pod}}


@pytest.mark.parametrize(
    ("obj", "is_told"),
    [
        (made("Pod", POD), True),
        (made("Pod", {**POD, "schedulerName": "default-scheduler"}), True),
        (made("Pod", {**POD, "schedulerName": "volcano"}), False),
        (made("Pod", {**POD, "nodeName": "n0"}), False),
        (made("Pod", POD, phase="Succeeded"), False),
        (made("Job", of_template(POD), version="batch/v1"), True),
        (made("Job", of_template({**POD, "schedulerName": "volcano"}), version="batch/v1"), False),
        (made("Job", of_template(POD), version="batch/v1", uid="u"), False),
        (made("Deployment", of_template(POD), version="apps/v1"), True),
        (made("CronJob", {"jobTemplate": {"spec": of_template(POD)}}, version="batch/v1", uid="u"), True),
        (made("Job", {"tasks": []}, version="batch.volcano.sh/v1alpha1"), False),
        (made("Queue", {}, version="scheduling.volcano.sh/v1beta1"), False),
    ],
)
def test_pods_of_default_scheduler_are_told(obj: dict[str, Any], is_told: bool) -> None:
    assert bool(unplaced([obj])) == is_told


def test_many_pods_of_default_scheduler_are_counted() -> None:
    (said,) = unplaced([{**made("Pod", POD), "metadata": {"name": f"p{number}"}} for number in range(5)])
    assert "and 2 more" in said
    assert "pumice run --time virtual" in said


def test_the_library_warns_of_pods_that_nothing_places() -> None:
    cluster = pumice.Cluster(pumice.nodes(1, cpu=8))
    with pytest.warns(UserWarning, match="Pod default/a"):
        cluster.submit(made("Pod", POD))
    cluster.submit(pumice.gang("b", 1))
