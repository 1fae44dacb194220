"""Which domains to try for a hard topology, nearest tier first.

Source: Volcano `hyperNodeGradientFn`, `getSearchRoot`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pumice.core.resources import Resource

if TYPE_CHECKING:
    from pumice.core.plugins.network_topology_aware.occupancy import DomainOccupancy
    from pumice.core.session.session import Session
    from pumice.core.session.subjobs import SubJob
    from pumice.core.state.hypernodes import Domain, HyperNodeTree
    from pumice.core.state.jobs import Job

EVICT = "evict"
BY_NAME: Final = "domains-of-a-tier-by-name"
"""The rule of earlier versions."""


@dataclass(slots=True)
class Gradients:
    """The gradients of jobs and groups within one session."""

    session: Session
    occupancy: DomainOccupancy
    max_hyper_nodes: int

    def for_job(self, job: Job, domain: Domain, purpose: str) -> list[list[Domain]]:
        """Domains for a whole job: those with room for its minResources, unless it occupies one already."""
        topology = self.session.topology
        wish = topology.of_job(job)
        if wish is None or wish.limit is None:
            return [[domain]]
        needs = self.session.dims.items(job.pod_group.min_resources or Resource())
        return self._find(domain, wish.limit, topology.occupied.get(job.row, ""), needs, purpose)

    def for_sub_job(self, sub_job: SubJob, domain: Domain, purpose: str) -> list[list[Domain]]:
        """Domains for one group: those with room for all its pending tasks."""
        wish = self.session.topology.of_sub_job(sub_job)
        if wish is None or wish.limit is None:
            return [[domain]]
        total = Resource()
        for task in sub_job.pending(self.session.jobs):
            total.add(task.template.request)
        needs = self.session.dims.items(total)
        return self._find(domain, wish.limit, sub_job.allocated_hyper_node, needs, purpose)

    def _find(
        self, domain: Domain, highest: int, occupied: str, needs: tuple[tuple[int, float], ...], purpose: str
    ) -> list[list[Domain]]:
        tree = self.session.topology.tree
        root = search_root(tree, domain, highest, occupied)
        if root is None:
            return []
        by_tier: dict[int, list[Domain]] = {}
        queue, seen = [root], {root.name}
        for current in queue:  # grows while it is walked: breadth first
            if current.tier <= highest and (occupied or self._has_room(current, needs, purpose)):
                by_tier.setdefault(current.tier, []).append(current)
            for child in current.children:
                if child not in seen:
                    seen.add(child)
                    queue.append(tree.domains[child])
        gradients = [by_tier[tier] for tier in sorted(by_tier)]
        if BY_NAME in self.session.config.pumice.fix:
            gradients = [sorted(gradient, key=lambda one: one.name) for gradient in gradients]
        return self._widest_first(gradients) if purpose == EVICT else gradients

    def _has_room(self, domain: Domain, needs: tuple[tuple[int, float], ...], purpose: str) -> bool:
        column, occupancy = self.occupancy.index[domain.name], self.occupancy
        if purpose == EVICT:
            return occupancy.fits(needs, occupancy.allocatable, column)
        return occupancy.fits(needs, occupancy.idle, column) or occupancy.fits(needs, occupancy.future, column)

    def _widest_first(self, gradients: list[list[Domain]]) -> list[list[Domain]]:
        """For eviction: the widest tier first, at most so many domains in all."""
        left = self.max_hyper_nodes
        found: list[list[Domain]] = []
        for gradient in reversed(gradients):
            if left == 0:
                break
            found.append(gradient[-left:])
            left -= len(found[-1])
        return found


def search_root(tree: HyperNodeTree, domain: Domain, highest: int, occupied: str) -> Domain | None:
    """Where to begin:

    `domain`, or below it the highest allowed HyperNode above what is occupied; None when the two do not meet.
    """
    if not occupied:
        return domain
    allowed = ""
    for ancestor in tree.ancestors(occupied):
        if ancestor not in tree.domains:
            return None
        if tree.domains[ancestor].tier > highest:
            break
        allowed = ancestor
    if not allowed:
        return None
    common = tree.lowest_common(domain.name, allowed)
    if common == allowed:
        return domain
    return tree.domains[allowed] if common == domain.name else None
