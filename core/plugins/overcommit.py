# SPDX-License-Identifier: Apache-2.0
"""overcommit: admit jobs up to a multiple of the cluster's amounts. Source: Volcano `plugins/overcommit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from pumice.config.arguments import NUMBER, Argument, PluginArguments, at_least
from pumice.core.plugins.plugin import BuiltInPlugin, Limit
from pumice.core.session.demand import (
    admitted,
    anybody_asks,
    column_of,
    exceeds,
    in_job_order,
    outstanding,
    over_all,
    without_gated,
)
from pumice.core.session.fit import TooLittle
from pumice.core.session.points.votes import Refusals, Vote

if TYPE_CHECKING:
    from pumice.core.session.demand import BoolArray, JobRows
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job

FACTOR: Final = Argument(
    "overcommit-factor",
    at_least(NUMBER, 1, "which admits no more than the cluster has; Volcano takes no less"),
    1.2,
    "How many times what the cluster has is admitted.",
)


class Overcommit(BuiltInPlugin):
    """Admits by the sum of the admitted jobs.

    A job that is admitted counts with its whole minResources, also with what its pods use already, as in Volcano.
    `factor`: the one that holds.
    """

    name = "overcommit"
    says = "lets jobs in up to a multiple of what the cluster has"
    listens = ("JobEnqueued",)
    only_answers = True
    limits = Limit.CLUSTER
    arguments = (FACTOR,)

    def __init__(self, arguments: PluginArguments) -> None:
        self.factor = FACTOR.of(arguments)

    def on_session_open(self, session: Session) -> None:
        """Compute idle = total x factor - used, and charge the admitted jobs."""
        # No vote will be asked for, so nothing is gathered.
        self._is_asked = anybody_asks(session)
        if not self._is_asked:
            return
        self._session = session
        self._gather(session)
        session.points.job_enqueueable.add_in_columns(self.name, self.job_enqueueable, Refusals(self._refused))
        session.points.job_enqueued.add(self.name, self.job_enqueued)

    def can_go_on(self, session: Session) -> bool:
        """Return whether a vote is asked for as in the session before."""
        return self._is_asked == anybody_asks(session)

    def on_session_renew(self, session: Session) -> None:
        """Gather the amounts again."""
        if self._is_asked:
            self._gather(session)

    def _gather(self, session: Session) -> None:
        nodes = session.nodes
        # accumulate adds node after node, as Go does; numpy's sum adds in pairs and may differ in the last bits.
        used = np.add.accumulate(nodes.used, axis=1)[:, -1].tolist() if nodes.count else [0.0] * len(session.dims)
        self._idle = session.total.clone().multi(self.factor).sub_without_assert(session.dims.resource(used))
        columns, dims = session.snapshot.jobs, session.dims
        inqueue, running = admitted(columns)
        some = in_job_order(columns, inqueue | running)
        if not len(some):
            self._inqueue = dims.resource([0.0] * len(columns.minimum))
            return
        charged = outstanding(columns, dims, some)
        # overcommit.go charges an Inqueue job with all its minResources, although its pods count in `used` already.
        if "overcommit-counts-once" not in session.config.pumice.fix:
            whole = without_gated(columns, dims, columns.minimum.take(some, axis=1), some)
            charged = np.where(inqueue.take(some), whole, charged)
        self._inqueue = over_all(session, charged)

    def on_session_close(self, session: Session) -> None:
        """Write nothing."""

    def job_enqueueable(self, job: Job) -> Vote:
        """Permit while inqueue + minResources <= idle on the requested dimensions, exactly."""
        minimum = job.pod_group.min_resources
        if minimum is None:
            return Vote.PERMIT
        wanted = self._inqueue.clone().add(minimum)
        fits, short = wanted.less_equal_with_dimension_and_resources_name(self._idle, minimum)
        if fits:
            return Vote.PERMIT
        charged = ("admitted but not placed", self._inqueue.clone())
        self._session.fit.admission.note_amounts(job.row, TooLittle(wanted, self._idle, "", (charged,)))
        self._session.fit.remark(job, "resource in cluster is overused", "overused", short)
        return Vote.REJECT

    def _refused(self, rows: JobRows) -> BoolArray:
        minimum, dims = self._session.snapshot.jobs.minimum.take(rows, axis=1), self._session.dims
        wanted = column_of(self._inqueue, dims, len(minimum))[:, None] + minimum
        return exceeds(wanted, column_of(self._idle, dims, len(minimum))[:, None], minimum)

    def job_enqueued(self, job: Job) -> None:
        """Charge an admitted job."""
        minimum = job.pod_group.min_resources
        if minimum is not None:
            self._inqueue.add(self._session.jobs.without_gated(job, minimum))
