"""Which plugins have more to say of a session than what they decided; they register when it opens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pumice.core.messages.queue_tables import JobShares, QueueTables
    from pumice.core.objects.pod import Task
    from pumice.core.resources import Resource

    Owned = Callable[[], Iterable[tuple[Task, dict[str, float]]]]
    Texts = Callable[[], dict[str, dict[str, str]]]


class QueueTeller(Protocol):
    """A plugin that orders queues. It works with copies, so that it can be asked at any time, also when the session is
    over; None: it has nothing to say.
    """

    def gauges(self) -> QueueTables | None:
        """Volcano's metrics as they were when the session opened."""
        ...

    def amounts(self) -> QueueTables | None:
        """What it knows besides (guarantee, inqueue, elastic, real_capacity at opening)."""
        ...

    def share_now(self, queue: str) -> float | None:
        """The share of a queue that has a job, at this moment; asked only while the session is open."""
        ...

    def held_now(self, queue: str) -> Resource | None:
        """What a queue that has a job holds at this moment; asked only while the session is open."""
        ...

    def verdicts(self) -> QueueTables | None:
        """Who is overused now."""
        ...


@dataclass(slots=True)
class Tellers:
    """Those of a session, in the order in which they were opened.

    `queues`: see QueueTeller; `owned`: (task, what its devices amount to) of allocated pods, in milli-units by
    resource; `annotated`: pod ("namespace/name") -> annotation -> value; `numa`: node -> resource -> CPUs that are
    free in its cells; `shares`: who has how much of the cluster, also when the session is over.
    """

    queues: list[QueueTeller] = field(default_factory=list["QueueTeller"])
    owned: list[Owned] = field(default_factory=list["Owned"])
    annotated: list[Texts] = field(default_factory=list["Texts"])
    numa: list[Texts] = field(default_factory=list["Texts"])
    shares: list[Callable[[], JobShares]] = field(default_factory=list["Callable[[], JobShares]"])
