# SPDX-License-Identifier: Apache-2.0
"""sla: admit jobs that have waited longer than agreed, and keep room for them. Source: Volcano `plugins/sla`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.config.arguments import Argument, ArgumentKind, PluginArguments
from pumice.config.durations import parse_duration_ns
from pumice.core.life.pod_group import PodGroupPhase
from pumice.core.life.task import TaskStatus
from pumice.core.plugins.plugin import BuiltInPlugin, OrderNumber
from pumice.core.session.points.orders import JobColumn
from pumice.core.session.points.votes import Vote
from pumice.core.vocabulary import Vocabulary

if TYPE_CHECKING:
    import numpy.typing as npt

    from pumice.core.objects.pod_group import PodGroupSpec
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job


def _agreed_ns(text: object) -> int:
    waiting = parse_duration_ns(text) if isinstance(text, str) else 0
    if waiting <= 0:
        raise ValueError(text)
    return waiting


WAITING_TIME: Final = Argument[int | None](
    "sla-waiting-time",
    ArgumentKind("a duration above 0 such as 100ms, 1.5s or 1h30m", _agreed_ns),
    None,
    "How long a job may wait, unless the annotation of its PodGroup says otherwise.",
    "none",
)
_ANNOTATION: Final = replace(WAITING_TIME, name="volcano.sh/sla-waiting-time")
NANOSECOND: Final = 1_000_000_000
NEVER: Final = 2**63 - 1  # beyond every deadline, in nanoseconds


class Sla(BuiltInPlugin):
    """Orders jobs by their deadlines: creation plus the agreed waiting time."""

    name = "sla"
    says = "lets jobs in that have waited for longer than agreed, and keeps room for them"
    listens = ("JobOrder", "JobEnqueued", "JobPipelined")
    orders_by = OrderNumber("deadline", 1e-9, is_time=True)
    arguments = (WAITING_TIME,)
    vocabulary = Vocabulary((WAITING_TIME.name, _ANNOTATION.name))

    def __init__(self, arguments: PluginArguments) -> None:
        self._waiting_ns = WAITING_TIME.of(arguments)
        self._deadlines: dict[int, int | None] = {}

    def on_session_open(self, session: Session) -> None:
        """Register order and votes; wake when the next deadline of a waiting job comes."""
        self._now = session.clock.now
        self._jobs = session.jobs
        points = session.points
        points.job_order.add(self.name, JobColumn(self._deadlines_of_all))
        points.job_enqueueable.add(self.name, self.permit_overdue)
        points.job_pipelined.add(self.name, self.permit_overdue)
        self._wake(session)

    def can_go_on(self, session: Session) -> bool:
        """Return True: all rules read the deadlines, which are computed again."""
        return True

    def on_session_renew(self, session: Session) -> None:
        """Compute the deadlines again, and wake when the next one comes."""
        self._now = session.clock.now
        self._deadlines.clear()
        self._wake(session)

    def on_session_close(self, session: Session) -> None:
        """Write nothing."""

    def _wake(self, session: Session) -> None:
        columns = session.snapshot.jobs
        order = columns.order
        waiting = (columns.phase[order] <= PodGroupPhase.PENDING.value) | (
            columns.counts[TaskStatus.PENDING][order] > 0
        )
        deadlines = map(self._deadline, columns.named(order[waiting]))
        coming = [d / NANOSECOND for d in deadlines if d is not None and d / NANOSECOND > self._now]
        if coming:
            session.wake(min(coming))

    def _deadline(self, job: Job) -> int | None:
        """Return creation + waiting time in nanoseconds since the epoch, None without an agreement."""
        if job.row not in self._deadlines:
            # The annotation goes before the argument.
            waiting = _agreed(job.pod_group) or self._waiting_ns
            # creationTimestamp is in whole seconds.
            created = int(job.pod_group.created) * NANOSECOND
            self._deadlines[job.row] = None if waiting is None else created + waiting
        return self._deadlines[job.row]

    def _deadlines_of_all(self) -> npt.NDArray[np.int64]:
        """Return keys of job order: the earlier deadline first; jobs without one last."""
        column = np.full(len(self._jobs.readiness), NEVER)
        deadlines = map(self._deadline, self._jobs.in_order)
        # Below NEVER, so that a deadline, however far, comes before none.
        column[self._jobs.columns.order] = [NEVER if each is None else min(each, NEVER - 1) for each in deadlines]
        return column

    def permit_overdue(self, job: Job) -> Vote:
        """Permit the job once its deadline has come; abstain before."""
        deadline = self._deadline(job)
        return Vote.PERMIT if deadline is not None and self._now >= deadline / NANOSECOND else Vote.ABSTAIN


def _agreed(spec: PodGroupSpec) -> int | None:
    """Return the PodGroup's own waiting time; a text that is not a time counts as absent."""
    return _ANNOTATION.of(spec.annotations) or WAITING_TIME.of(spec.annotations)
