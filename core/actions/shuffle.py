# SPDX-License-Identifier: Apache-2.0
"""shuffle: evict running tasks that plugins want elsewhere, each by itself.

Source: Volcano `actions/shuffle`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.life.task import TaskStatus

if TYPE_CHECKING:
    from pumice.core.session.session import Session

NAME = "shuffle"


def execute(session: Session) -> None:
    """Evict what the plugins name among all running tasks."""
    running = [task for job in session.jobs.in_order for task in session.jobs.tasks_in(job, TaskStatus.RUNNING)]
    for victim in session.points.victim_tasks(running):
        # No statement, as in shuffle.go: each eviction is final, whatever becomes of the others.
        session.emit_evict(victim, NAME)
        session.release(victim)
