"""Queues."""

from collections.abc import Mapping

from pumice.core.objects.metadata import Object
from tests.kit.objects import CREATED, metadata, without_empty


def queue(
    name: str,
    *,
    weight: int = 1,
    capability: Mapping[str, str] | None = None,
    deserved: Mapping[str, str] | None = None,
    guarantee: Mapping[str, str] | None = None,
    reclaimable: bool | None = None,
    parent: str | None = None,
    priority: int | None = None,
    state: str = "Open",
    annotations: Mapping[str, str] | None = None,
    created: str = CREATED,
) -> Object:
    """An open queue; capability, deserved and guarantee are resource lists of quantities."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": metadata(name, annotations=annotations, created=created),
        "spec": {"weight": weight}
        | without_empty(
            capability=dict(capability or {}),
            deserved=dict(deserved or {}),
            guarantee={"resource": dict(guarantee)} if guarantee else None,
            reclaimable=reclaimable,
            parent=parent,
            priority=priority,
        ),
        "status": {"state": state},
    }
