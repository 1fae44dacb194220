"""Which node's victims are the least loss. Source: Volcano `actions/preempt` (pickOneNodeForPreemption)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.objects.pod import Task

LIFT = 2**31  # makes every priority positive, so that fewer victims of negative priority are less loss


class Candidate(NamedTuple):
    """A node's row and who must go there, most important first."""

    node: int
    victims: tuple[Task, ...]


class Loss(NamedTuple):
    """What is compared, smaller is better: the first victim's priority, the sum of all, how many, how long they ran."""

    highest_priority: int
    sum_of_priorities: int
    victims: int
    started_before: float
    node: int


def loss_of(candidate: Candidate, now: float) -> Loss:
    """The loss of evicting there. Pods' own priorities count; who has not started yet starts now."""
    priorities = [task.pod_priority or 0 for task in candidate.victims]
    highest = max(priorities)
    starts = (task.started or now for task, p in zip(candidate.victims, priorities, strict=True) if p == highest)
    total = sum(priorities) + LIFT * len(priorities)
    return Loss(priorities[0], total, len(priorities), -min(starts), candidate.node)


def choose(candidates: Iterable[Candidate], now: float) -> Candidate | None:
    """The least loss; of equals the node of lowest name. None when there is no candidate."""
    return min(candidates, key=lambda candidate: loss_of(candidate, now), default=None)
