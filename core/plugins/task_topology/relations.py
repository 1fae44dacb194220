"""Which roles want to be together or apart. Source: Volcano `plugins/task-topology` (`readTopologyFromPgAnnotations`,
`ApplyTaskTopology`, `checkTaskSetAffinity`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.core.state.jobs import Job

AFFINITY: Final = "volcano.sh/task-topology-affinity"
ANTI_AFFINITY: Final = "volcano.sh/task-topology-anti-affinity"
TASK_ORDER: Final = "volcano.sh/task-topology-task-order"
# How early a role is dealt out, by the strongest relation it is in.
ALONE_APART, TOGETHER, ALONE_TOGETHER, APART = 4, 3, 2, 1


class Relations:
    """`order`: role -> how early the user wants it, 0 for not at all; `strength`: role -> how early its relations
    want it, for the roles that have any.
    """

    def __init__(self, together: list[list[str]], apart: list[list[str]], order: list[str]) -> None:
        self.strength: dict[str, int] = {}
        self._together: set[tuple[str, str]] = set()
        self._apart: set[tuple[str, str]] = set()
        self._read(together, self._together, ALONE_TOGETHER, TOGETHER)
        self._read(apart, self._apart, ALONE_APART, APART)
        self.order = {role: len(order) - index for index, role in enumerate(order)}

    def _read(self, groups: list[list[str]], pairs: set[tuple[str, str]], alone: int, several: int) -> None:
        for group in groups:
            strength = alone if len(group) == 1 else several
            for role in group:
                self.strength[role] = max(self.strength.get(role, 0), strength)
            if len(group) == 1:
                pairs.add((group[0], group[0]))
            else:
                pairs.update((a, b) for i, a in enumerate(group) for j, b in enumerate(group) if i != j)

    def attraction(self, role: str, others: Mapping[str, int]) -> int:
        """Tasks among the others (role -> number) that the role wants to be with, less those it does not."""
        return sum(n for other, n in others.items() if (role, other) in self._together) - self.repulsion(role, others)

    def repulsion(self, role: str, others: Mapping[str, int]) -> int:
        """Tasks among the others that the role does not want to be with."""
        return sum(n for other, n in others.items() if (role, other) in self._apart)


def relations_of(job: Job) -> Relations | None:
    """What the PodGroup's annotations say: groups with ";" between, roles with "," between.

    None when they say nothing, or name a role twice in a group or one that no task has.
    """
    annotations = job.pod_group.annotations
    if not any(key in annotations for key in (AFFINITY, ANTI_AFFINITY, TASK_ORDER)):
        return None
    together, apart = _groups(annotations.get(AFFINITY)), _groups(annotations.get(ANTI_AFFINITY))
    order = annotations[TASK_ORDER].split(",") if TASK_ORDER in annotations else []
    roles = {task.role for task in job.tasks.values()}
    if not all(_is_sound(group, roles) for group in (*together, *apart, order)):
        return None
    return Relations(together, apart, order)


def _groups(text: str | None) -> list[list[str]]:
    return [] if text is None else [group.split(",") for group in text.split(";")]


def _is_sound(group: list[str], roles: set[str]) -> bool:
    named = [role for role in group if role]
    return len(set(named)) == len(named) and roles.issuperset(named)
