# SPDX-License-Identifier: Apache-2.0
"""Network topology within a session: the domains that jobs request, and those that they occupy. Source: Volcano
`framework/session.go`.

Soft mode is hard mode up to the top of the tree, so that there is one way to search; a tier's name becomes its number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pumice.core.life.task import IS_ALLOCATED
from pumice.core.objects.hyper_node import read_hyper_node
from pumice.core.objects.metadata import Object
from pumice.core.state.derived import derived, memory
from pumice.core.state.hypernodes import HyperNodeTree, MatchedNames, build_tree, replaced_tree
from pumice.core.state.sources import NOTHING, objects_and_nodes

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.jobs import SubJob
    from pumice.core.session.session import Session
    from pumice.core.state.jobs import Job
    from pumice.core.state.sources import PlacedObjects

KIND = "HyperNode"


@dataclass(frozen=True, slots=True)
class Wish:
    """A requested topology. `highest_tier`: None where it names no tier that exists (then it limits nothing)."""

    hard: bool
    highest_tier: int | None

    @property
    def limit(self) -> int | None:
        """Return the highest tier that a hard topology allows; None for a soft one or one without a tier."""
        return self.highest_tier if self.hard else None


class SessionTopology:
    """Holds the tree, the topologies that jobs request, and the HyperNodes that jobs and groups occupy."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.tree = _tree(session)
        self._wishes: dict[int, Wish | None] = {}
        self.occupied: dict[int, str] = {}  # job row -> AllocatedHyperNode
        self.heading: dict[int, str] = {}  # task row -> the HyperNode its group occupies while the task is placed
        # jobs that may ask for a topology, in job order
        asking = session.snapshot.jobs.has_topology
        self._candidates: list[Job] = session.jobs.where(asking) if np.count_nonzero(asking) else []
        self._restore()

    @property
    def is_ready(self) -> bool:
        """Return whether jobs with a topology may be scheduled."""
        return not self.tree.problem

    # --- wishes -------------------------------------------------------------------------------------------------------

    def of_job(self, job: Job) -> Wish | None:
        """Return the topology that the job itself requests."""
        if job.row not in self._wishes:
            self._wishes[job.row] = self._wish(job.pod_group.network_topology, self.tree.top.tier)
        return self._wishes[job.row]

    def of_sub_job(self, sub_job: SubJob) -> Wish | None:
        """Return the topology that a group requests; a soft group stays below its job's limit."""
        wish = self.of_job(sub_job.job)
        widest = self.tree.top.tier if wish is None or wish.highest_tier is None else wish.highest_tier
        return self._wish(sub_job.network_topology, widest)

    def _wish(self, spec: Object | None, widest: int) -> Wish | None:
        if spec is None:
            return None
        # Volcano rewrites soft to hard when the session opens (framework/session.go).
        if spec.get("mode") == "soft":
            return Wish(hard=True, highest_tier=widest)
        tier = spec.get("highestTierAllowed")
        if tier is None and spec.get("highestTierName"):
            tier = self.tree.tier_by_name.get(spec["highestTierName"])
        return Wish(hard=True, highest_tier=None if tier is None else int(tier))

    def is_hard(self, job: Job) -> bool:
        """Return whether the job or one of its groups has a hard limit (ContainsHardTopology)."""
        wish = self.of_job(job)
        if wish is not None and wish.limit is not None:
            return True
        if not job.pod_group.sub_group_policy:
            return False
        groups = self._session.sub_jobs(job).values()
        return any((w := self.of_sub_job(group)) is not None and w.limit is not None for group in groups)

    def is_asked_for(self, job: Job) -> bool:
        """Return whether the job or one of its groups asks for any topology (ContainsNetworkTopology)."""
        spec = job.pod_group
        if spec.network_topology is not None:
            return True
        if not any(policy.get("networkTopology") for policy in spec.sub_group_policy):
            return False
        return any(group.network_topology is not None for group in self._session.sub_jobs(job).values())

    # --- where jobs are -----------------------------------------------------------------------------------------------

    def _restore(self) -> None:
        """Drop outdated domains, and derive unknown ones from the nodes of allocated tasks."""
        if not self.is_ready:
            return
        kept = self._session.carry.hyper_nodes
        for job in self._candidates:
            if self.is_asked_for(job):
                self._recall(job, kept.get(job.key, {}))
                self._recover(job)

    def _recall(self, job: Job, known: dict[str, str]) -> None:
        jobs, domains = self._session.jobs, self.tree.domains
        # The HyperNode may be gone, and a job without allocated tasks occupies none.
        if known.get("") in domains and jobs.allocated_count(job):
            self.occupied[job.row] = known[""]
        for uid, sub_job in self._session.sub_jobs(job).items():
            has_tasks = any(IS_ALLOCATED[jobs.status[task.row]] for task in sub_job.tasks)
            if known.get(uid) in domains and has_tasks:
                sub_job.allocated_hyper_node = known[uid]

    def _recover(self, job: Job) -> None:
        found_any = False
        for sub_job in self._session.sub_jobs(job).values():
            if sub_job.network_topology is not None and not sub_job.allocated_hyper_node:
                sub_job.allocated_hyper_node = self._lowest_around(sub_job)
                found_any = found_any or bool(sub_job.allocated_hyper_node)
        if not self.occupied.get(job.row) or found_any:
            common = ""
            for sub_job in self._session.sub_jobs(job).values():
                if sub_job.allocated_hyper_node:
                    common = self.tree.lowest_common(common, sub_job.allocated_hyper_node)
            self.occupied[job.row] = common

    def _lowest_around(self, sub_job: SubJob) -> str:
        """Return the lowest HyperNode that holds all nodes of the group's allocated tasks."""
        jobs = self._session.jobs
        rows = {jobs.node[t.row] for t in sub_job.tasks if IS_ALLOCATED[jobs.status[t.row]] and jobs.node[t.row] >= 0}
        if not rows:
            return ""
        around = [d for d in self.tree.domains.values() if rows <= set(d.rows.tolist())]
        return min(around, key=lambda domain: (domain.tier, domain.name)).name if around else ""

    def remember(self) -> None:
        """Write the occupied domains into the carry."""
        kept: dict[str, dict[str, str]] = {}
        for job in self._candidates:
            if not self.is_asked_for(job):
                continue
            places = {"": self.occupied.get(job.row, "")}
            places |= {uid: sub_job.allocated_hyper_node for uid, sub_job in self._session.sub_jobs(job).items()}
            if any(places.values()):
                kept[job.key] = {uid: name for uid, name in places.items() if name}
        self._session.carry.hyper_nodes = kept

    def after(self, task: Task, row: int, occupied: str) -> str:
        """Return the HyperNode that a group occupies once the task is on that node (getNewAllocatedHyperNode)."""
        return self.tree.lowest_common(self.tree.lowest_of(row), occupied)


def _tree(session: Session) -> HyperNodeTree:
    given = session.options.hyper_nodes
    if given is None:
        return _tree_of_objects(session)
    hyper_nodes = [read_hyper_node(obj) for obj in session.objects.get(KIND, {}).values()]
    tiers = {int(tier): list(names) for tier, names in given.get("byTier", {}).items()}
    return replaced_tree(hyper_nodes, tiers, given.get("nodes", {}), session.nodes.row)


@derived(objects_and_nodes(KIND))
def _tree_of_objects(known: PlacedObjects) -> HyperNodeTree:
    hyper_nodes = [read_hyper_node(obj) for obj in known.objects.values()]
    return build_tree(hyper_nodes, known.nodes.specs, _matched(known.nodes))


@memory(NOTHING)
def _matched(_: None) -> MatchedNames:
    return MatchedNames()
