# SPDX-License-Identifier: Apache-2.0
"""pdb: allow only evictions that no disruption budget forbids. Source: Volcano `plugins/pdb`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pumice.core.kube.selectors import SelectorError, label_selector
from pumice.core.objects.metadata import section
from pumice.core.plugins.plugin import BuiltInPlugin
from pumice.core.session.points.votes import Vote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.core.kube.selectors import LabelSelector
    from pumice.core.objects.metadata import Object
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session

# --- Budgets

KIND = "PodDisruptionBudget"


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget. `allowed`: disruptions left; `disrupted`: names of pods that are leaving and counted already."""

    number: int
    selector: LabelSelector
    allowed: int
    disrupted: frozenset[str]

    def is_drawn_on(self, task: Task) -> bool:
        """Return whether disrupting this pod, which is of the budget's namespace, takes from it."""
        return task.name not in self.disrupted and self.selector.matches(task.labels)


def budgets_of(objects: dict[str, Object]) -> dict[str, list[Budget]]:
    """Return budgets by namespace; one whose selector is empty, missing or invalid protects no pod."""
    found: dict[str, list[Budget]] = {}
    number = 0
    for pdb in objects.values():
        selector: Object = section(pdb, "spec").get("selector") or {}
        # Kubernetes lets an empty selector match all pods; Volcano's plugin passes over such a budget.
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            continue
        try:
            parsed = label_selector(selector)
        except SelectorError:
            continue
        status = section(pdb, "status")
        namespace = section(pdb, "metadata").get("namespace") or "default"
        allowed, disrupted = int(status.get("disruptionsAllowed") or 0), frozenset(section(status, "disruptedPods"))
        found.setdefault(namespace, []).append(Budget(number, parsed, allowed, disrupted))
        number += 1
    return found


class Pdb(BuiltInPlugin):
    """Keeps to disruption budgets.

    Pods without labels are never victims, as in Volcano. With action shuffle it names every running pod that its
    budgets leave. Fixes: pdb-unlabelled-pods, pdb-leaves-shuffle-alone.
    """

    name = "pdb"
    says = "protects pods whose disruption budget is used up"
    listens = ("Preemptable", "Reclaimable", "Victim")
    protects = "their budgets allow no more disruptions"

    def on_session_open(self, session: Session) -> None:
        """Read the budgets; register for preempt, reclaim and shuffle."""
        fixes = session.config.pumice.fix
        self._spares_unlabelled = "pdb-unlabelled-pods" not in fixes
        self._budgets = budgets_of(session.objects.get(KIND, {}))
        self._count = sum(len(of_namespace) for of_namespace in self._budgets.values())
        self._matching: dict[int, tuple[Budget, ...]] = {}
        session.points.preemptable.add(self.name, self.evictable)
        session.points.reclaimable.add(self.name, self.evictable)
        if "pdb-leaves-shuffle-alone" not in fixes:
            session.points.victim_tasks.add(self.name, [self.within_budget])

    def can_go_on(self, session: Session) -> bool:
        """Return True: a change of a budget ends the session that has read it."""
        return True

    def on_session_renew(self, session: Session) -> None:
        """Match tasks again: rows may have other tasks."""
        self._matching.clear()

    def on_session_close(self, session: Session) -> None:
        """Write nothing."""

    def evictable(self, _: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
        """Return the candidates that the budgets allow."""
        return self.within_budget(candidates), Vote.PERMIT

    def within_budget(self, tasks: Sequence[Task]) -> list[Task]:
        """Return the tasks within their budgets, in the given order: every task draws on all budgets that match it,
        accepted or not.
        """
        left = [0] * self._count
        for of_namespace in self._budgets.values():
            for budget in of_namespace:
                left[budget.number] = budget.allowed
        victims: list[Task] = []
        for task in tasks:
            drawn = self._drawn(task)
            for budget in drawn:
                # Also for a task that is not accepted, as in pdb.go.
                left[budget.number] -= 1
            if (task.labels or not self._spares_unlabelled) and all(left[budget.number] >= 0 for budget in drawn):
                victims.append(task)
        return victims

    def _drawn(self, task: Task) -> tuple[Budget, ...]:
        # Selectors are matched once a task: the same tasks are candidates again and again.
        found = self._matching.get(task.row)
        if found is None:
            found = self._matching[task.row] = tuple(
                budget for budget in self._budgets.get(task.namespace, ()) if budget.is_drawn_on(task)
            )
        return found
