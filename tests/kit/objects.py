"""What all objects share: metadata, and lists of resources."""

from collections.abc import Mapping
from typing import Any

from pumice.core.objects.metadata import Object

CREATED = "2026-01-01T00:00:00Z"
GPU = "nvidia.com/gpu"


def metadata(
    name: str,
    *,
    namespace: str | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    uid: str | None = None,
    created: str = CREATED,
) -> Object:
    """Metadata as the API server would have it; the uid is readable and follows from the names unless given."""
    where = {} if namespace is None else {"namespace": namespace}
    known: Object = {
        "name": name,
        **where,
        "uid": uid or "-".join([*where.values(), name]),
        "creationTimestamp": created,
    }
    return known | without_empty(labels=dict(labels or {}), annotations=dict(annotations or {}))


def resources(cpu: str | None, memory: str | None, gpus: int, extra: Mapping[str, str] | None) -> dict[str, str]:
    """A resource list of Kubernetes quantities; what is None, or no GPU, is left out."""
    listed = {"cpu": cpu, "memory": memory, GPU: str(gpus) if gpus else None, **(extra or {})}
    return {name: quantity for name, quantity in listed.items() if quantity is not None}


def without_empty(**fields: Any) -> Object:
    """The fields that say something: None, empty strings, lists and dictionaries are left out; 0 and False stay."""
    return {name: value for name, value in fields.items() if value is not None and value not in ("", [], {})}
