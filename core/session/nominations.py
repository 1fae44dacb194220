"""Domains that an eviction made room in for a gang, kept until the gang is there.

Volcano keeps them on the session's copy of a group, which the next cycle does not get; only its pods' nominated nodes
last. Source: Volcano `actions/utils` (ApplySubJobNominations), `cache.updateJobInfo`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job

OUTLIVES: Final = "nominated-domains-last"


class Nominations:
    """Jobs that have a nominated domain, or had one in this session; without the fix nothing is carried over."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._jobs: dict[int, Job] = {}
        self._lasts = OUTLIVES in session.config.pumice.fix
        self._recall()

    def _recall(self) -> None:
        """What an earlier cycle nominated, for groups and domains that still exist."""
        known = self._session.carry.nominated
        if not (known and self._lasts):
            return
        for job in self._session.jobs.in_order:
            if job.key in known:
                self.set(job, known[job.key])

    def set(self, job: Job, domains: dict[str, str]) -> None:
        """Domains by group id."""
        groups = self._session.sub_jobs(job)
        for uid, name in domains.items():
            if uid in groups and name in self._session.topology.tree.domains:
                groups[uid].nominated_hyper_node = name
        self._jobs[job.row] = job

    def rows(self) -> frozenset[int]:
        """Rows of the jobs that are to go first."""
        return frozenset(self._jobs) if self._lasts else frozenset()

    def remember(self) -> None:
        """Write what was not redeemed, and did not turn out to be void, into the carry."""
        kept: dict[str, dict[str, str]] = {}
        for job in self._jobs.values() if self._lasts else ():
            groups = self._session.sub_jobs(job)
            places = {uid: group.nominated_hyper_node for uid, group in groups.items() if group.nominated_hyper_node}
            if places:
                kept[job.key] = places
        self._session.carry.nominated = kept
