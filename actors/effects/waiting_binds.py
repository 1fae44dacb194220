"""Binds that wait for their volumes and devices, as the pre-bind worker knows them; they outlive a crash of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pumice.actors.effects.effect_worker import RecentOperations
from pumice.cluster.kernel.pre_bind import Device, Place, awaited_places

if TYPE_CHECKING:
    from pumice.core.messages.decisions import Bind


@dataclass(frozen=True, slots=True)
class WaitingBind:
    """`deadline`: event-loop time, seconds. `created`: when its pod was made; None when nobody knows."""

    bind: Bind
    cycle: int
    sequence: int
    decided_at: float
    deadline: float
    created: float | None = None

    @property
    def cause(self) -> str:
        """The operation id."""
        return f"{self.cycle}/{self.bind.uid}"


@dataclass
class WaitingBinds:
    """Written to the api and not yet bound, by operation id; oldest first. And the operations seen lately.

    `holders`: the claim that was to have a device last, as far as is known here.
    """

    by_cause: dict[str, WaitingBind] = field(default_factory=dict[str, WaitingBind])
    holders: dict[Device, Place] = field(default_factory=dict[Device, Place])
    recent: RecentOperations = field(default_factory=RecentOperations)

    @property
    def next_at(self) -> float:
        """When the first runs out of time."""
        return min((each.deadline for each in self.by_cause.values()), default=float("inf"))

    def places(self) -> set[Place]:
        """All that is waited for."""
        return {place for each in self.by_cause.values() for place in awaited_places(each.bind)}
