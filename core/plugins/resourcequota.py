"""resourcequota: admit a job only where its namespace's quotas leave room. Source: Volcano `plugins/resourcequota`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.objects.metadata import section
from core.quantity import Quantity, quantity_of
from core.session.points.votes import Vote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.session.session import Session
    from core.state.jobs import Job

Quantities = dict[str, Quantity]


class ResourceQuotas:
    """No arguments. Scopes are ignored; what the job's pods use already counts in used and in minResources."""

    name = "resourcequota"

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._pending: dict[str, Quantities] = {}
        self._quotas: dict[str, list[tuple[Quantities, Quantities]]] = {}

    def on_session_open(self, session: Session) -> None:
        """Read the quotas' statuses: (hard, used) by namespace."""
        self._session = session
        for obj in (session.objects.get("ResourceQuota") or {}).values():
            namespace, status = section(obj, "metadata").get("namespace") or "", section(obj, "status")
            limits = _quantities(section(status, "hard")), _quantities(section(status, "used"))
            self._quotas.setdefault(namespace, []).append(limits)
        charge_on_admission = "enqueue-charges-once" in session.config.pumice.fix
        vote = self._vote if charge_on_admission else self._vote_and_charge
        session.points.job_enqueueable.add(self.name, vote)
        if charge_on_admission:
            session.points.job_enqueued.add(self.name, self._charge)

    def on_session_close(self, session: Session) -> None:
        """Nothing to write."""

    def _vote(self, job: Job) -> Vote:
        """used + pending + minResources within hard, on what both name."""
        pending, wanted = self._pending.get(job.namespace, {}), _minimum(job)
        for hard, used in self._quotas.get(job.namespace, ()):
            for name in wanted.keys() & hard.keys():
                if _sum(wanted[name], pending.get(name), used.get(name)).compare(hard[name]) > 0:
                    self._session.fit.remark(job, "resource quota insufficient", "limited", [name])
                    return Vote.REJECT
        return Vote.PERMIT

    def _vote_and_charge(self, job: Job) -> Vote:
        vote = self._vote(job)
        if vote is Vote.PERMIT:
            self._charge(job)
        return vote

    def _charge(self, job: Job) -> None:
        """The job's minimum counts against its namespace until the session ends."""
        pending = self._pending.setdefault(job.namespace, {})
        for name, amount in _minimum(job).items():
            pending[name] = _sum(amount, pending.get(name))


def _minimum(job: Job) -> Quantities:
    """minResources as the API has it: quotas may name what the scheduler does not count."""
    return _quantities(section(section(job.pod_group.pod_group, "spec"), "minResources"))


def _quantities(texts: Mapping[str, Any]) -> Quantities:
    return {name: quantity_of(value) for name, value in texts.items()}


def _sum(first: Quantity, *others: Quantity | None) -> Quantity:
    for other in others:
        if other is not None:
            first = first.plus(other)
    return first
