"""The actions, by the names the configuration uses. Each works on the session it is given and returns nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from core.actions import allocate, backfill, enqueue, gangpreempt, gangreclaim, preempt, reclaim, shuffle

if TYPE_CHECKING:
    from core.session.session import Session

ACTIONS: dict[str, Callable[[Session], None]] = {
    "enqueue": enqueue.execute,
    "allocate": allocate.execute,
    "backfill": backfill.execute,
    "preempt": preempt.execute,
    "reclaim": reclaim.execute,
    "gangpreempt": gangpreempt.execute,
    "gangreclaim": gangreclaim.execute,
    "shuffle": shuffle.execute,
}
