"""What the API says of pods when a cycle opens: a status update shows the whole status afterwards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pumice.core.objects.metadata import Object, section
from pumice.questions.oneshot.between import object_key


@dataclass(frozen=True, slots=True)
class Standing:
    """A pod's status.nominatedNodeName, and reason and message of its PodScheduled=False; empty where there is none."""

    nominated: str = ""
    reason: str = ""
    message: str = ""


def standings_of(objects: Iterable[Object]) -> dict[str, Standing]:
    """By "ns/pod", for the pods of which there is anything to say."""
    found = {object_key(obj): _standing(section(obj, "status")) for obj in objects if obj.get("kind") == "Pod"}
    return {key: standing for key, standing in found.items() if standing != Standing()}


def _standing(status: dict[str, Any]) -> Standing:
    nominated = str(status.get("nominatedNodeName") or "")
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return Standing(nominated, str(condition.get("reason") or ""), str(condition.get("message") or ""))
    return Standing(nominated)
