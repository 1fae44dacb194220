"""What Volcano v1.15.1 encodes of a node's NPUs (MindCluster), field by field.

Recorded by running its own code on random nodes, pods on them, and pods that come and go. Pods stand as their uids;
left out are its clients' own fields, and templates but once.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
import numpy as np
import pytest

from pumice.core.devices.ascend import CORE, MindClusterNpu, NpuFrame, Reports, Resident, npu_node
from pumice.core.devices.family import Around
from pumice.core.objects.metadata import Object, object_key
from pumice.core.objects.node import read_node
from pumice.core.objects.pod import Task, TemplateTable, read_task
from pumice.core.state.dimensions import Dimensions

NOW = 1_800_000_000


@cache
def recorded() -> list[Object]:
    return msgspec.json.decode(Path(__file__).with_name("npus_encoded.json").read_bytes(), type=list[Object])


def encoded(case: Object) -> Object:
    templates = TemplateTable(Dimensions())

    def task(pod: Object) -> Task:
        return read_task(pod, 0, templates)

    spec = read_node(case["node"])
    reports = Reports({object_key(each): each for each in case["config_maps"]}, cluster=case["cluster"])
    pods = zip(case["residents"], case["leaving"], strict=True)
    residents = [Resident(task(pod), pod["metadata"]["annotations"], leaves) for pod, leaves in pods]
    found = npu_node(spec, reports.of(spec.name), residents, own_list=case["own_list"])
    has = CORE in (spec.allocatable.scalars or {}) and found.status is not None
    taken = sum((each.task.template.request.scalars or {}).get(CORE, 0.0) for each in residents)
    idle = np.array([(spec.allocatable.scalars or {}).get(CORE, 0.0) - taken])
    frame = NpuFrame(case["cluster"], case["own_list"], now=NOW)
    family = MindClusterNpu([spec.name], [found], idle, np.array([has]), frame)
    for each in residents:
        family.resident(0, each.task, each.notes, leaves=each.leaves)
    for each in case["ops"]:
        change = family.add if each["Op"] == "add" else family.remove
        change(0, task(each["Pod"]), each["Pod"]["metadata"]["annotations"])
    asking = task(case["pod"])
    if family.concerns(asking):
        family.fits(asking, 0)
    body = family.encoded(0, Around(str, _nothing_idle))
    assert body is not None
    return body


def _nothing_idle(row: int) -> dict[str, float]:
    return {}


@pytest.mark.parametrize("number", range(len(recorded())))
def test_every_field_is_volcanos(number: int) -> None:
    case = recorded()[number]
    expected, ours = dict(case["encoded"]), encoded(case)
    if expected["DevInfoUpdateTime"] == "now":
        expected["DevInfoUpdateTime"] = NOW
    for name in ("VT", "Idle"):
        if expected[name] is None:
            del expected[name], ours[name]
    if "VJobTemplate" not in expected["FrameAttr"]:
        del ours["FrameAttr"]["VJobTemplate"]
    for chip in ours["Chips"].values():
        chip["PodMap"] = sorted(chip["PodMap"])
    assert ours == expected
