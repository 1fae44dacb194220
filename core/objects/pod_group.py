# SPDX-License-Identifier: Apache-2.0
"""A PodGroup's immutable part: a job's specification. Source: Volcano `SetPodGroup` (`api/job_info.go`)."""

from collections.abc import Collection

import msgspec

from pumice.core.messages.decisions import PodGroupCondition
from pumice.core.objects.metadata import (
    Object,
    key_of,
    parse_bool,
    parse_time,
    rows,
    same_metadata,
    same_section,
    section,
    text_map,
)
from pumice.core.objects.pod import PREEMPTABLE, revocable_zone
from pumice.core.resources import Resource

READY = PodGroupCondition("Scheduled", "True", "tasks in gang are ready to be scheduled", "")
"""The gang plugin's message for every job that is ready, cycle after cycle."""


class PodGroupSpec(msgspec.Struct, eq=False, gc=False):
    """One PodGroup, a Struct as pods are.

    `min_resources` is None when the API has none (then enqueue asks no plugin); `created` in seconds.
    """

    key: str
    namespace: str
    name: str
    uid: str
    queue: str
    min_member: int
    min_task_member: dict[str, int]
    min_resources: Resource | None
    priority_class: str
    created: float
    phase: str
    conditions: tuple[PodGroupCondition, ...]
    running: int
    succeeded: int
    failed: int
    preemptable: bool
    revocable_zone: str
    network_topology: Object | None
    sub_group_policy: tuple[Object, ...]
    labels: dict[str, str]
    annotations: dict[str, str]
    pod_group: Object

    @property
    def min_task_total(self) -> int:
        """Return the sum of the roles' minimums (TaskMinAvailableTotal)."""
        return sum(self.min_task_member.values())


def _preemptable(annotations: dict[str, str], labels: dict[str, str]) -> bool:
    # The annotation decides even if it cannot be read: the label is asked only where there is none
    # (extractPreemptable).
    for source in (annotations, labels):
        if PREEMPTABLE in source:
            return bool(parse_bool(source[PREEMPTABLE]))
    # The opposite of a pod's own default (`pod.py`), as in Volcano.
    return False


def _conditions(status: Object) -> tuple[PodGroupCondition, ...]:
    return tuple([_condition(each) for each in rows(status, "conditions")])


def _condition(told: Object) -> PodGroupCondition:
    return PodGroupCondition(
        told.get("type") or "", told.get("status") or "", told.get("reason") or "", told.get("message") or ""
    )


def _state(pod_group: Object) -> Object:
    """Return what changes while a PodGroup lives."""
    status = section(pod_group, "status")
    return {
        "phase": status.get("phase") or "",
        "conditions": _conditions(status),
        "running": int(status.get("running") or 0),
        "succeeded": int(status.get("succeeded") or 0),
        "failed": int(status.get("failed") or 0),
        "pod_group": pod_group,
    }


def read_pod_group(pod_group: Object, default_queue: str = "default", ignored: Collection[str] = ()) -> PodGroupSpec:
    """Build a job's specification; an empty queue becomes the default one (as Volcano's cache does). `ignored`:
    resources that do not count.
    """
    meta, spec = section(pod_group, "metadata"), section(pod_group, "spec")
    annotations, labels = text_map(meta.get("annotations")), text_map(meta.get("labels"))
    namespace, name = meta.get("namespace") or "default", meta.get("name") or ""
    minimum = spec.get("minResources")
    return PodGroupSpec(
        key=key_of(namespace, name),
        namespace=namespace,
        name=name,
        uid=meta.get("uid") or "",
        queue=spec.get("queue") or default_queue,
        min_member=int(spec.get("minMember") or 0),
        min_task_member={role: int(n) for role, n in section(spec, "minTaskMember").items()},
        min_resources=None if minimum is None else Resource.from_list(minimum, ignored),
        priority_class=spec.get("priorityClassName") or "",
        created=parse_time(meta.get("creationTimestamp")),
        preemptable=_preemptable(annotations, labels),
        revocable_zone=revocable_zone(annotations),
        network_topology=spec.get("networkTopology"),
        sub_group_policy=tuple(spec.get("subGroupPolicy") or ()),
        labels=labels,
        annotations=annotations,
        **_state(pod_group),
    )


def renewed_pod_group(known: PodGroupSpec, pod_group: Object) -> PodGroupSpec | None:
    """Return the specification `known` with a new status; None when more than the status differs."""
    before = known.pod_group
    if not same_section(before, pod_group, "spec") or not same_metadata(before, pod_group):
        return None
    return msgspec.structs.replace(known, **_state(pod_group))
