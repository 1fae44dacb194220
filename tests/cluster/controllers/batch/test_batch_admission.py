"""What a batch/v1 Job must be like."""

from __future__ import annotations

import pytest

from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import Object
from tests.cluster.controllers.batch.job_kit import (
    JOB,
    batch_job,
    job_cluster,
    on_exit,
    rules,
    started,
)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"restart": "Always"}, "spec.template.spec.restartPolicy"),
        ({"restart": ""}, "spec.template.spec.restartPolicy"),
        ({"parallelism": -1}, "spec.parallelism"),
        ({"completions": 2_000_000_000}, "spec.completions"),
        ({"completionMode": "Indexed"}, "spec.completions"),
        ({"completionMode": "Other"}, "spec.completionMode"),
        ({"backoffLimitPerIndex": 1}, "spec.backoffLimitPerIndex"),
        ({"maxFailedIndexes": 1}, "spec.backoffLimitPerIndex"),
        ({"podReplacementPolicy": "Never"}, "spec.podReplacementPolicy"),
        (rules({"action": "Weep", "onPodConditions": [{"type": "x"}]}), "spec.podFailurePolicy.rules[0].action"),
        (rules({"action": "Count"}), "spec.podFailurePolicy.rules[0]"),
        ({"restart": "OnFailure", **rules(on_exit("Count", "In", 1))}, "spec.template.spec.restartPolicy"),
    ],
)
def test_what_a_job_must_be_like(spec: Object, field: str) -> None:
    if spec == {"completionMode": "Indexed"}:
        spec = {**spec, "parallelism": 1}
    refused = job_cluster().refused(batch_job(**spec))
    assert field in [cause["field"] for cause in refused.details["causes"]]


@pytest.mark.parametrize(
    "change", [{"completions": 3}, {"completionMode": "Indexed"}, {"template": {"spec": {"hostname": "x"}}}]
)
def test_what_is_fixed(change: Object) -> None:
    cluster = started(batch_job())
    answer = cluster.patch(JOB, "j", {"spec": change})
    assert isinstance(answer, Refused)
    assert "field is immutable" in answer.message


def test_a_second_apply_changes_nothing() -> None:
    cluster = started(batch_job())
    before = cluster.get(JOB, "j")
    cluster.patch(JOB, "j", batch_job())
    assert cluster.get(JOB, "j") == before
