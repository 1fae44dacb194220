"""A cycle that is told by a trail: the ground of the tests beside this."""

from __future__ import annotations

from pumice.config.schema import SchedulerConfig
from pumice.core.cycle import Trail, close_session, open_session, run_action
from pumice.core.messages.decisions import CycleResult
from pumice.core.objects.metadata import Object, parse_time
from pumice.core.session.carry import Carry, CycleClock
from tests.core.plugins.world import NOW, configuration, view_of

ACTIONS = ("enqueue", "allocate", "preempt", "reclaim", "backfill")
TIERS = (
    ["priority", "gang", "conformance"],
    ["drf", "predicates", "proportion", "nodeorder"],
)
CONFIG = configuration(*TIERS, actions=ACTIONS)


def decided(trail: Trail, *objects: Object | list[Object], config: SchedulerConfig = CONFIG) -> CycleResult:
    """One cycle with that trail."""
    clock = CycleClock(1, parse_time(NOW))
    session = open_session(view_of(*objects).snapshot(), config, clock, Carry(), trail=trail)
    for action in config.actions:
        run_action(session, action)
    return close_session(session)
