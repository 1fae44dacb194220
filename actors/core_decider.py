"""The real core as the actors use it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from actors.decider import Decider, Moment
from core.actions import ACTIONS, DRY_RUNNING
from core.cycle import close_session, open_session, run_action
from core.plugins import PLUGINS
from core.session.carry import Carry, Clock
from core.state.view import View

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from actors.decider import Steps
    from config.schema import SchedulerConfig


def core_decider(*, report: bool = False) -> Decider:
    """`report`: every cycle computes its full report."""
    stepped: dict[str, Callable[[Any], Steps]] = {name: partial(_steps, name) for name in DRY_RUNNING}
    return Decider(
        View,
        partial(_open, report),
        run_action,
        close_session,
        tuple(ACTIONS),
        plugins=tuple(PLUGINS),
        stepped=stepped,
    )


def _open(report: bool, snapshot: Any, config: SchedulerConfig, moment: Moment, carry: Mapping[str, Any]) -> Any:
    clock, carried = Clock(moment.cycle, moment.now, moment.seed), Carry.from_dict(dict(carry))
    recorded = config.pumice.dry_run_processes > 0  # replicas there are to follow
    return open_session(snapshot, config, clock, carried, report=report, gauges=True, recorded=recorded)


def _steps(name: str, session: Any) -> Steps:
    session.action = name
    return DRY_RUNNING[name](session)
