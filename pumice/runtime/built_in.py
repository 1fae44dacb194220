# SPDX-License-Identifier: Apache-2.0
"""Objects for a cluster that was given none: nodes, and a gang that shows something."""

from __future__ import annotations

from typing import Final

from pumice.core.objects.metadata import Object

NODES: Final = 3
GANG: Final = "example-gang"
PLATFORM: Final = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
"""Labels that every kubelet gives its node; manifests select by them."""


def builtin_nodes(count: int = NODES) -> list[Object]:
    """Return so many nodes, with cpu 8, memory 16Gi and room for 110 pods each."""
    quantities = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {**PLATFORM, "kubernetes.io/hostname": name}},
            "spec": {},  # clients of the official library read fields of it
            "status": {
                "allocatable": dict(quantities),
                "capacity": dict(quantities),
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            },
        }
        for name in (f"node-{number}" for number in range(count))
    ]


def example_gang() -> Object:
    """Return a Volcano job of six pods that start together or not at all, and end after two seconds."""
    container = {
        "name": "worker",
        "image": "busybox",
        "command": ["sleep", "2"],
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
    }
    template = {
        # The kubelet here runs no commands: this annotation says how long the `sleep 2` above takes.
        "metadata": {"annotations": {"pumice.dev/duration": "2s"}},
        "spec": {"containers": [container], "restartPolicy": "OnFailure"},
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": GANG, "namespace": "default"},
        "spec": {
            "minAvailable": 6,
            "schedulerName": "volcano",
            "queue": "default",
            "policies": [{"event": "TaskCompleted", "action": "CompleteJob"}],
            "tasks": [{"name": "worker", "replicas": 6, "template": template}],
        },
    }
