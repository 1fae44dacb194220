# SPDX-License-Identifier: Apache-2.0
"""resourcequota: admit a job only where its namespace's quotas leave room. Source: Volcano `plugins/resourcequota`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pumice.config.arguments import PluginArguments
from pumice.core.objects.metadata import section
from pumice.core.plugins.plugin import BuiltInPlugin, Limit
from pumice.core.quantity import Quantity, quantity_of
from pumice.core.session.points.votes import Vote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job

Quantities = dict[str, Quantity]


class QuotaLimits(NamedTuple):
    """A quota's name, and its status."""

    name: str
    hard: Quantities
    used: Quantities


class QuotaShortage(NamedTuple):
    """A quota's shortage for a job: the resource, the job's request, and how much is `left` of `hard`."""

    quota: str
    resource: str
    asked: Quantity
    left: Quantity
    hard: Quantity


class ResourceQuotas(BuiltInPlugin):
    """Keeps to ResourceQuotas. Scopes are ignored. The usage of the job's own pods counts twice."""

    name = "resourcequota"
    says = "lets a job in only where the quotas of its namespace leave room"
    listens = ("JobEnqueued",)
    limits = Limit.NAMESPACE

    def __init__(self, arguments: PluginArguments) -> None:
        self._pending: dict[str, Quantities] = {}
        self._quotas: dict[str, list[QuotaLimits]] = {}

    def on_session_open(self, session: Session) -> None:
        """Read the quotas' statuses: (hard, used) by namespace."""
        self._session = session
        for obj in (session.objects.get("ResourceQuota") or {}).values():
            metadata, status = section(obj, "metadata"), section(obj, "status")
            hard, used = _quantities(section(status, "hard")), _quantities(section(status, "used"))
            limits = QuotaLimits(str(metadata.get("name")), hard, used)
            self._quotas.setdefault(metadata.get("namespace") or "", []).append(limits)
        charge_on_admission = "enqueue-charges-once" in session.config.pumice.fix
        # v1.15.1 charges while it votes: a later Reject of the tier leaves the charge standing to the session's end.
        vote = self._vote if charge_on_admission else self._vote_and_charge
        session.points.job_enqueueable.add(self.name, vote)
        if charge_on_admission:
            session.points.job_enqueued.add(self.name, self._charge)

    def can_go_on(self, session: Session) -> bool:
        """Return True: a change of a quota ends the session that has read it."""
        return True

    def on_session_renew(self, session: Session) -> None:
        """Forget what the session before has charged."""
        self._pending.clear()

    def on_session_close(self, session: Session) -> None:
        """Write nothing."""

    def shortages(self, job: Job) -> list[QuotaShortage]:
        """Return where used + pending + minResources is not within hard, on what both name: of the first such quota."""
        pending, wanted = self._pending.get(job.namespace, {}), _minimum(job)
        for name, hard, used in self._quotas.get(job.namespace, ()):
            found: list[QuotaShortage] = []
            # Sorted, since the message names the first that is short.
            for resource in sorted(wanted.keys() & hard.keys()):
                asked, most = wanted[resource], hard[resource]
                left = _less(_less(most, used.get(resource)), pending.get(resource))
                if asked.compare(left) > 0:
                    found.append(QuotaShortage(name, resource, asked, left, most))
            if found:
                return found
        return []

    def _vote(self, job: Job) -> Vote:
        short = self.shortages(job)
        if not short:
            return Vote.PERMIT
        self._session.fit.remark(job, "resource quota insufficient", "limited", [short[0].resource])
        return Vote.REJECT

    def _vote_and_charge(self, job: Job) -> Vote:
        vote = self._vote(job)
        if vote is Vote.PERMIT:
            self._charge(job)
        return vote

    def _charge(self, job: Job) -> None:
        """Charge the job's minimum to its namespace until the session ends."""
        pending = self._pending.setdefault(job.namespace, {})
        for name, amount in _minimum(job).items():
            pending[name] = _sum(amount, pending.get(name))


def _minimum(job: Job) -> Quantities:
    """Return minResources as the API has it: quotas may name resources that the scheduler does not count."""
    return _quantities(section(section(job.pod_group.pod_group, "spec"), "minResources"))


def _quantities(texts: Mapping[str, Any]) -> Quantities:
    return {name: quantity_of(value) for name, value in texts.items()}


def _sum(first: Quantity, other: Quantity | None) -> Quantity:
    return first if other is None else first.plus(other)


def _less(first: Quantity, other: Quantity | None) -> Quantity:
    if other is None:
        return first
    return first.plus(Quantity(-other.unscaled, other.exponent, other.format, other.wide))
