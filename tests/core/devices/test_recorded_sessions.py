"""Whole sessions with devices and NUMA cells: where Volcano v1.15.1 puts random pods, what it writes on them, and what
it says of the others.

Recorded by running its own scheduler, a process for each session; ties went to the lowest name. Moments stand as "T".
Of locks there are some more in Volcano, which leaves those of gangs that were given up.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pumice.core.configuration import parse_scheduler_config
from pumice.core.cycle import Carry, CycleClock, close_session, open_session, run_action
from pumice.core.state.volumes import volume_rules
from pumice.questions.oneshot.cycles import fill

Raw = dict[str, Any]
MOMENTS = {
    "volcano.sh/vgpu-time",
    "volcano.sh/bind-time",
    "volcano.sh/predicate-time",
    "predicate-time",
    "hami.io/vgpu-time",
    "hami.io/bind-time",
}


@cache
def recorded() -> Raw:
    """All cases."""
    return msgspec.json.decode(Path(__file__).with_name("recorded_sessions.json").read_bytes(), type=dict[str, Any])


def written(case: Raw, notes: dict[str, dict[str, str]]) -> Raw:
    """What is new on each pod."""
    found: Raw = {}
    for each in (each for each in case["objects"] if each["kind"] == "Pod"):
        name, before = each["metadata"]["name"], each["metadata"].get("annotations", {})
        said = notes.get(f"ns/{name}", {})
        new = {key: "T" if key in MOMENTS else value for key, value in said.items() if before.get(key) != value}
        found |= {name: new} if new else {}
    return found


@pytest.mark.parametrize("name", sorted(recorded()))
def test_pods_go_where_volcano_puts_them(name: str) -> None:
    case = recorded()[name]
    source = json.dumps(case["conf"])
    config = parse_scheduler_config(source, source="case")
    snapshot = fill(case["objects"]).snapshot(volume_rules(config))
    session = open_session(snapshot, config, CycleClock(1, 1_800_000_000.0), Carry(), report=True)
    for action in config.actions:
        run_action(session, action)
    result = close_session(session)
    assert {f"{bind.namespace}/{bind.name}": bind.node for bind in result.binds} == case["binds"]
    assert written(case, result.report.pod_annotations) == case["notes"]
    locks = {f"{bind.node}/{lock}" for bind in result.binds if bind.pre_bind for lock, _ in bind.pre_bind.locks}
    assert locks <= set(case["locks"])
    said = {condition.name: condition.message for condition in result.pod_conditions}
    for pod, text in case["fit"].items():
        assert said[pod].startswith(text), pod
