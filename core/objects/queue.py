"""A queue's immutable part. Source: Volcano `NewQueueInfo` (`api/queue_info.go`)."""

from dataclasses import dataclass

from pumice.core.objects.metadata import Object, parse_time, same_metadata, same_section, section
from pumice.core.resources import Resource


@dataclass(slots=True, eq=False)
class Queue:
    """One queue.

    `capability`, `deserved` and `guarantee` are None where the spec has none; `allocated` is the status text.
    """

    name: str
    weight: int
    priority: int
    parent: str
    capability: Resource | None
    deserved: Resource | None
    guarantee: Resource | None
    reclaimable: bool
    state: str
    created: float
    allocated: dict[str, str]
    annotations: dict[str, str]
    queue: Object

    @property
    def is_open(self) -> bool:
        """Return whether jobs may be admitted and tasks allocated."""
        return self.state == "Open"


def is_counted(before: Queue, now: Queue) -> bool:
    """Return whether only the counts and the allocated amounts in a queue's status have changed."""
    before_obj, obj = before.queue, now.queue
    return now.state == before.state and same_section(before_obj, obj, "spec") and same_metadata(before_obj, obj)


def read_queue(queue: Object) -> Queue:
    """Build a queue. Raises QuantityError for a malformed quantity."""
    meta, spec, status = section(queue, "metadata"), section(queue, "spec"), section(queue, "status")
    capability, deserved, guarantee = spec.get("capability"), spec.get("deserved"), spec.get("guarantee")
    guarantee = guarantee and guarantee.get("resource")
    reclaimable = spec.get("reclaimable")
    return Queue(
        name=meta.get("name") or "",
        weight=int(spec.get("weight") or 0),
        priority=int(spec.get("priority") or 0),
        parent=spec.get("parent") or "",
        capability=Resource.from_list(capability) if capability else None,
        deserved=Resource.from_list(deserved) if deserved else None,
        guarantee=Resource.from_list(guarantee) if guarantee else None,
        reclaimable=True if reclaimable is None else bool(reclaimable),
        state=status.get("state") or "",
        created=parse_time(meta.get("creationTimestamp")),
        allocated=status.get("allocated") or {},
        annotations=meta.get("annotations") or {},
        queue=queue,
    )
