"""Which lock of a node kept a pod from being placed there, and for whom it was set.

A lock names nobody (it is an annotation with a moment): it is of the pod that was given devices of that kind there at
that moment, by this session, a bind that is on its way, or what the pod's annotations say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.core.devices.locks import EXPIRES_S, StandingLock
from pumice.core.life.task import TaskStatus
from pumice.core.objects.metadata import format_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session

MOMENTS: Final = ("volcano.sh/vgpu-time", "volcano.sh/bind-time", "volcano.sh/predicate-time", "hami.io/bind-time")
"""When a pod was given devices: in seconds since the epoch, or in nanoseconds."""
NANOSECONDS: Final = 1e9
_LATER: Final = 1e12  # no moment in seconds is so large


def standing_locks(session: Session) -> dict[str, str]:
    """Node -> a sentence on the lock that was in somebody's way there."""
    locks = next((family.locks for family in session.devices if family.locks is not None), None)
    found = {} if locks is None else locks.in_the_way
    return {session.nodes.names[row]: _told(session, row, lock) for row, lock in sorted(found.items())}


def _told(session: Session, row: int, lock: StandingLock) -> str:
    if lock.uid and (taker := _unbound(session, lock.uid)):
        return (
            f"lock {lock.name} of {session.nodes.names[row]} was taken for {taker}, which was not bound, in this cycle "
            "only: it is not on the node, and is taken anew in every cycle that goes the same way"
        )
    holder = next(_holders(session, row, lock), "")
    whose = f"was set for {holder}" if holder else "was set for no pod that is known here"
    since, ends = format_time(lock.since), format_time(lock.since + EXPIRES_S)
    return f"lock {lock.name} of {session.nodes.names[row]} {whose} at {since} and counts until {ends} at most"


def _unbound(session: Session, uid: str) -> str:
    """The pod that took a lock in this session and is not bound, with which the lock would be written; "" if it is."""
    took = next(task for task in session.snapshot.tasks.handles if task is not None and task.uid == uid)
    return "" if session.jobs.status[took.row] == TaskStatus.BINDING else took.key


def _holders(session: Session, row: int, lock: StandingLock) -> Iterator[str]:
    here = session.nodes.names[row]
    tasks = (task for task in session.snapshot.tasks.handles if task is not None and lock.uid)
    yield from (task.key for task in tasks if task.uid == lock.uid)
    coming = ((pod, needs) for pod, (node, needs) in session.snapshot.promised.items() if node == here)
    yield from (pod for pod, needs in coming if lock.name in dict(needs.locks))
    yield from (task.key for task in session.nodes.tasks_on(row) if lock.since in _moments(session, task))


def _moments(session: Session, task: Task) -> list[float]:
    """Whole seconds."""
    notes: Mapping[str, str] = session.snapshot.annotations_of(task)
    said = [int(notes[name]) for name in MOMENTS if notes.get(name, "").isdigit()]
    return [float(int(each / NANOSECONDS)) if each > _LATER else float(each) for each in said]
