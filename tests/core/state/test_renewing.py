"""PodGroups and nodes of which only the status has changed: the same books as if all had been read anew."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.kube.node_selector import label_column
from pumice.core.objects.metadata import Object
from pumice.core.objects.node import read_node, renewed_node
from pumice.core.objects.pod_group import READY, read_pod_group, renewed_pod_group
from pumice.core.state.view import View
from tests.kit.nodes import node
from tests.kit.pod_groups import pod_group
from tests.kit.queues import queue

SCHEDULED = {"type": READY.type, "status": READY.status, "reason": READY.reason, "message": READY.message}


@st.composite
def pod_groups(draw: st.DrawFn) -> Object:
    obj = pod_group(
        "j",
        queue=draw(st.sampled_from(("q", "r"))),
        min_member=draw(st.integers(1, 2)),
        min_resources=draw(st.sampled_from((None, {"cpu": "1"}))),
        labels=draw(st.sampled_from((None, {"a": "b"}))),
        annotations=draw(st.sampled_from((None, {"volcano.sh/preemptable": "true"}))),
        priority_class=draw(st.sampled_from((None, "high"))),
    )
    obj["status"] = draw(
        st.fixed_dictionaries(
            {
                "phase": st.sampled_from(("Pending", "Inqueue", "Running", "Odd")),
                "conditions": st.sampled_from((None, [SCHEDULED], [{**SCHEDULED, "reason": "not enough"}])),
                "running": st.sampled_from((None, 0, 2)),
                "succeeded": st.sampled_from((None, 1)),
                "failed": st.sampled_from((None, 1)),
            }
        )
    )
    return obj


@st.composite
def nodes(draw: st.DrawFn) -> Object:
    obj = node(
        "n",
        cpu=draw(st.sampled_from(("1", "2"))),
        labels=draw(st.sampled_from((None, {"a": "b"}))),
        annotations=draw(st.sampled_from((None, {"volcano.sh/oversubscription-cpu": "500"}))),
        unschedulable=draw(st.booleans()),
        ready=draw(st.booleans()),
    )
    obj["status"]["images"] = draw(st.sampled_from((None, [{"names": ["busybox"], "sizeBytes": 1}])))
    return obj


def fields(spec: Any) -> dict[str, Any]:
    return {name: getattr(spec, name) for name in spec.__struct_fields__}


@given(pod_groups(), pod_groups())
def test_a_pod_group_renewed_is_a_pod_group_read_anew(before: Object, after: Object) -> None:
    renewed = renewed_pod_group(read_pod_group(before), after)
    alike = before["metadata"] == after["metadata"] and before["spec"] == after["spec"]
    assert (renewed is not None) == alike
    if renewed is not None:
        assert fields(renewed) == fields(read_pod_group(after))


@given(nodes(), nodes())
def test_a_node_renewed_is_a_node_read_anew(before: Object, after: Object) -> None:
    renewed = renewed_node(read_node(before), after)
    unlike = copy.deepcopy(after) | {"status": {**after["status"], "conditions": before["status"]["conditions"]}}
    assert (renewed is not None) == (before == unlike)
    if renewed is not None:
        assert fields(renewed) == fields(read_node(after))


@given(st.lists(pod_groups(), min_size=1, max_size=4))
def test_the_columns_of_a_job_are_those_of_its_last_pod_group(seen: list[Object]) -> None:
    view, fresh = View(), View()
    for each in (view, fresh):
        each.apply("ADDED", queue("q"))
        each.apply("ADDED", {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7})
    for obj in seen:
        view.apply("MODIFIED", obj)
        view.snapshot()
    fresh.apply("ADDED", seen[-1])
    ours, theirs = view.snapshot().jobs, fresh.snapshot().jobs
    for name in ("phase", "priority", "queue", "reported", "announced", "min_member", "minimum", "has_min_resources"):
        assert np.array_equal(getattr(ours, name)[..., 0], getattr(theirs, name)[..., 0]), name


def test_a_heartbeat_leaves_what_was_worked_out_of_the_nodes_and_a_label_does_not() -> None:
    view = View()
    view.apply("ADDED", node("n"))
    before = view.snapshot()
    images = label_column(before.derived, "a")
    before.derived.give_back()
    view.apply("MODIFIED", node("n", ready=False))
    seen = view.snapshot()
    assert label_column(seen.derived, "a") is images
    seen.derived.give_back()
    assert seen.nodes.specs[0].node["status"]["conditions"][0]["status"] == "False"
    view.apply("MODIFIED", node("n", labels={"a": "b"}))
    assert label_column(view.snapshot().derived, "a").values == ("b",)


def test_a_priority_class_heard_again_changes_no_job() -> None:
    view = View()
    high: Object = {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}
    for obj in (queue("q"), pod_group("j", queue="q", priority_class="high"), high, high):
        view.apply("ADDED", obj)
    assert view.snapshot().jobs.priority[:1].tolist() == [7]
    view.apply("MODIFIED", {**high, "value": 8})
    assert view.snapshot().jobs.priority[:1].tolist() == [8]
    view.apply("DELETED", high)
    assert view.snapshot().jobs.priority[:1].tolist() == [0]
