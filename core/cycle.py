# SPDX-License-Identifier: Apache-2.0
"""A cycle: (snapshot, configuration, clock, carry) in, decisions, writes and the next carry out. Source: Volcano
`scheduler.go`, `framework.go`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from pumice.core.actions import ACTIONS, ANSWERING, IDLE, PLACING
from pumice.core.default_scheduler import cycle as kubernetes
from pumice.core.default_scheduler.profile import NAME as DEFAULT_SCHEDULER
from pumice.core.life.pod_group import OUTSIDE
from pumice.core.life.task import TaskStatus
from pumice.core.outside import Supposing, ask_nothing
from pumice.core.plugins import PLACERS, PLUGINS, SILENT, accountant_of, asks_outside, of_ours_alone
from pumice.core.plugins.plugin import BuiltInPlugin, KnowsDevices
from pumice.core.session.carry import Carry, CycleClock, SessionOptions
from pumice.core.session.closing import close, report
from pumice.core.session.closing.close import let_go
from pumice.core.session.closing.report import cards_later, shares_later, tables_later
from pumice.core.session.session import Session
from pumice.core.session.trail.trail import NULL_TRAIL, NullTrail, Trail
from pumice.core.state.derived import itself
from pumice.core.state.snapshot import with_task_minimums
from pumice.core.state.sources import total as total_allocatable

if TYPE_CHECKING:
    from pumice.config.schema import SchedulerConfig
    from pumice.core.messages.decisions import CycleResult
    from pumice.core.messages.queue_tables import QueueTables
    from pumice.core.outside import Ask
    from pumice.core.session.closing.report import Tellers
    from pumice.core.state.derived import Like
    from pumice.core.state.snapshot import Snapshot

TASK_MINIMUMS: Final = "task-minimums-count"
_PENDING: Final[int] = TaskStatus.PENDING.value
NO_OPTIONS: Final = SessionOptions()

Watch = Callable[[str, str, Callable[["Session"], None], "Session"], None]
"""Learns which plugin is to work, and at which point, OnSessionOpen or OnSessionClose, and lets it: `work(session)`; a
watcher may take the time.
"""

__all__ = [
    "Carry",
    "CycleClock",
    "Session",
    "SessionOptions",
    "Trail",
    "Watch",
    "cards_later",
    "close_session",
    "deserved_in",
    "is_idle",
    "let_go",
    "may_skip_no_op",
    "open_session",
    "run_action",
    "run_cycle",
    "shares_later",
    "tables_later",
]


def unwatched(_plugin: str, _point: str, work: Callable[[Session], None], session: Session) -> None:
    """Leave the work unwatched."""
    work(session)


def open_session(
    snapshot: Snapshot,
    config: SchedulerConfig,
    clock: CycleClock,
    carry: Carry,
    options: SessionOptions | None = None,
    *,
    report: bool = False,
    watch: Watch = unwatched,
    trail: NullTrail = NULL_TRAIL,
    ask: Ask = ask_nothing,
    sparing: bool = False,
) -> Session:
    """Open a session on the snapshot (which it takes over) and let the plugins register.

    `report`: also gather what only readers need. What was true at the opening is worked out when the session closes,
    where no task waits for it. `trail`: records what is asked and answered; no decision depends on it. `ask`: asks
    processes outside, or remembers what they said. `sparing`: where no task waits, plugins that only answer
    are opened when a reader asks for their words.
    """
    ours = not (report or trail.listens) and _is_ours(itself(config), ANSWERING)
    waits = _waits(snapshot) if ours and sparing else None
    session = _renewed(snapshot, config, clock, carry, options, waits, watch) if ours else None
    if session is None:
        session = _opened(snapshot, config, clock, carry, options, trail, waits)
        if ours and snapshot.lease is not None and TASK_MINIMUMS not in config.pumice.fix:
            session.kind, session.heard = (waits, id(config)), snapshot.lease.sessions.heard
        session.wants_report, session.ask = report, ask
        for name, plugin in session.plugins.items():
            watch(name, "OnSessionOpen", plugin.on_session_open, session)
    if waits is Waits.NOTHING:
        session.later = Later(snapshot, config, clock, carry, options)
    if report:
        # After all plugins have registered, and before any action changes what they would answer.
        session.opening = _report.at_open(session)
    return session


class Waits(Enum):
    """What waits as a session opens all of whose actions only answer to tasks that wait."""

    NOTHING = 0
    ADMISSION = 1
    TASKS = 2
    BOTH = 3


WAITS: Final = {
    (False, False): Waits.NOTHING,
    (False, True): Waits.ADMISSION,
    (True, False): Waits.TASKS,
    (True, True): Waits.BOTH,
}
"""By whether a task and a job wait. A dictionary: to call an enumeration takes a microsecond."""

_SPARED: Final = {Waits.NOTHING: SILENT, Waits.ADMISSION: PLACERS}


def _waits(snapshot: Snapshot) -> Waits:
    """Return what waits."""
    columns = snapshot.jobs
    pending = columns.counts[_PENDING]
    # Mostly none waits, and one look at all rows says so.
    tasks = np.count_nonzero(pending) and np.count_nonzero((pending > 0) & columns.known)
    jobs = np.count_nonzero(columns.known & (columns.phase <= OUTSIDE))
    return WAITS[bool(tasks), bool(jobs)]


def _opened(
    snapshot: Snapshot,
    config: SchedulerConfig,
    clock: CycleClock,
    carry: Carry,
    options: SessionOptions | None,
    trail: NullTrail,
    waits: Waits | None,
) -> Session:
    """Return a new session whose plugins have still to open. No plugin that only ranks nodes while no task waits, and
    none at all while no job waits for admission either: no action would ask them.
    """
    if TASK_MINIMUMS in config.pumice.fix:
        snapshot = with_task_minimums(snapshot)
    # A copy: a Resource may be changed in place, and the derived column outlives the session.
    total = total_allocatable(snapshot.derived).clone()
    session = Session(snapshot, config, clock, carry.copy(), options or SessionOptions(), total, trail)
    spared = _SPARED.get(waits, frozenset[str]()) if waits is not None else frozenset[str]()
    for option in (option for tier in config.tiers for option in tier.plugins):
        if option.name in PLUGINS and option.name not in session.plugins and option.name not in spared:
            session.plugins[option.name] = PLUGINS[option.name](option.arguments)
    _find_devices(session)
    return session


def _find_devices(session: Session) -> None:
    """Let plugins find the devices before any plugin opens: the filters of others must see the same ones, whatever
    their order.
    """
    for plugin in session.plugins.values():
        if isinstance(plugin, KnowsDevices):
            plugin.find_devices(session)


def _renewed(
    snapshot: Snapshot,
    config: SchedulerConfig,
    clock: CycleClock,
    carry: Carry,
    options: SessionOptions | None,
    waits: Waits | None,
    watch: Watch,
) -> Session | None:
    """Return the session that was last opened on these columns for the same, begun anew: to build one is a third of a
    small cycle. None where there is none, or where what it was made for has changed.
    """
    kept = None if snapshot.lease is None else snapshot.lease.sessions
    # Taken out: one that fails on its way is not met again.
    session = None if kept is None else cast("Session | None", kept.by_kind.pop((waits, id(config)), None))
    if kept is None or session is None:
        return None
    if not _goes_on(session, snapshot, options or NO_OPTIONS):
        session.forget()
        return None
    (nodes, jobs), session.heard = session.heard, kept.heard
    session.renew(snapshot, clock, carry.copy(), kept.nodes[nodes:], kept.jobs[jobs:])
    plugins = [plugin for plugin in session.plugins.values() if isinstance(plugin, BuiltInPlugin)]
    if len(plugins) < len(session.plugins) or not all(plugin.can_go_on(session) for plugin in plugins):
        session.forget()
        return None
    _find_devices(session)
    for plugin in plugins:
        watch(plugin.name, "OnSessionOpen", plugin.on_session_renew, session)
    return session


def _goes_on(session: Session, snapshot: Snapshot, options: SessionOptions) -> bool:
    """Return whether what a kept session was made for is still so."""
    return session.versions == snapshot.derived.versions and session.options == options


class Later:
    """The answers of all plugins for a session that left some of them out, found for the first reader: mostly there is
    none.
    """

    __slots__ = ("_found", "_given", "_keep")

    def __init__(
        self,
        snapshot: Snapshot,
        config: SchedulerConfig,
        clock: CycleClock,
        carry: Carry,
        options: SessionOptions | None,
    ) -> None:
        self._keep, self._given = snapshot.kept_for_later(), (config, clock, carry, options)
        self._found: Tellers | None = None

    def __call__(self) -> Tellers:
        """Return the answers."""
        if self._found is None:
            session = open_session(self._keep(), *self._given)
            self._found = session.tellers
            let_go(session)
        return self._found


def deserved_in(snapshot: Snapshot, config: SchedulerConfig, clock: CycleClock) -> tuple[QueueTables, ...]:
    """Return what queues would deserve in a session on this snapshot. The tables may hold other metrics too, and may
    lack a metric of 0. The snapshot must not be used afterwards.
    """
    accountant = accountant_of(config)
    deserved = None if accountant is None else accountant.deserved_in(snapshot)
    if deserved is None:
        session = open_session(snapshot, config, clock, Carry(), ask=Supposing())
        tables = tables_later(session, amounts=not of_ours_alone(config))()
        let_go(session)
        return tables
    # No session was opened, and nothing was written in the columns.
    snapshot.derived.give_back()
    if snapshot.lease is not None:
        snapshot.lease.give_back((), (), ())
    return (deserved,)


def may_skip_no_op(config: SchedulerConfig) -> bool:
    """Return whether a session decides nothing when no task waits for a place and nothing has changed since the last
    session except its own writes: every action only places, and neither chance, an outside process nor a user's plugin
    takes part.
    """
    return _is_ours(itself(config), PLACING)


@lru_cache(maxsize=16)
def _is_ours(of: Like[SchedulerConfig], actions: frozenset[str]) -> bool:
    """Return whether these are all actions, and neither chance, an outside process nor a user's plugin takes part."""
    config = of.subject
    ours = of_ours_alone(config) and not asks_outside(config)
    return ours and actions.issuperset(config.actions) and config.pumice.ties != "hash"


def is_idle(session: Session, name: str) -> bool:
    """Return True if the action would certainly find nothing to do now."""
    return name in IDLE and IDLE[name](session)


def run_action(session: Session, name: str) -> None:
    """Run one action. Raises KeyError for a name that is none."""
    session.action = name
    ACTIONS[name](session)


def close_session(session: Session, watch: Watch = unwatched) -> CycleResult:
    """Let the plugins close, write phases, conditions and queue status, and return the decisions. The session must not
    be used afterwards.
    """
    session.trail.end()
    session.jobs.find_unsettled()  # before plugins close: they look at these jobs alone
    status = _report.task_status(session) if session.wants_report else {}
    # By name: Volcano closes in map order (framework.go, CloseSession), which is a different one each time.
    for name in sorted(session.plugins):
        watch(name, "OnSessionClose", session.plugins[name].on_session_close, session)
    result = close.finish(session, status)
    let_go(session)
    return result


def run_cycle(
    snapshot: Snapshot,
    config: SchedulerConfig,
    clock: CycleClock,
    carry: Carry,
    options: SessionOptions | None = None,
    *,
    report: bool = False,
    ask: Ask = ask_nothing,
    scheduler: str = "",
    trail: NullTrail = NULL_TRAIL,
) -> CycleResult:
    """Open, the configured actions in order, close. `scheduler`: Kubernetes' own decides instead of Volcano's."""
    if scheduler == DEFAULT_SCHEDULER:
        return kubernetes.decide(snapshot, config, clock, carry, trail)
    session = open_session(snapshot, config, clock, carry, options, report=report, trail=trail, ask=ask, sparing=True)
    for name in config.actions:
        run_action(session, name)
    return close_session(session)


_report = report
