"""Protobuf bodies against recordings: bytes as Go writes them, and the JSON that Go makes of the same object.

Whole objects come from the round-trip data of k8s.io/api v0.35.3; the others, empty ones among them, were written by
its serializer.
"""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from pumice.actors.gateway.protobuf.reading import decode

RECORDED: list[dict[str, Any]] = json.loads(Path(__file__).with_name("recorded.json").read_text("utf-8"))


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["json"]["kind"])
def test_bytes_become_the_json_that_go_prints(case: dict[str, Any]) -> None:
    found = decode(base64.b64decode(case["bytes"]))
    found.get("status", {}).pop("disruptedPods", None)  # a map of nulls, which are left out here
    assert found == case["json"]
