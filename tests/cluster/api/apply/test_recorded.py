"""Sequences of applies and updates against what Kubernetes' own field managers (apimachinery v0.35.3) made of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from pumice.cluster.api.apply import Applicant, apply, track_update
from pumice.cluster.api.apply.owners import by_update
from pumice.cluster.api.schema import shape_of_kind
from pumice.core.messages.replies import Refused

RECORDED: list[dict[str, Any]] = json.loads(Path(__file__).with_name("recorded.json").read_text("utf-8"))


def told(obj: Any) -> Any:
    """The object with its owners in one order and without their times, which were the recording's."""
    meta = dict(obj["metadata"])
    entries = [
        {name: each for name, each in entry.items() if name != "time"} for entry in meta.pop("managedFields", [])
    ]
    owners = sorted(entries, key=lambda entry: (entry["operation"], entry["manager"]))
    return {**obj, "metadata": meta | ({"managedFields": owners} if owners else {})}


def by_text(causes: list[Any]) -> list[str]:
    """The causes in one order: Go's maps have none."""
    return sorted(json.dumps(each, sort_keys=True) for each in causes)


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: f"{case['kind']}-{len(case['steps'])}")
def test_owners_conflicts_and_objects_are_those_of_kubernetes(case: dict[str, Any]) -> None:
    api_version = "/".join(part for part in (case["group"], case["version"]) if part)
    shape = shape_of_kind(case["group"], case["version"], case["kind"])
    live: Any = None
    for at, step in enumerate(case["steps"]):
        now = f"2026-01-01T00:00:{at:02d}Z"
        if step["op"] == "update":
            assert live is not None
            live = track_update(live, step["obj"], by_update(step["manager"], api_version), now, shape)
        else:
            got = apply(live, step["obj"], Applicant(step["manager"], api_version, force=step["force"]), now, shape)
            if isinstance(got, Refused):
                causes: Any = (got.details or {})["causes"]
                assert by_text(causes) == by_text(step["causes"])
                continue
            live = got
        assert "live" in step, f"step {at}: expected {step.get('error')}"
        assert told(live) == step["live"], f"step {at}"
