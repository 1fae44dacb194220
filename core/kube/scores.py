# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' scale of scores and its usual normalisation, in float64 that holds the int64 arithmetic exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pumice.core.objects.metadata import Object
from pumice.core.objects.pod_template import nonzero_request, pod_request
from pumice.core.state.derived import derived
from pumice.core.state.sources import NODES

if TYPE_CHECKING:
    from pumice.core.kube.rows import FloatArray, NodeRows
    from pumice.core.objects.pod_template import PodTemplate
    from pumice.core.resources import Resource
    from pumice.core.state.sources import NodeSpecs

# --- Requests as scorers count them


def scored_request(template: PodTemplate) -> Resource:
    """Return the pod's request without pod-level resources.

    Volcano builds the scorers with that feature off, whatever its gate says.
    """
    if "resources" not in template.spec:
        return template.request
    return pod_request(_of_containers(template))


def scored_nonzero(template: PodTemplate) -> tuple[float, float]:
    """Return (milli-cores, bytes) as `nonzero_request`, without pod-level resources."""
    if "resources" not in template.spec:
        return template.nonzero_cpu, template.nonzero_memory
    return nonzero_request(_of_containers(template))


def _of_containers(template: PodTemplate) -> Object:
    return {name: value for name, value in template.spec.items() if name != "resources"}


MAX_NODE_SCORE = 100.0


def normalise(raw: FloatArray, weight: float, *, reverse: bool = False) -> FloatArray:
    """Return the candidates' raw scores after DefaultNormalizeScore, times the weight. Shape as `raw`.

    Raw scores are whole numbers from 0 to 2**40. 100 * raw / highest is truncated as Go's integer division does: the
    float quotient of two whole numbers below 2**47 never rounds up to the next whole number while it is at most 100.
    """
    highest = float(raw.max()) if raw.size else 0.0
    if highest == 0.0:
        return np.full(raw.shape, MAX_NODE_SCORE * weight if reverse else 0.0)
    scores: FloatArray = raw * MAX_NODE_SCORE
    np.divide(scores, highest, out=scores)
    np.floor(scores, out=scores)
    if reverse:
        np.subtract(MAX_NODE_SCORE, scores, out=scores)
    if weight != 1.0:
        np.multiply(scores, weight, out=scores)
    return scores


# --- Images
# Source: kube-scheduler `imagelocality`.

_MEBIBYTE = 1024 * 1024
_FROM = 23 * _MEBIBYTE  # below this much on a node an image counts for nothing
_TO = 1000 * _MEBIBYTE  # and above this much per container it counts no more


def normalised_image(name: str) -> str:
    """Return the name with a tag, ":latest" when it has none."""
    return f"{name}:latest" if name.rfind(":") <= name.rfind("/") else name


@derived(NODES)
def _images(nodes: NodeSpecs) -> dict[str, tuple[int, list[int]]]:
    """Return image name -> (size in bytes as the first node reports it, rows that have it)."""
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
    """Return the images of a pod's containers, init containers first, with tags."""
    spec = template.spec
    return [
        normalised_image(c.get("image") or "")
        for group in ("initContainers", "containers")
        for c in spec.get(group) or ()
    ]


def image_scores(nodes: NodeRows, names: list[str]) -> FloatArray | None:
    """Return ImageLocality's score per node [N], whole numbers 0..100; None when it is 0 everywhere.

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
            # The order of scaledImageScore: another order, or one cut at the end, gives another last byte.
            total[rows] += int(float(size) * (len(rows) / nodes.count))
    highest = _TO * len(names)
    np.clip(total, _FROM, highest, out=total)
    scores = (int(MAX_NODE_SCORE) * (total - _FROM)) // (highest - _FROM)
    return scores.astype(np.float64) if scores.any() else None
