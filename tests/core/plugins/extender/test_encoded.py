"""What Volcano v1.15.1 encodes of tasks, jobs, queues and nodes with devices and NUMA cells, field by field.

Recorded by running its own plugin with a test server. Made equal beforehand: the kind of Kubernetes objects, which its
clients drop; the moment of `ScheduleStartTimestamp`; and how many nodes have an image, which it counts as nodes come.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from pumice.core.configuration import parse_scheduler_config
from pumice.core.cycle import Carry, CycleClock, open_session, run_action
from pumice.core.messages.questions import OutsideAnswer, OutsideQuestion
from pumice.core.state.volumes import volume_rules
from pumice.questions.oneshot.cycles import fill
from tests.core.plugins.extender.test_recorded import Extender

Raw = dict[str, Any]
URL = "http://extender"
NOW = 1767323045.0


@cache
def recorded() -> Raw:
    """All cases."""
    return msgspec.json.decode(Path(__file__).with_name("encoded.json").read_bytes(), type=dict[str, Any])


class ExtenderHeard(Extender):
    """Answers each verb alike, and keeps what it heard."""

    def __init__(self, case: Raw) -> None:
        pods = {each["metadata"]["uid"]: each for each in case["objects"] if each["kind"] == "Pod"}
        super().__init__(case["answers"], pods)

    def reply(self, verb: str, question: OutsideQuestion, body: Raw) -> OutsideAnswer:
        text = json.dumps(self._answers.get(verb, {}))
        return OutsideAnswer(200, text.replace('"ECHO"', json.dumps(body.get("evictees"))).encode())


def heard(case: Raw) -> list[tuple[str, Raw]]:
    text = json.dumps(case["conf"]).replace("URL", URL)
    config = parse_scheduler_config(text, source="case")
    extender = ExtenderHeard(case)
    view = fill(case["objects"])
    session = open_session(view.snapshot(volume_rules(config)), config, CycleClock(1, NOW), Carry(), ask=extender)
    for action in config.actions:
        run_action(session, action)
    return extender.heard


def sorted_by_name(value: Any) -> Any:
    """Volcano leaves lists of nodes and of victims in any order."""
    if isinstance(value, list):
        return sorted(map(sorted_by_name, cast("list[Raw | str]", value)), key=str)
    if isinstance(value, dict):
        return {name: sorted_by_name(each) for name, each in sorted(cast("Raw", value).items())}
    return value


def as_far_as(recorded: Raw, body: Raw) -> Raw:
    """Of a session as a whole only some of what it says was recorded."""
    if "Jobs" not in recorded:
        return body
    return {name: {key: body[name][key] for key in each} for name, each in recorded.items()}


@pytest.mark.parametrize("name", sorted(recorded()))
def test_every_field_is_volcanos(name: str) -> None:
    case = recorded()[name]
    ours = heard(case)
    assert case["bodies"]
    for verb, body in case["bodies"]:
        expected = sorted_by_name(body)
        rivals = [sorted_by_name(as_far_as(body, each)) for said, each in ours if said == verb]
        assert expected in rivals, (verb, list(differences(expected, _nearest(expected, rivals))))


def _nearest(expected: Any, rivals: list[Any]) -> Any:
    return min(rivals, key=lambda each: len(list(differences(expected, each))))


def differences(expected: Any, found: Any, path: str = "") -> Iterator[str]:
    """Where two bodies differ."""
    if isinstance(expected, dict) and isinstance(found, dict):
        one, two = cast("Raw", expected), cast("Raw", found)
        for name in sorted({*one, *two}):
            yield from differences(one.get(name, "absent"), two.get(name, "absent"), f"{path}.{name}")
    elif expected != found:
        yield f"{path}: expected {expected}, found {found}"
