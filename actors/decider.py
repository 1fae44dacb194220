"""What the actors need of the core, as types: the view, and the three steps of a cycle.

`actors.system` puts the real core here; a test may put something smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from config.schema import SchedulerConfig
from core.messages.decisions import CycleResult, PreBind

Object = dict[str, Any]


class SchedulerView(Protocol):
    """`core.state.view.View` as the cache actor uses it."""

    version: int

    def apply(self, event: str, obj: Object, /) -> None: ...
    def assume(self, namespace: str, name: str, node: str, pre_bind: PreBind | None = None, /) -> bool: ...
    def forget(self, namespace: str, name: str, /) -> None: ...
    def evicting(self, namespace: str, name: str, /) -> None: ...
    def unevict(self, namespace: str, name: str, /) -> None: ...
    def snapshot(self) -> Any: ...
    def check(self) -> list[str]: ...


@dataclass(frozen=True)
class Moment:
    """When a cycle takes place: its number, the wall clock (seconds since the epoch) and the seed for ties."""

    cycle: int
    now: float
    seed: int = 0


@dataclass(frozen=True)
class Decider:
    """The steps of a cycle. Snapshots and sessions are opaque here; only the holder of the baton touches a session."""

    new_view: Callable[[], SchedulerView]
    open_session: Callable[[Any, SchedulerConfig, Moment, Mapping[str, Any]], Any]
    run_action: Callable[[Any, str], None]
    close_session: Callable[[Any], CycleResult]
    actions: tuple[str, ...]
    """Every action there is: each has a worker, so that a reloaded configuration may name any of them."""
    plugins: tuple[str, ...] | None = None
    """Every plugin there is (None: whatever a configuration may name)."""
