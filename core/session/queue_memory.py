"""What follows from the queues' specs and the cluster's size alone, kept from session to session.

A queue's status changes in nearly every cycle, its spec hardly ever; a thousand queues are not to be gone through again
for a status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from core.objects.queue import Queue
    from core.session.session import Session


def kept_for_queues(session: Session, name: str, about: object, make: Callable[[], T]) -> T:
    """`make()`, or what it returned last time, when since then no queue's limits, neither the cluster's total nor the
    number of dimensions, nor `about` have changed.
    """
    kept, queues = session.snapshot.kept, session.snapshot.queues
    known, facts = kept.get(name), _facts(session, about)
    if known is not None and known[1:3] == facts and _same_limits(known[0], queues):
        found: T = known[3]
    else:
        found = make()
        facts = _facts(session, about)  # making it may have brought new dimensions
    kept[name] = (queues, *facts, found)
    return found


def _facts(session: Session, about: object) -> tuple[Any, Any]:
    return (about, len(session.dims)), session.total.clone()


def _same_limits(before: Sequence[Queue], now: Sequence[Queue]) -> bool:
    return len(before) == len(now) and all(
        old is new or _limits(old) == _limits(new) for old, new in zip(before, now, strict=True)
    )


def _limits(queue: Queue) -> tuple[object, ...]:
    return (queue.name, queue.weight, queue.parent, queue.capability, queue.deserved, queue.guarantee)
