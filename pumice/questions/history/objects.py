# SPDX-License-Identifier: Apache-2.0
"""The state of an object in a few words, and its owner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pumice.core.objects.metadata import Object, owners_of, section


def state_of(obj: Object) -> str:
    """Describe the state of an object for its story; equal texts mean that no change needs an entry."""
    describe = _DESCRIBE.get(str(obj.get("kind")))
    parts = describe(obj) if describe else []
    if section(obj, "metadata").get("deletionTimestamp"):
        parts.append("being deleted")
    return ", ".join(part for part in parts if part)


def belongs_to(obj: Object) -> set[str]:
    """Return names (in the object's namespace) of its owners, its PodGroup, its job; of an Event, of its subject."""
    if obj.get("kind") == "Event":
        return {str(section(obj, "involvedObject").get("name"))} - {"None", ""}
    metadata = section(obj, "metadata")
    annotations = section(metadata, "annotations")
    names = {str(owner.get("name")) for owner in owners_of(obj)}
    names |= {str(annotations.get(key)) for key in ("scheduling.k8s.io/group-name", "volcano.sh/job-name")}
    return names - {"None", ""}


def _pod(pod: Object) -> list[str]:
    spec, status = section(pod, "spec"), section(pod, "status")
    node = spec.get("nodeName")
    nominated = status.get("nominatedNodeName")
    waits = "" if node else _message(status, "PodScheduled")
    return [
        str(status.get("phase") or "Pending"),
        f"on {node}" if node else "",
        f"nominated to {nominated}" if nominated and not node else "",
        waits,
    ]


def _job(job: Object) -> list[str]:
    status = section(job, "status")
    counts = [f"{status[key]} {key}" for key in ("pending", "running", "succeeded", "failed") if status.get(key)]
    return [str(section(status, "state").get("phase") or ""), *counts, cause_of(job)[1]]


def cause_of(obj: Object) -> tuple[str, str]:
    """Return why an object is in its state, by its controller: a word and a sentence, of Jobs; ("", "") of others."""
    state = section(section(obj, "status"), "state") if obj.get("kind") == "Job" else {}
    return str(state.get("reason") or ""), str(state.get("message") or "")


def _pod_group(group: Object) -> list[str]:
    status = section(group, "status")
    conditions: list[Object] = status.get("conditions") or []
    last = conditions[-1] if conditions else {}
    return [str(status.get("phase") or ""), str(last.get("message") or last.get("reason") or "")]


def _queue(queue: Object) -> list[str]:
    return [str(section(queue, "status").get("state") or ""), f"weight {section(queue, 'spec').get('weight', 1)}"]


def _node(node: Object) -> list[str]:
    cordoned = "cordoned" if section(node, "spec").get("unschedulable") else ""
    return [cordoned, _message(section(node, "status"), "Ready")]


def _event(event: Object) -> list[str]:
    return [f"{event.get('reason') or ''}: {event.get('message') or ''}"]


def _message(status: Object, kind: str) -> str:
    for condition in status.get("conditions") or ():
        if condition.get("type") == kind and condition.get("status") == "False":
            return str(condition.get("message") or condition.get("reason") or "")
    return ""


_DESCRIBE: Final[dict[str, Callable[[Object], list[str]]]] = {
    "Pod": _pod,
    "Job": _job,
    "PodGroup": _pod_group,
    "Queue": _queue,
    "Node": _node,
    "Event": _event,
}
