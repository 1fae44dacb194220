"""Which pods of a DaemonSet are made and taken away now (source: Kubernetes' daemon controller: `podsShouldBeOnNode`,
`rollingUpdate`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from pumice.cluster.controllers.pods_of import ENDED, available_at, is_leaving, phase
from pumice.cluster.controllers.revisions import POD_HASH
from pumice.core.objects.metadata import Object, section, text_map
from pumice.core.whole_numbers import whole_number


@dataclass(slots=True)
class DaemonPlan:
    """`new`: nodes that are to have a pod; `ended`: those of `remove` that have ended."""

    new: list[str] = field(default_factory=list[str])
    remove: list[Object] = field(default_factory=list[Object])
    ended: list[Object] = field(default_factory=list[Object])


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node as the set sees it. `pods`: the oldest first."""

    name: str
    wanted: bool
    kept: bool
    pods: Sequence[Object]


class DaemonPlanner:
    """Of one set, at one time; `mark` tells pods of its present template."""

    def __init__(self, owner: Object, mark: str, now: float) -> None:
        self._owner, self._mark, self._now = owner, mark, now
        strategy = section(owner["spec"], "updateStrategy")
        self._rolls = strategy.get("type") == "RollingUpdate"
        rolling = section(strategy, "rollingUpdate")
        self._unavailable, self._surge = rolling.get("maxUnavailable", 1), rolling.get("maxSurge", 0)

    def plan(self, nodes: Sequence[NodeView]) -> DaemonPlan:
        """First a pod for every node, then the next ones of an update."""
        plan = DaemonPlan()
        desired = sum(node.wanted for node in nodes)
        surge = _share(self._surge, desired) if self._rolls else 0
        for node in nodes:
            self._settle(plan, node, surge=surge > 0)
        if self._rolls:
            left = [_without(node, plan.remove) for node in nodes if node.wanted]
            if surge:
                self._surge_over(plan, left, surge)
            else:
                self._roll_over(plan, left, max(_share(self._unavailable, desired), 1))
        return plan

    def is_available(self, pod: Object) -> bool:
        """Whether it has been ready for long enough."""
        at = available_at(pod, self._owner["spec"].get("minReadySeconds") or 0)
        return at is not None and at <= self._now

    def is_new(self, pod: Object) -> bool:
        """Whether it is of the present template."""
        return text_map(pod["metadata"].get("labels")).get(POD_HASH) == self._mark

    def _settle(self, plan: DaemonPlan, node: NodeView, *, surge: bool) -> None:
        if not node.kept:
            plan.remove += [pod for pod in node.pods if not is_leaving(pod)]
            return
        if not node.pods:
            plan.new += [node.name] if node.wanted else []
            return
        staying = [pod for pod in node.pods if not is_leaving(pod)]
        ended = [pod for pod in staying if phase(pod) in ENDED]
        plan.ended += ended
        plan.remove += ended
        running = [pod for pod in staying if phase(pod) not in ENDED]
        groups = [[pod for pod in running if self.is_new(pod) is new] for new in (True, False)] if surge else [running]
        for group in groups:
            plan.remove += group[1:]

    def _on(self, node: NodeView) -> tuple[Object | None, Object | None]:
        """Its pod of the present template, and the one of another."""
        staying = [pod for pod in node.pods if not is_leaving(pod)]
        new = next((pod for pod in staying if self.is_new(pod)), None)
        return new, next((pod for pod in staying if not self.is_new(pod)), None)

    def _roll_over(self, plan: DaemonPlan, nodes: Sequence[NodeView], most: int) -> None:
        """Old pods go, so many at a time that no more than `most` nodes have none that works."""
        missing, first, others = 0, list[Object](), list[Object]()
        for node in nodes:
            new, old = self._on(node)
            if old is None or new is not None:
                missing += new is None or not self.is_available(new) or old is not None
            elif not self.is_available(old):
                first.append(old)
                missing += 1
            else:
                others.append(old)
        plan.remove += [*first, *others[: max(most - missing, 0)]]

    def _surge_over(self, plan: DaemonPlan, nodes: Sequence[NodeView], most: int) -> None:
        """New pods come beside old ones, on so many nodes at a time; an old one goes when the new one works."""
        beside, first, others = 0, list[str](), list[str]()
        for node in nodes:
            new, old = self._on(node)
            if old is None:
                continue
            if new is None:
                (others if self.is_available(old) else first).append(node.name)
            elif self.is_available(new):
                plan.remove.append(old)
            else:
                beside += 1
        plan.new += [*first, *others[: max(most - beside, 0)]]


def _without(node: NodeView, gone: Sequence[Object]) -> NodeView:
    uids = {pod["metadata"]["uid"] for pod in gone}
    return NodeView(node.name, node.wanted, node.kept, [pod for pod in node.pods if pod["metadata"]["uid"] not in uids])


def _share(amount: int | str, whole: int) -> int:
    """A number of nodes, or a percentage of them, rounded up."""
    if isinstance(amount, int):
        return amount
    return ceil((whole_number(amount.removesuffix("%")) or 0) * whole / 100)


def daemon_status(owner: Object, nodes: Sequence[NodeView], planner: DaemonPlanner) -> Object:
    """The status as it is to be: nodes counted."""
    counts: Mapping[str, int] = _counts(nodes, planner)
    status: Object = {"observedGeneration": owner["metadata"].get("generation", 1), **counts}
    status["collisionCount"] = 0
    for name in ("updatedNumberScheduled", "numberAvailable", "numberUnavailable"):
        if not status[name]:
            del status[name]
    return status


def _counts(nodes: Sequence[NodeView], planner: DaemonPlanner) -> dict[str, int]:
    wanted = [node for node in nodes if node.wanted]
    oldest = [node.pods[0] for node in wanted if node.pods]
    ready = [pod for pod in oldest if available_at(pod, 0) is not None]
    available = sum(map(planner.is_available, ready))
    return {
        "currentNumberScheduled": len(oldest),
        "numberMisscheduled": sum(not node.wanted and bool(node.pods) for node in nodes),
        "desiredNumberScheduled": len(wanted),
        "numberReady": len(ready),
        "updatedNumberScheduled": sum(any(planner.is_new(pod) for pod in node.pods) for node in wanted),
        "numberAvailable": available,
        "numberUnavailable": len(wanted) - available,
    }
