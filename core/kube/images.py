"""Which container images lie on which nodes, and what that is worth. Source: kube-scheduler `imagelocality`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.core.kube.scores import MAX_NODE_SCORE
from pumice.core.state.derived import derived
from pumice.core.state.sources import NODES

if TYPE_CHECKING:
    from pumice.core.kube.rows import FloatArray, NodeRows
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.state.sources import NodeSpecs

_MEBIBYTE = 1024 * 1024
_FROM = 23 * _MEBIBYTE  # below this much on a node an image counts for nothing
_TO = 1000 * _MEBIBYTE  # and above this much per container it counts no more


def normalised_image(name: str) -> str:
    """The name with a tag: ":latest" when it has none."""
    return f"{name}:latest" if name.rfind(":") <= name.rfind("/") else name


@derived(NODES)
def _images(nodes: NodeSpecs) -> dict[str, tuple[int, list[int]]]:
    """Image name -> (size in bytes as the first node tells it, rows that have it)."""
    known: dict[str, tuple[int, list[int]]] = {}
    for row, spec in enumerate(nodes.specs):
        names = {
            name: int(image.get("sizeBytes") or 0)
            for image in reversed(spec.images)
            for name in image.get("names") or ()
        }
        for name, size in names.items():
            known.setdefault(name, (size, []))[1].append(row)
    return known


def container_images(template: PodTemplate) -> list[str]:
    """The images of a pod's containers, init containers first, with tags."""
    spec = template.spec
    return [
        normalised_image(c.get("image") or "")
        for group in ("initContainers", "containers")
        for c in spec.get(group) or ()
    ]


def image_scores(nodes: NodeRows, names: list[str]) -> FloatArray | None:
    """ImageLocality's score per node [N], whole numbers 0..100; None when it is 0 everywhere.

    An image's size is scaled by the share of all nodes that have it. (Volcano fills that share in node by node as they
    arrive; here it is what every node has once each has been updated.)
    """
    images = _images(nodes)
    if not names or not any(name in images for name in names):
        return None
    total = np.zeros(nodes.count, dtype=np.int64)
    for name in names:
        if name in images:
            size, rows = images[name]
            total[rows] += int(float(size) * (len(rows) / nodes.count))
    highest = _TO * len(names)
    np.clip(total, _FROM, highest, out=total)
    scores = (int(MAX_NODE_SCORE) * (total - _FROM)) // (highest - _FROM)
    return scores.astype(np.float64) if scores.any() else None
