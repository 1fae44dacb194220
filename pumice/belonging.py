# SPDX-License-Identifier: Apache-2.0
"""Owner of a pod and size of its group, from the pod and its PodGroup: one rule for every summary."""

from __future__ import annotations

from typing import Final

from pumice.cluster.controllers.job_keys import JOB_NAME
from pumice.core.objects.metadata import Object, annotations_of, rows, section
from pumice.core.objects.pod import GROUP_NAME

DEFAULT_QUEUE: Final = "default"


def group_of(namespace: str, pod: Object) -> str:
    """Return the pod's PodGroup, "namespace/name"; "" for none."""
    return _named(namespace, pod, GROUP_NAME)


def job_of(namespace: str, pod: Object) -> str:
    """Return the Volcano Job that the pod itself names, "namespace/name"; "" for none."""
    return _named(namespace, pod, JOB_NAME)


def owner_of(group: Object) -> str:
    """Return the controller of a PodGroup as "namespace/name"; the PodGroup itself where it has none."""
    meta = section(group, "metadata")
    name = next((owner["name"] for owner in rows(meta, "ownerReferences") if owner.get("controller")), meta.get("name"))
    return f"{meta.get('namespace') or 'default'}/{name}"


def queue_of(group: Object) -> str:
    """Return the queue of a PodGroup or a Job."""
    return str(section(group, "spec").get("queue") or DEFAULT_QUEUE)


def minimum_of(group: Object) -> int:
    """Return the number of pods that a PodGroup needs before any of them starts."""
    return max(int(section(group, "spec").get("minMember") or 1), 1)


def is_of_daemon_set(pod: Object) -> bool:
    """Return whether a DaemonSet owns the pod: it belongs to its node, and is neither moved nor drained."""
    return any(owner.get("kind") == "DaemonSet" for owner in rows(section(pod, "metadata"), "ownerReferences"))


def _named(namespace: str, pod: Object, key: str) -> str:
    name = annotations_of(pod).get(key)
    return f"{namespace}/{name}" if name else ""
