"""Why pods wait, in few words: the condition that the scheduler writes, without its counts."""

from __future__ import annotations

import re
from typing import Final

from pumice.core.objects.metadata import Object, section

NOT_LOOKED_AT: Final = "not looked at yet"
LONGEST: Final = 80
_COUNTED: Final = re.compile(r"\s*(\d+) ([^,]+?)\.?\s*$")
_NODES: Final = re.compile(r"\d+/\d+ nodes are (?:un)?available: (.*)$", re.DOTALL)
_NUMBER: Final = re.compile(r"(?<![\w./-])\d+(\.\d+)?(?![\w/-])")
_KNOWN: Final = (
    (
        re.compile(r"Pod \S+ can possibly be assigned to \S+, once resource is released"),
        "promised room that is being released",
    ),
    (
        re.compile(r"Pod \S+ can possibly be assigned to \S+, once minAvailable"),
        "there is room, once its gang is complete",
    ),
    (re.compile(r"Task \S+ .*has already predicated failed"), "refused as a pod like it was"),
    (re.compile(r"pod group is not ready"), "its gang is not complete"),
    (re.compile(r"pod group is ready"), "beyond what its gang needs"),
)
"""What Volcano says of gangs, with the names of pods and nodes or with counts: no reasons of their own."""


def reason_of(pod: Object) -> str:
    """Of a pod without a node: the reason that most nodes give, else the message without its numbers."""
    for condition in section(pod, "status").get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return short(str(condition.get("message") or condition.get("reason") or NOT_LOOKED_AT))
    return NOT_LOOKED_AT


def short(message: str) -> str:
    """Words that are alike for one reason, whatever the counts and whoever it is about."""
    if (nodes := _NODES.search(message)) is not None:
        counted = [(int(found[1]), found[2]) for part in nodes[1].split(",") if (found := _COUNTED.match(part))]
        if counted:
            return _cut(max(counted, key=lambda one: (one[0], one[1]))[1])
    for pattern, words in _KNOWN:
        if pattern.match(message):
            return words
    return _cut(_NUMBER.sub("N", message.partition(";")[0]).strip())


def _cut(text: str) -> str:
    """Between words."""
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST].rpartition(' ')[0] or text[:LONGEST]} …"
