"""PodDisruptionBudgets: how many pods of which labels may be disrupted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pumice.core.kube.selectors import SelectorError, label_selector
from pumice.core.objects.metadata import section

if TYPE_CHECKING:
    from pumice.core.kube.selectors import LabelSelector
    from pumice.core.objects.metadata import Object
    from pumice.core.objects.pod import Task

KIND = "PodDisruptionBudget"


@dataclass(frozen=True, slots=True)
class Budget:
    """`allowed`: disruptions left; `disrupted`: names of pods that are on their way out and counted already."""

    number: int
    selector: LabelSelector
    allowed: int
    disrupted: frozenset[str]

    def is_drawn_on(self, task: Task) -> bool:
        """Whether disrupting this pod, which is of the budget's namespace, takes from it."""
        return task.name not in self.disrupted and self.selector.matches(task.labels)


def budgets_of(objects: dict[str, Object]) -> dict[str, list[Budget]]:
    """Budgets by namespace; one whose selector is empty, missing or invalid protects nobody."""
    found: dict[str, list[Budget]] = {}
    number = 0
    for pdb in objects.values():
        selector: dict[str, Any] = section(pdb, "spec").get("selector") or {}
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
