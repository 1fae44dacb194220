"""The kinds of objects in a scheduler's view."""

from __future__ import annotations

from typing import Final

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
