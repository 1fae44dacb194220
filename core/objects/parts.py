# SPDX-License-Identifier: Apache-2.0
"""Parts of kinds: a watcher can name a part instead of a kind, so that changes elsewhere in the object do not wake it.

As the selectors of a watch in Kubernetes, but named once and for all: each says what its watchers see of an object, and
a change that they do not see is not reported. What comes into a part, changes in it, leaves it or is deleted is
reported, as the change of the whole object that it is. More may be reported: a list has all objects of a kind.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Final

from pumice.core.objects.metadata import Object, alike, section, text_map

View = Hashable | None
"""What the watchers of a part see of an object; None: it is not in the part. Small: it is kept for every object."""
Views = tuple[View, ...]
EVERY: Final[View] = object()
"""The view of watchers who see all of an object: every change is news to them."""

POD_PLACED: Final = "Pod:placed"
"""Pods on a node."""
POD_OF_JOB: Final = "Pod:of-job"
"""Pods of Volcano's Jobs."""
POD_OF_WORKLOAD: Final = "Pod:of-workload"
"""Pods that a controller of any other kind has: ReplicaSets, Jobs of batch/v1 and so on."""
ORPHAN_POD: Final = "Pod:orphan"
"""Pods without a controller: their labels, and whether they are on their way out."""
POD_WITH_CLAIMS: Final = "Pod:with-claims"
"""Pods that bring claims of volumes along, or use devices."""
POD_UNGROUPED: Final = "Pod:ungrouped"
"""Pods of Volcano that need a PodGroup, until they have one."""
POD_OF_OTHERS: Final = "Pod:of-others"
"""Pods without a node that wait for another scheduler than Volcano's and Kubernetes' own."""
JOB_OF_OTHERS: Final = "Job:of-others"
"""Jobs; not what their controller says of them."""
GROUP_MADE: Final = "PodGroup:made"
"""The names of PodGroups that were made for pods without one."""
GROUP_SPECS: Final = "PodGroup:specs"
"""PodGroups: spec, which has their queue."""
GROUP_OF_JOB: Final = "PodGroup:of-job"
"""PodGroups of Jobs: spec and phase."""
QUEUE_NAMES: Final = "Queue:names"
QUEUE_STATES: Final = "Queue:states"
"""Queues: spec and state."""
QUEUE_FAMILIES: Final = "Queue:families"
"""Queues: spec, state, whether a parent has closed it; not what their controller says of them."""

CLOSED_BY_PARENT: Final = "volcano.sh/closed-by-parent"
VOLCANO_JOB: Final = ("batch.volcano.sh/v1alpha1", "Job")
SCHEDULERS: Final = ("volcano", "default-scheduler")
_GROUP_NAME: Final = "scheduling.k8s.io/group-name"
_MADE: Final = "podgroup-"


def _none(_obj: Object) -> Views:
    return ()


class KindParts:
    """The parts of one kind. `views` extracts each part of an object.

    `concerned` (views before, views after, who wrote the status and nothing else): the kind, and its parts
    that changed. `own`: the writer that knows what it wrote into a status, and the part that this does not change.
    `blind`: the views do not depend on the status.
    """

    def __init__(
        self,
        kind: str,
        names: Sequence[str] = (),
        views: Callable[[Object], Views] = _none,
        own: dict[str, str] | None = None,
        *,
        blind: bool = True,
    ) -> None:
        self.views = views
        self.blind = blind
        self.unseen: Views = (None,) * len(names)
        self._kind = kind
        self.names = tuple(names)
        self._own = own or {}
        self.concerned = lru_cache(maxsize=4096)(self._concerned)  # most objects of a kind look alike

    def _concerned(self, before: Views, after: Views, status_by: str = "") -> frozenset[str]:
        """Return the kind and its parts that this change affects, except the part of its author: `status_by` wrote the
        status and nothing else.
        """
        seen = zip(self.names, before, after, strict=True)
        news = {self._kind, *(name for name, was, now in seen if was is EVERY or was != now)}
        return frozenset(news - {self._own.get(status_by, "")})


def kind_of(topic: str) -> str:
    """Return the kind of a topic, which is a kind or a part of one."""
    return topic.partition(":")[0]


def _pod(pod: Object) -> Views:
    meta, spec = pod["metadata"], section(pod, "spec")
    references = meta.get("ownerReferences")
    controller = _controller(references) if references else None
    views: Views = alike(
        (  # kept for every pod
            EVERY if spec.get("nodeName") else None,
            EVERY if controller == VOLCANO_JOB else None,
            EVERY if controller is not None and controller != VOLCANO_JOB else None,
            None if controller else (frozenset(text_map(meta.get("labels")).items()), "deletionTimestamp" in meta),
            EVERY if spec.get("resourceClaims") or (spec.get("volumes") and _has_ephemeral(spec)) else None,
            _grouping(meta, spec),
            # True, not EVERY: a view that stays equal makes no later change of the pod news.
            None if spec.get("schedulerName") in SCHEDULERS or spec.get("nodeName") else True,
        )
    )
    return views


def _controller(references: Sequence[Object]) -> tuple[str, str] | None:
    for each in references:
        if each.get("controller"):
            return each.get("apiVersion") or "", each["kind"]
    return None


def _has_ephemeral(spec: Object) -> bool:
    volumes: list[Object] = spec["volumes"]
    return any(volume.get("ephemeral") is not None for volume in volumes)


def _grouping(meta: Object, spec: Object) -> View:
    if spec.get("schedulerName") != "volcano":
        return None
    group = text_map(meta.get("annotations")).get(_GROUP_NAME)
    if not group:
        return EVERY
    return group.startswith(_MADE) or None


def _job(_job: Object) -> Views:
    return (EVERY,)


def _pod_group(group: Object) -> Views:
    meta = group["metadata"]
    # The API server raises generation with each change of the spec (API conventions): no copy is kept.
    spec, phase = meta.get("generation"), section(group, "status").get("phase")
    of_job = any(each.get("controller") and each["kind"] == "Job" for each in meta.get("ownerReferences") or ())
    return meta["name"].startswith(_MADE) or None, spec, (spec, phase) if of_job else None


def _queue(queue: Object) -> Views:
    meta = queue["metadata"]
    view = meta.get("generation"), section(queue, "status").get("state")
    return True, view, (*view, text_map(meta.get("annotations")).get(CLOSED_BY_PARENT))


PARTS: Final = {
    "Pod": KindParts(
        "Pod",
        (POD_PLACED, POD_OF_JOB, POD_OF_WORKLOAD, ORPHAN_POD, POD_WITH_CLAIMS, POD_UNGROUPED, POD_OF_OTHERS),
        _pod,
        {"node-agents": POD_PLACED},
    ),
    "Job": KindParts("Job", (JOB_OF_OTHERS,), _job, {"job-controller": JOB_OF_OTHERS}),
    "PodGroup": KindParts("PodGroup", (GROUP_MADE, GROUP_SPECS, GROUP_OF_JOB), _pod_group, blind=False),
    "Queue": KindParts(
        "Queue", (QUEUE_NAMES, QUEUE_STATES, QUEUE_FAMILIES), _queue, {"queue-controller": QUEUE_FAMILIES}, blind=False
    ),
}
"""By kind; most kinds have none."""


# --- The kinds of objects in a scheduler's view


WATCHED: Final = (
    "Node",
    "Queue",
    "PriorityClass",
    "PodGroup",
    "Namespace",
    "Pod",
    "ResourceQuota",
    "PodDisruptionBudget",
    "HyperNode",
    "NodeShard",
    "Numatopology",
    "NodeMetrics",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CSINode",
    "CSIDriver",
    "CSIStorageCapacity",
    "VolumeAttachment",
    "ResourceClaim",
    "ResourceSlice",
    "DeviceClass",
    "ConfigMap",
)
"""In the order of a new list: pods find their nodes, queues and groups when they come."""
