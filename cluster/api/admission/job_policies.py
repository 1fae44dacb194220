"""Life cycle policies of Jobs and tasks: which events and actions there are, and which pairs make sense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pumice.cluster.api.refusals import Cause, duplicate, forbidden_field, invalid_value, required

ANY_EVENT: Final = "*"
EVENTS: Final = (
    ANY_EVENT,
    "PodFailed",
    "PodEvicted",
    "PodPending",
    "Unknown",
    "TaskCompleted",
    "TaskFailed",
    "JobUpdated",
)
"""Events a policy may name; the rest is Volcano's own business."""

ACTIONS: Final = (
    "AbortJob",
    "RestartJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
    "TerminateJob",
    "CompleteJob",
    "ResumeJob",
)
"""Actions a policy may ask for."""


def policy_problems(policies: list[dict[str, Any]], path: str) -> list[Cause]:
    """An event or an exit code each, none of them twice, and nothing beside the event `*`."""
    found: list[Cause] = []
    events: set[str] = set()
    codes: set[int] = set()
    for index, policy in enumerate(policies):
        where = f"{path}[{index}]"
        named, code = _events(policy), policy.get("exitCode")
        if named and code is not None:
            found.append(forbidden_field(where, "must not specify event and exitCode simultaneously"))
        elif named:
            found += _event_problems(policy, named, where, events)
        elif code is None:
            found.append(required(where, "either event and exitCode should be specified"))
        else:
            found += _code_problems(code, where, codes)
            found += _action_problems(policy, where)
    if ANY_EVENT in events and len(events) > 1:
        found.append(forbidden_field(path, "if there's * here, no other policy should be here"))
    return found


def _events(policy: dict[str, Any]) -> list[str]:
    named = list(policy.get("events") or ())
    if policy.get("event"):
        named.append(policy["event"])
    return list(dict.fromkeys(named))


def _event_problems(policy: dict[str, Any], named: list[str], where: str, seen: set[str]) -> list[Cause]:
    found: list[Cause] = []
    for event in named:
        if event not in EVENTS:
            found.append(invalid_value(f"{where}.event", event, f"invalid policy event: {_known(EVENTS)}"))
        elif event in seen:
            found.append(duplicate(f"{where}.event", event, "duplicate event across different policies"))
        seen.add(event)
    return found + _action_problems(policy, where)


def _action_problems(policy: dict[str, Any], where: str) -> list[Cause]:
    action = policy.get("action")
    if action in ACTIONS:
        return []
    return [invalid_value(f"{where}.action", action, f"invalid policy action: {_known(ACTIONS)}")]


def _known(names: Sequence[str]) -> str:
    return f"supported values: {', '.join(names)}"


def _code_problems(code: int, where: str, seen: set[int]) -> list[Cause]:
    if code == 0:
        return [invalid_value(f"{where}.exitCode", code, "0 is not a valid error code")]
    if code in seen:
        return [duplicate(f"{where}.exitCode", code, f"duplicate exitCode {code}")]
    seen.add(code)
    return []
