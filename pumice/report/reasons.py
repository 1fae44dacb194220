"""Why pods wait, in few words: the condition that the scheduler writes, without its counts."""

from __future__ import annotations

import re
from typing import Any, Final

from core.objects.metadata import section

Object = dict[str, Any]

NOT_LOOKED_AT: Final = "not looked at yet"
_COUNTED: Final = re.compile(r"\s*(\d+) ([^,]+?)\.?\s*$")
_NODES: Final = re.compile(r"^\d+/\d+ nodes are (?:un)?available: (.*)$", re.DOTALL)
_NUMBER: Final = re.compile(r"\d+(\.\d+)?")
_WITHOUT_COUNT: Final = re.compile(r"N \w+$")
LONGEST: Final = 80


def reason_of(pod: Object) -> str:
    """Of a pod without a node: the reason that most nodes give, else the message without its numbers."""
    for condition in section(pod, "status").get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return short(str(condition.get("message") or condition.get("reason") or NOT_LOOKED_AT))
    return NOT_LOOKED_AT


def short(message: str) -> str:
    """Words that are alike for one reason, whatever the counts."""
    nodes = _NODES.match(message)
    if nodes is not None:
        counted = [(int(found[1]), found[2]) for part in nodes[1].split(",") if (found := _COUNTED.match(part))]
        if counted:
            return max(counted, key=lambda one: (one[0], one[1]))[1][:LONGEST]
    said, *counts = _NUMBER.sub("N", message.split(";", maxsplit=1)[0]).strip().split(", ")
    # a gang's counts come in the order of the words before they are counted off, or of the counts: no other reason
    return ", ".join([said, *(sorted(counts) if all(map(_WITHOUT_COUNT.match, counts)) else counts)])[:LONGEST]
