"""The real core as the actors use it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from actors.decider import Decider, Moment
from core.actions import ACTIONS
from core.cycle import close_session, open_session, run_action
from core.plugins import PLUGINS
from core.session.carry import Carry, Clock
from core.state.view import View

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.schema import SchedulerConfig


def core_decider(*, report: bool = False) -> Decider:
    """`report`: every cycle computes its full report."""
    return Decider(View, partial(_open, report), run_action, close_session, tuple(ACTIONS), tuple(PLUGINS))


def _open(report: bool, snapshot: Any, config: SchedulerConfig, moment: Moment, carry: Mapping[str, Any]) -> Any:
    clock = Clock(moment.cycle, moment.now, moment.seed)
    return open_session(snapshot, config, clock, Carry.from_dict(dict(carry)), report=report, gauges=True)
