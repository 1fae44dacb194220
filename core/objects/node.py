# SPDX-License-Identifier: Apache-2.0
"""A node's immutable part. Source: Volcano `NewNodeInfo` (`api/node_info.go`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.core.go_numbers import value_of
from pumice.core.objects.metadata import Object, parse_bool, same_metadata, same_section, section, text_map
from pumice.core.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

OVERSUBSCRIPTION = "volcano.sh/oversubscription"
OVERSUBSCRIPTION_CPU = "volcano.sh/oversubscription-cpu"
OVERSUBSCRIPTION_MEMORY = "volcano.sh/oversubscription-memory"
OFFLINE_JOB_EVICTING = "volcano.sh/offline-job-evicting"
REVOCABLE_ZONE = "volcano.sh/revocable-zone"


class NodeSpec(msgspec.Struct, eq=False, gc=False):
    """One node as the API describes it, a Struct as pods are.

    `allocatable` includes oversubscription; `max_pods` is allocatable pods (a count).
    """

    name: str
    labels: dict[str, str]
    annotations: dict[str, str]
    taints: tuple[Object, ...]
    unschedulable: bool
    allocatable: Resource
    capacity: Resource
    max_pods: int
    revocable_zone: str
    oversubscribed: bool
    offline_job_evicting: bool
    images: tuple[Object, ...]
    node: Object


def oversubscription(annotations: Mapping[str, str], *, as_python: bool = False) -> Resource:
    """Return what a node has beside its allocatable; `as_python`: numbers are read by the rule before version 6."""
    # Volcano ignores ParseFloat's error and keeps what is beside it (setOversubscription).
    cpu, memory = (
        value_of(annotations.get(name, ""), as_python=as_python)
        for name in (OVERSUBSCRIPTION_CPU, OVERSUBSCRIPTION_MEMORY)
    )
    return Resource(cpu, memory)


def _with(resource: Resource, more: Mapping[str, float] | None) -> Resource:
    if more:
        resource.scalars = {**(resource.scalars or {}), **more}
    return resource


def read_node(
    node: Object,
    attachable: Mapping[str, float] | None = None,
    ignored: Collection[str] = (),
    *,
    as_python: bool = False,
) -> NodeSpec:
    """Build the spec of a node; raises QuantityError for a malformed quantity.

    `attachable`: what it has of volumes, in milli-units by resource, in place of what its status says of them;
    `ignored`: resources that count nothing; `as_python`: see `oversubscription`.
    """
    meta, spec, status = section(node, "metadata"), section(node, "spec"), section(node, "status")
    labels, annotations = text_map(meta.get("labels")), text_map(meta.get("annotations"))
    extra = oversubscription(annotations, as_python=as_python)
    allocatable = _with(Resource.from_list(section(status, "allocatable"), ignored), attachable)
    return NodeSpec(
        name=meta.get("name") or "",
        labels=labels,
        annotations=annotations,
        taints=tuple(spec.get("taints") or ()),
        unschedulable=bool(spec.get("unschedulable")),
        allocatable=allocatable.add(extra),
        capacity=_with(Resource.from_list(section(status, "capacity"), ignored), attachable).add(extra),
        # Oversubscription, added above in place, has cpu and memory alone: the count of pods is what the node says.
        max_pods=int((allocatable.scalars or {}).get("pods", 0)),
        revocable_zone=labels.get(REVOCABLE_ZONE, ""),
        # A label, and below an annotation: so Volcano reads them (setOversubscription).
        oversubscribed=bool(parse_bool(labels.get(OVERSUBSCRIPTION, ""))),
        offline_job_evicting=bool(parse_bool(annotations.get(OFFLINE_JOB_EVICTING, ""))),
        images=tuple(status.get("images") or ()),
        node=node,
    )


# What filters and scorers read of a status; a heartbeat changes its conditions alone.
_READ_OF_STATUS = ("allocatable", "capacity", "images")


def renewed_node(known: NodeSpec, node: Object) -> NodeSpec | None:
    """Return the spec `known` after a heartbeat; None when anything differs that a decision could depend on: only times
    and conditions may differ.
    """
    before = known.node
    if not same_section(before, node, "spec") or not same_metadata(before, node):
        return None
    was, status = section(before, "status"), section(node, "status")
    for name in _READ_OF_STATUS:
        if was.get(name) != status.get(name):
            return None
    return msgspec.structs.replace(known, node=node)
