"""Preemption as Kubernetes' own scheduler does it: pods of lower priority make room, as few and as unimportant as will
do. Source: kube-scheduler `plugins/defaultpreemption`, `framework/preemption`.

Kubernetes begins to look for nodes at a random one; here it is the first by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from pumice.core.default_scheduler.waiting import importance
from pumice.core.default_scheduler.words import curable, unavailable
from pumice.core.life.task import PREEMPTABLE_STATUSES, TaskStatus
from pumice.core.once import once
from pumice.core.session.budgets import KIND, budgets_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.default_scheduler.room import RoomFilter
    from pumice.core.objects.pod import Task
    from pumice.core.session.reasons import IntArray
    from pumice.core.session.search.node_search import NodeSearch
    from pumice.core.session.session import Session

FEWEST: Final = 100
SHARE: Final = 10  # per cent of the nodes
"""So many candidates are enough (minCandidateNodesAbsolute, minCandidateNodesPercentage)."""
NEVER: Final = "not eligible due to preemptionPolicy=Never."
LEAVING: Final = "not eligible due to a terminating pod on the nominated node."
NO_VICTIMS: Final = "No preemption victims found for incoming pod"
NO_HELP: Final = "Preemption is not helpful for scheduling"
LIFT: Final = 2**31  # makes every priority positive, so that fewer victims of negative priority are less loss


class Sacrifice(NamedTuple):
    """What one node costs: who must go, the most important first, and how many of them a budget protects."""

    node: int
    victims: tuple[Task, ...]
    violations: int


class Preemption:
    """Of one session. `room` is the filter that knows who is leaving."""

    def __init__(self, session: Session, room: RoomFilter) -> None:
        self._session, self._room = session, room
        self._budgets = budgets_of(session.objects.get(KIND, {}))
        self._in_vain: dict[tuple[NodeSearch, int], str] = {}
        self._as_of = 0, 0  # binds and evictions

    @once
    def _lowest(self) -> int:
        """The lowest priority of any pod on a node: who is not above it finds no victims anywhere."""
        tasks = self._session.snapshot.tasks
        rows = np.flatnonzero(np.isin(tasks.status, PREEMPTABLE_STATUSES)).tolist()
        return min((importance(task) for row in rows if (task := tasks.handles[row]) is not None), default=LIFT)

    def not_eligible(self, task: Task, node: int) -> str:
        """Why the pod may not preempt now, "" if it may (PodEligibleToPreemptOthers). `node`: where room is being made
        for it already, -1 for nowhere.
        """
        if task.template.preemption_policy == "Never":
            return NEVER
        leaving = node >= 0 and any(
            self._session.jobs.status[each.row] == TaskStatus.RELEASING and importance(each) < importance(task)
            for each in self._session.nodes.tasks_on(node)
        )
        return LEAVING if leaving else ""

    def best(self, task: Task, search: NodeSearch, codes: IntArray) -> tuple[Sacrifice | None, str]:
        """The node on which making room is the least loss; without one, why there is none: the same for all who are
        alike and as important, until something has been decided.
        """
        as_of = len(self._session.binds), len(self._session.evicts)
        if as_of != self._as_of:
            self._in_vain.clear()
            self._as_of = as_of
        alike = search, importance(task)
        if alike in self._in_vain:
            return None, self._in_vain[alike]
        found = self._candidates(task, search, codes)
        if found:
            return min(found, key=self._loss), ""
        helpless = len(codes) - int(np.count_nonzero(curable(self._session.reasons, codes)))
        counts = {text: n for text, n in ((NO_VICTIMS, len(codes) - helpless), (NO_HELP, helpless)) if n}
        self._in_vain[alike] = unavailable(len(codes), counts)
        return None, self._in_vain[alike]

    def _candidates(self, task: Task, search: NodeSearch, codes: IntArray) -> list[Sacrifice]:
        """Nodes with the victims that would make room, in the nodes' order: as many as are enough."""
        nodes: list[int] = np.flatnonzero(curable(self._session.reasons, codes)).tolist()
        wanted = max(len(codes) * SHARE // 100, FEWEST)
        found: list[Sacrifice] = []
        for node in nodes if importance(task) > self._lowest else ():
            room = self.on_node(task, search, node)
            if room is not None:
                found.append(room)
            if len(found) == wanted:
                break
        return found

    def fits_after_leaving(self, search: NodeSearch, node: int) -> bool:
        """Whether the node will do when all who are leaving it have left."""
        self._room.after_evictions = True
        try:
            return not search.filter_code(node)
        finally:
            self._room.after_evictions = False

    # --- one node

    def on_node(self, task: Task, search: NodeSearch, node: int) -> Sacrifice | None:
        """SelectVictimsOnNode: all lower ones go; then each comes back who leaves room, the protected ones first."""
        session, status = self._session, self._session.jobs.status
        lower = [
            each
            for each in session.nodes.tasks_on(node)
            if importance(each) < importance(task) and status[each.row] in PREEMPTABLE_STATUSES
        ]
        if not lower:
            return None
        bound = {each.row: status[each.row] == TaskStatus.BOUND for each in lower}
        for each in lower:
            session.release(each)
        gone = lower
        try:
            if not self.fits_after_leaving(search, node):
                return None
            protected, others = self._by_budget(sorted(lower, key=self._rank))
            victims: list[Task] = []
            for each in (*protected, *others):
                session.unrelease(each, bound=bound[each.row])
                if not self.fits_after_leaving(search, node):
                    session.release(each)
                    victims.append(each)
            gone = victims
        finally:
            for each in gone:
                session.unrelease(each, bound=bound[each.row])
        violations = sum(each in protected for each in victims)
        return Sacrifice(node, tuple(sorted(victims, key=self._rank)), violations)

    def _by_budget(self, tasks: Sequence[Task]) -> tuple[list[Task], list[Task]]:
        """Those whose going would overdraw a budget, and the others (filterPodsWithPDBViolation)."""
        left = {each.number: each.allowed for budgets in self._budgets.values() for each in budgets}
        protected: list[Task] = []
        others: list[Task] = []
        for task in tasks:
            drawn = [each for each in self._budgets.get(task.namespace, ()) if task.labels and each.is_drawn_on(task)]
            for budget in drawn:
                left[budget.number] -= 1
            (protected if any(left[budget.number] < 0 for budget in drawn) else others).append(task)
        return protected, others

    def _rank(self, task: Task) -> tuple[int, float, str]:
        """The most important first: by priority, then by how long it has run (MoreImportantPod)."""
        return -importance(task), self._began(task), task.key

    def _began(self, task: Task) -> float:
        return task.started or self._session.clock.now

    def _loss(self, room: Sacrifice) -> tuple[int, int, int, int, float, int]:
        """pickOneNodeForPreemption: fewest violations, lowest highest priority, smallest sum of priorities, fewest
        victims, the highest of them started latest, the node of lowest name.
        """
        priorities = [importance(each) for each in room.victims]
        highest = max(priorities, default=-LIFT)
        began = min((self._began(each) for each in room.victims if importance(each) == highest), default=0.0)
        total = sum(priority + LIFT for priority in priorities)
        return room.violations, highest, total, len(priorities), -began, room.node
