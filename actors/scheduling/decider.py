# SPDX-License-Identifier: Apache-2.0
"""Types of the core as the actors use it: the view, and the three steps of a cycle.

`pumice.actors.system.system` puts the real core here; a test may put something smaller.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pumice.config.schema import SchedulerConfig
from pumice.core.messages.commands import CycleSaid
from pumice.core.messages.decisions import BindContext, CycleResult
from pumice.core.messages.queue_tables import CardTable, JobShares, QueueTables
from pumice.core.objects.metadata import Object
from pumice.core.objects.pod import Task
from pumice.core.outside import Ask
from pumice.core.session.session import Session
from pumice.core.state.snapshot import Snapshot
from pumice.core.state.volumes import VolumeRules


class SchedulerView(Protocol):
    """`pumice.core.state.view.View` as the cache actor uses it."""

    version: int

    def apply(self, event: str, obj: Object, /) -> None: ...
    def assume(
        self, namespace: str, name: str, node: str, pre_bind: BindContext | None = None, uid: str | None = None, /
    ) -> bool: ...
    def forget(self, namespace: str, name: str, uid: str | None = None, /) -> bool: ...
    def evicting(self, namespace: str, name: str, uid: str | None = None, /) -> None: ...
    def unevict(self, namespace: str, name: str, uid: str | None = None, /) -> bool: ...
    def next_is_no_op(self, said: CycleSaid, /) -> bool: ...
    def snapshot(self, volumes: VolumeRules = ..., /, *, kept: bool = ..., checks: bool = ...) -> Snapshot: ...
    def check(self) -> list[str]: ...
    def check_touched(self) -> list[str]: ...


@dataclass(frozen=True)
class Moment:
    """Moment of a cycle: its number, the wall clock (seconds since the epoch) and the seed for ties."""

    cycle: int
    now: float
    seed: int = 0


class DryRunLike(Protocol):
    """`core.actions.dry_runs.DryRun` as the actors use it: candidates 0..len(nodes)-1; the first `want` successes are
    enough.

    Trying rows only reads the session; `read` takes findings in whatever order they came.
    """

    nodes: Any
    want: int

    def try_rows(self, first: int, last: int, /) -> Sequence[tuple[int, bytes]]: ...
    def read(self, findings: Sequence[tuple[int, bytes]], /) -> Any: ...


Steps = Generator[DryRunLike, Any, None]
"""An action that stops at every dry run and goes on with what `read` made of the findings."""


def no_tables() -> tuple[QueueTables, ...]:
    """Return no tables: the queues are unknown."""
    return ()


def always(_config: SchedulerConfig) -> bool:
    """Return False: no cycle may be skipped, every one is decided."""
    return False


@dataclass(frozen=True)
class Decider:
    """The steps of a cycle. Only the holder of the baton touches a session."""

    new_view: Callable[[], SchedulerView]
    open_session: Callable[[Snapshot, SchedulerConfig, Moment, Mapping[str, Any], Ask], Session]
    """(snapshot, configuration, moment, carry, the processes to ask)."""
    run_action: Callable[[Session, str], None]
    """(session, action): the whole action in one call."""
    close_session: Callable[[Session], CycleResult]
    is_idle: Callable[[Session, str], bool]
    """(session, action) -> True when the action would certainly find nothing to do."""
    actions: tuple[str, ...]
    """Every action there is: each has a worker, so that a reloaded configuration may name any of them."""
    stepped: Mapping[str, Callable[[Session], Steps]]
    """The actions that stop at dry runs, by name: (session) -> its steps. All others run in one call."""
    queue_tables: Callable[[], tuple[QueueTables, ...]]
    """The newest closed session's table of the queues, made when it is read."""
    card_table: Callable[[], CardTable]
    """The newest closed session's table of the cards in use, made when it is read."""
    job_shares: Callable[[], JobShares]
    """The newest closed session's table of shares of the cluster, made when it is read."""
    asks: Callable[[SchedulerConfig], bool]
    """True for a configuration that asks processes outside: every step of a session may stop at a question."""
    may_skip_no_op: Callable[[SchedulerConfig], bool]
    """True for a configuration whose cycles decide nothing when no pod waits and nothing but what the cycle before
    said has come since.
    """
    others_waiting: Callable[[Snapshot], Sequence[Task]]
    """The pods of Kubernetes' own scheduler that wait in a snapshot, in the order in which it takes them."""
    decide_others: Callable[[Snapshot, SchedulerConfig, Moment, Mapping[str, Any]], CycleResult]
    """(snapshot, configuration, moment, carry): a whole cycle of that scheduler in one call."""
