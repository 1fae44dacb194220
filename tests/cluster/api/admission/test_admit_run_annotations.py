"""Annotations that say how a pod runs here, wherever they stand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.actors.cluster import Cluster
from tests.kit.jobs import job_task, vcjob

SLIPS = [("pumice.dev/duration", "90sec"), ("pumice.dev/termination", "-1s"), ("pumice.dev/exit-code", "256")]


@pytest.mark.parametrize(("name", "text"), SLIPS)
def test_a_slip_in_a_job_or_its_template_is_named(name: str, text: str) -> None:
    job, templated = vcjob("j", job_task("a")), vcjob("j", job_task("a"))
    job["metadata"]["annotations"] = {name: text}
    holder: dict[str, Any] = templated["spec"]["tasks"][0]["template"]
    holder.setdefault("metadata", {})["annotations"] = {name: text}
    assert named(job) == [f"metadata.annotations[{name}]"]
    assert named(templated) == [f"spec.tasks[0].template.metadata.annotations[{name}]"]


@pytest.mark.parametrize("text", ["0", "1h30m", "250ms"])
def test_durations_as_go_writes_them(text: str) -> None:
    job = vcjob("j", job_task("a", duration=text))
    assert Cluster().create(job)["spec"]["tasks"]


def named(job: dict[str, Any]) -> list[str]:
    return [cause["field"] for cause in Cluster().refused(job).details["causes"]]
