# SPDX-License-Identifier: Apache-2.0
"""The actions, by the names the configuration uses. Each works on the session it is given and returns nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pumice.core.actions import allocate, backfill, enqueue, gangpreempt, gangreclaim, preempt, reclaim, shuffle
from pumice.core.actions.victims import starving

if TYPE_CHECKING:
    from pumice.core.actions.dry_runs import Steps
    from pumice.core.session.session import Session

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

PLACING: Final = frozenset(("enqueue", "allocate", "backfill"))
"""The actions that do nothing where no task waits, and for which the reason why a task did not find a node
before does not matter.
"""

ANSWERING: Final = PLACING | {"preempt", "reclaim", "gangpreempt", "gangreclaim"}
"""The actions that do nothing where no task waits."""

IDLE: dict[str, Callable[[Session], bool]] = {
    "enqueue": enqueue.is_idle,
    "allocate": allocate.is_idle,
    "backfill": backfill.is_idle,
    **dict.fromkeys(("preempt", "reclaim", "gangpreempt", "gangreclaim"), starving.is_idle),
}
"""How those that have nothing to do in most sessions tell so beforehand, without changing anything."""

DRY_RUNNING: dict[str, Callable[[Session], Steps]] = {"preempt": preempt.steps}
"""The actions that stop at dry runs: their driver may have other processes try the candidates."""
