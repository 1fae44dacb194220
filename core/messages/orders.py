"""Orders, to the workers that carry decisions out."""

from __future__ import annotations

from pumice.core.messages.decisions import Bind, Evict, PodCondition, PodGroupEvent, PodGroupStatus, QueueStatus
from pumice.core.messages.message import Message


class BindOrder(Message, frozen=True):
    """Carry out these binds. `first_sequence` is the journal number of the first one's decision; they are in a row.

    For the metrics: `decided_at`, the cycle's `now`, and `created`, when each pod was made; empty when nobody knows.
    """

    cycle: int
    first_sequence: int
    binds: tuple[Bind, ...]
    decided_at: float = 0.0
    created: tuple[float, ...] = ()


class EvictOrder(Message, frozen=True):
    """Carry out these evictions."""

    cycle: int
    first_sequence: int
    evicts: tuple[Evict, ...]


class WriteStatus(Message, frozen=True):
    """Write what a cycle says about pods, PodGroups and queues; an event that was said before is not said again.

    `seen`: the api's revision up to which the cycle saw it; 0: nobody says.
    """

    cycle: int
    pod_conditions: tuple[PodCondition, ...] = ()
    pod_groups: tuple[PodGroupStatus, ...] = ()
    queues: tuple[QueueStatus, ...] = ()
    events: tuple[PodGroupEvent, ...] = ()
    seen: int = 0


BindWorkerCommand = BindOrder
EvictWorkerCommand = EvictOrder
StatusWriterCommand = WriteStatus
