# SPDX-License-Identifier: Apache-2.0
"""cdp: protect pods that have just been scheduled for a while. Source: Volcano `plugins/cdp`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.config.durations import parse_duration
from pumice.core.life.task import TaskStatus
from pumice.core.plugins.plugin import BuiltInPlugin
from pumice.core.session.points.votes import Vote
from pumice.core.vocabulary import Vocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session

COOLDOWN_TIME = "volcano.sh/cooldown-time"


class Cdp(BuiltInPlugin):
    """Protects running pods for a while.

    A pod's label or annotation `volcano.sh/cooldown-time` (a Go duration) counts from the moment it was scheduled; only
    running pods are protected, and not from the gang actions.
    """

    name = "cdp"
    says = "protects pods that were placed a short while ago"
    listens = ("Preemptable", "Reclaimable")
    protects = "their cooldown is not over"
    vocabulary = Vocabulary(("volcano.sh/cooldown-time",))

    def on_session_open(self, session: Session) -> None:
        """Register for preempt and reclaim."""
        self._session = session
        session.points.preemptable.add(self.name, self.evictable)
        session.points.reclaimable.add(self.name, self.evictable)

    def can_go_on(self, session: Session) -> bool:
        """Return True: cooldowns are compared with the clock whenever victims are asked for."""
        return True

    def on_session_close(self, session: Session) -> None:
        """Write nothing."""

    def evictable(self, _: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
        """Return candidates whose cooldown is over; the session is to run again when the next one ends."""
        now = self._session.clock.now
        victims: list[Task] = []
        for task in candidates:
            until = protected_until(task)
            if until > now:
                self._session.wake(until)
            else:
                victims.append(task)
        return victims, Vote.PERMIT


def protected_until(task: Task) -> float:
    """Return the end of the task's cooldown in seconds since the epoch; 0.0 without one."""
    text = task.labels.get(COOLDOWN_TIME, task.annotations.get(COOLDOWN_TIME))
    if text is None or task.status != TaskStatus.RUNNING or not task.scheduled_at:
        return 0.0
    try:
        return task.scheduled_at + parse_duration(text)
    except ValueError:
        return 0.0
