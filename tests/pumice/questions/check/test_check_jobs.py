"""Jobs that can run into a defect of Volcano are named with the switch that mends it."""

from typing import Any

import pytest

from pumice.core.objects.metadata import Object
from pumice.questions.check.review import of_jobs
from tests.core.plugins.world import configuration
from tests.kit.jobs import job_task, vcjob


def job(**spec: Any) -> Object:
    made = vcjob("j", job_task("a"))
    made["spec"] |= spec
    return made


def restarts(event: str, action: str = "RestartJob") -> Object:
    return job(policies=[{"event": event, "action": action}])


FLOW: Object = {"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "metadata": {"name": "f"}, "spec": {}}
CASES: list[tuple[Object, set[str]]] = [
    (job(), set()),
    (restarts("PodEvicted"), {"scaling-is-no-eviction", "ended-pods-are-not-evicted"}),
    (restarts("PodFailed"), {"scaling-is-no-eviction"}),
    (restarts("TaskCompleted", "CompleteJob"), set()),
    (restarts("PodFailed", "RestartPod"), {"scaling-is-no-eviction", "restarts-keep-the-pod-group"}),
    (restarts("Unknown"), {"restarted-jobs-hear-unknown"}),
    (job(ttlSecondsAfterFinished=3), {"aborted-jobs-expire"}),
    (FLOW, {"terminated-jobs-fail-flows", "flows-follow-deletions"}),
    ({**restarts("PodEvicted"), "apiVersion": "batch/v1"}, set()),
]


@pytest.mark.parametrize(("obj", "fixes"), CASES)
def test_job_is_warned_of_what_it_can_run_into(obj: Object, fixes: set[str]) -> None:
    said = of_jobs(configuration([]), [obj])
    assert {line.partition("[")[2].partition("]")[0] for line in said} == fixes
    assert of_jobs(configuration([], fix=sorted(fixes)), [obj]) == []
