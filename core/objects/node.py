"""A node's immutable part. Source: Volcano `NewNodeInfo` (`api/node_info.go`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core.objects.metadata import Object, parse_bool, section, text_map
from core.resources import Resource

OVERSUBSCRIPTION = "volcano.sh/oversubscription"
OVERSUBSCRIPTION_CPU = "volcano.sh/oversubscription-cpu"
OVERSUBSCRIPTION_MEMORY = "volcano.sh/oversubscription-memory"
OFFLINE_JOB_EVICTING = "volcano.sh/offline-job-evicting"
REVOCABLE_ZONE = "volcano.sh/revocable-zone"


@dataclass(slots=True, eq=False)
class NodeSpec:
    """One node as the API describes it.

    `allocatable` includes oversubscription; `max_pods` is allocatable pods (a count).
    """

    name: str
    labels: dict[str, str]
    annotations: dict[str, str]
    taints: tuple[dict[str, Any], ...]
    unschedulable: bool
    allocatable: Resource
    capacity: Resource
    max_pods: int
    revocable_zone: str
    oversubscribed: bool
    offline_job_evicting: bool
    images: tuple[dict[str, Any], ...]
    node: Object

    def means_the_same_as(self, other: NodeSpec) -> bool:
        """Whether nothing differs that a decision could depend on: times and conditions may."""
        mine, theirs = self._content(), other._content()
        return mine == theirs and (self.allocatable.scalars is None) is (other.allocatable.scalars is None)

    def _content(self) -> tuple[Any, ...]:
        status = section(self.node, "status")
        amounts = (status.get("allocatable"), status.get("capacity"))
        return (self.name, self.labels, self.annotations, self.taints, self.unschedulable, self.images, *amounts)


def _number(text: str | None) -> float:
    try:
        return float(text) if text else 0.0
    except ValueError:
        return 0.0


def read_node(node: Object) -> NodeSpec:
    """Build the spec of a node; raises QuantityError for a malformed quantity."""
    meta, spec, status = section(node, "metadata"), section(node, "spec"), section(node, "status")
    labels, annotations = text_map(meta.get("labels")), text_map(meta.get("annotations"))
    extra = Resource(_number(annotations.get(OVERSUBSCRIPTION_CPU)), _number(annotations.get(OVERSUBSCRIPTION_MEMORY)))
    allocatable = Resource.from_list(section(status, "allocatable"))
    return NodeSpec(
        name=meta.get("name") or "",
        labels=labels,
        annotations=annotations,
        taints=tuple(spec.get("taints") or ()),
        unschedulable=bool(spec.get("unschedulable")),
        allocatable=allocatable.add(extra),
        capacity=Resource.from_list(section(status, "capacity")).add(extra),
        max_pods=int((allocatable.scalars or {}).get("pods", 0)),
        revocable_zone=labels.get(REVOCABLE_ZONE, ""),
        oversubscribed=bool(parse_bool(labels.get(OVERSUBSCRIPTION, ""))),
        offline_job_evicting=bool(parse_bool(annotations.get(OFFLINE_JOB_EVICTING, ""))),
        images=tuple(status.get("images") or ()),
        node=node,
    )
