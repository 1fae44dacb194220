# SPDX-License-Identifier: Apache-2.0
"""A queue's immutable part. Source: Volcano `NewQueueInfo` (`api/queue_info.go`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pumice.core.objects.metadata import Object, parse_time, same_metadata, same_section, section
from pumice.core.resources import Resource

AMOUNTS: Final[Mapping[str, str]] = {"capability": "", "deserved": "", "guarantee": "resource"}
"""The amounts of a queue's spec, and the name of the list inside where it is not the amount itself."""


@dataclass(slots=True, eq=False)
class Queue:
    """One queue.

    The `AMOUNTS` are None where the spec has none; `allocated` is the status text.
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


def amount_of(spec: Object, name: str) -> Object:
    """Return the quantities of one of the `AMOUNTS`; {} where the spec has none."""
    held, inner = section(spec, name), AMOUNTS[name]
    return section(held, inner) if inner else held


def read_queue(queue: Object) -> Queue:
    """Build a queue. Raises QuantityError for a malformed quantity."""
    meta, spec, status = section(queue, "metadata"), section(queue, "spec"), section(queue, "status")
    # An empty list counts as none: Volcano asks for its length.
    amounts = {name: Resource.from_list(found) if (found := amount_of(spec, name)) else None for name in AMOUNTS}
    reclaimable = spec.get("reclaimable")
    return Queue(
        name=meta.get("name") or "",
        weight=int(spec.get("weight") or 0),
        priority=int(spec.get("priority") or 0),
        parent=spec.get("parent") or "",
        **amounts,
        # Volcano's webhook writes the default, but a queue may have been loaded without it (QueueInfo.Reclaimable).
        reclaimable=True if reclaimable is None else bool(reclaimable),
        state=status.get("state") or "",
        created=parse_time(meta.get("creationTimestamp")),
        allocated=status.get("allocated") or {},
        annotations=meta.get("annotations") or {},
        queue=queue,
    )
