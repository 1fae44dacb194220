# SPDX-License-Identifier: Apache-2.0
"""The form that every life cycle has: states, triggers and the one table that joins them.

Who keeps a state sets it to what a life cycle answers, and to nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Generic, TypeVar

from pumice.core.errors import InvalidTransition

State = TypeVar("State", bound=Enum)
Trigger = TypeVar("Trigger", bound=Enum)


@dataclass(frozen=True, slots=True, init=False)
class LifeCycle(Generic[State, Trigger]):
    """The table of a life cycle. `transitions`: the next state by state and trigger; it cannot be changed."""

    transitions: Mapping[tuple[State, Trigger], State]

    def __init__(self, transitions: Mapping[tuple[State, Trigger], State]) -> None:
        object.__setattr__(self, "transitions", MappingProxyType(dict(transitions)))

    def step(self, state: State, trigger: Trigger) -> State | None:
        """Return the next state; None without a transition."""
        return self.transitions.get((state, trigger))

    def after(self, state: State, trigger: Trigger) -> State:
        """Return the next state; the same state without a transition."""
        return self.transitions.get((state, trigger), state)

    def move(self, state: State, trigger: Trigger, who: str) -> State:
        """Return the next state. Raises InvalidTransition, which names the subject `who`, without a transition."""
        after = self.transitions.get((state, trigger))
        if after is None:
            raise InvalidTransition(who, state.name.capitalize(), str(trigger.value))
        return after
