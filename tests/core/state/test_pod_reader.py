"""What is read again of a pod makes the task that reading the whole pod makes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.errors import QuantityError
from pumice.core.objects.metadata import Object
from pumice.core.objects.pod import Task, TemplateTable, read_task
from pumice.core.state.dimensions import Dimensions
from pumice.core.state.view import LATELY, PodReader
from tests.kit.pods import pod

CONDITIONS: tuple[Object, ...] = (
    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"},
    {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"},
    {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"},
)
STATUSES: dict[str, Any] = {
    "phase": st.sampled_from(("Pending", "Running", "Succeeded", "Failed", "Unknown", "")),
    "conditions": st.lists(st.sampled_from(CONDITIONS), unique_by=str),
    "startTime": st.sampled_from((None, "2026-01-02T03:04:06Z")),
    "nominatedNodeName": st.sampled_from((None, "n1")),
    "resourceClaimStatuses": st.sampled_from((None, [{"name": "gpu", "resourceClaimName": "p-gpu"}])),
}


@st.composite
def pods(draw: st.DrawFn) -> Object:
    obj = pod(
        "p",
        group=draw(st.sampled_from((None, "j"))),
        node=draw(st.sampled_from((None, "n0", "n1"))),
        cpu=draw(st.sampled_from(("1", "2"))),
        labels=draw(st.sampled_from(({}, {"a": "b"}))),
        annotations=draw(st.sampled_from(({}, {"volcano.sh/preemptable": "true"}, {"volcano.sh/task-priority": "3"}))),
        priority=draw(st.sampled_from((None, 5))),
        uid=draw(st.sampled_from(("first", "second"))),
        created=draw(st.sampled_from(("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"))),
    )
    obj["status"] = draw(st.fixed_dictionaries(STATUSES))
    obj["metadata"]["deletionTimestamp"] = draw(st.sampled_from((None, "2026-01-02T03:04:07Z")))
    obj["spec"]["schedulingGates"] = draw(st.sampled_from((None, [{"name": "wait"}])))
    obj["spec"]["schedulerName"] = draw(st.sampled_from(("volcano", "", "default-scheduler", "kube-foo")))
    return obj


def fields(task: Task) -> dict[str, Any]:
    return {name: getattr(task, name) for name in task.__struct_fields__ if name != "row"}


@given(st.lists(pods(), max_size=6))
def test_a_pod_read_again_is_a_pod_read_anew(seen: list[Object]) -> None:
    templates = TemplateTable(Dimensions())
    reader = PodReader(templates)
    known: Task | None = None
    for each in seen:
        known = reader.read(each, known)
        assert fields(known) == fields(read_task(each, 0, templates))


def test_only_what_changes_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = PodReader(TemplateTable(Dimensions()))
    waiting, bound = pod("p", group="j"), pod("p", group="j", node="n0")
    known = reader.read(waiting, None)
    assert reader.read(waiting, known) is known
    known.row = 7
    with monkeypatch.context() as patch:
        patch.setattr("pumice.core.state.view.read_task", None)  # it would be called
        placed = reader.read(bound, known)
    assert (placed.row, placed.node_name, placed.template) == (7, "n0", known.template)


def test_what_is_remembered_of_another_task_does_not_count() -> None:
    reader = PodReader(TemplateTable(Dimensions()))
    known = reader.read(pod("p", cpu="1"), None)
    other = msgspec.structs.replace(known)
    assert reader.read(pod("p", cpu="1"), other).row == -1  # read as a whole: no row is known yet
    with pytest.raises(QuantityError):
        reader.read(pod("p", cpu="one"), known)
    assert reader.read(pod("p", cpu="1"), known).template is known.template


def test_it_remembers_no_more_than_it_may() -> None:
    reader = PodReader(TemplateTable(Dimensions()))
    first = reader.read(pod("p", uid="u"), None)
    for number in range(LATELY):
        reader.read(pod(f"p{number}"), None)
    first.row = 7
    assert reader.read(pod("p", uid="u", node="n0"), first).row == -1


def test_a_pod_that_comes_again_is_remembered_as_the_newest() -> None:
    reader = PodReader(TemplateTable(Dimensions()))
    reader.read(pod("p", uid="gone"), None)
    for number in range(LATELY - 1):
        reader.read(pod(f"p{number}"), None)
    again = reader.read(pod("p", uid="u"), None)
    reader.read(pod("q"), None)
    again.row = 7
    assert reader.read(pod("p", uid="u", node="n0"), again).row == 7


@pytest.mark.parametrize(
    ("scheduler", "node_name", "job"),
    [
        ("kube-foo", None, ""),
        ("kube-foo", "n0", "default/j"),
        ("volcano", None, "default/j"),
        ("default-scheduler", None, "default/j"),
        (None, None, "default/j"),
    ],
)
def test_who_waits_for_another_scheduler_is_in_no_job(scheduler: str | None, node_name: str | None, job: str) -> None:
    obj = pod("p", group="j", node=node_name)
    obj["spec"]["schedulerName"] = scheduler
    assert read_task(obj, 0, TemplateTable(Dimensions())).job == job
