"""The state of an object in a few words."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.questions.history.objects import belongs_to, state_of

UNSCHEDULED = [{"type": "PodScheduled", "status": "False", "message": "no room"}]


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        ({"kind": "Pod", "status": {"phase": "Pending", "conditions": UNSCHEDULED}}, "Pending, no room"),
        (
            {"kind": "Pod", "spec": {"nodeName": "n0"}, "status": {"phase": "Running", "conditions": UNSCHEDULED}},
            "Running, on n0",
        ),
        ({"kind": "Pod", "status": {"nominatedNodeName": "n1"}}, "Pending, nominated to n1"),
        ({"kind": "Pod", "metadata": {"deletionTimestamp": "t"}}, "Pending, being deleted"),
        ({"kind": "Job", "status": {"state": {"phase": "Running"}, "running": 2, "failed": 0}}, "Running, 2 running"),
        ({"kind": "PodGroup", "status": {"phase": "Inqueue", "conditions": [{"message": "m"}]}}, "Inqueue, m"),
        ({"kind": "Queue", "spec": {"weight": 3}, "status": {"state": "Open"}}, "Open, weight 3"),
        ({"kind": "Node", "spec": {"unschedulable": True}}, "cordoned"),
        ({"kind": "ConfigMap"}, ""),
    ],
)
def test_states(obj: dict[str, Any], words: str) -> None:
    assert state_of(obj) == words


def test_belonging() -> None:
    annotations = {"scheduling.k8s.io/group-name": "g", "volcano.sh/job-name": "j"}
    obj = {"metadata": {"ownerReferences": [{"name": "o"}], "annotations": annotations}}
    assert belongs_to(obj) == {"o", "g", "j"}
    assert belongs_to({}) == set()
