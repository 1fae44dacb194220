"""A cycle of Kubernetes' own scheduler: what a cycle of Volcano's is made of goes in, decisions and conditions of pods
come out. PodGroups, queues and the carry are not its concern.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.core.default_scheduler.filters import KubeFilters
from pumice.core.default_scheduler.profile import NAME, profile
from pumice.core.default_scheduler.scheduling import OneByOne
from pumice.core.default_scheduler.waiting import waiting
from pumice.core.digest import digest
from pumice.core.messages.decisions import CycleReport, CycleResult
from pumice.core.plugins.nodeorder import NodeOrder
from pumice.core.session.carry import SessionOptions
from pumice.core.session.closing.close import let_go
from pumice.core.session.session import Session
from pumice.core.session.trail.trail import SILENCE
from pumice.core.state.sources import total as total_allocatable

if TYPE_CHECKING:
    from pumice.config.schema import SchedulerConfig
    from pumice.core.session.carry import Carry, CycleClock
    from pumice.core.session.trail.trail import Silence
    from pumice.core.state.snapshot import Snapshot


def decide(
    snapshot: Snapshot, in_force: SchedulerConfig, clock: CycleClock, carry: Carry, trail: Silence = SILENCE
) -> CycleResult:
    """Every pod that waits for this scheduler, one after the other, on the snapshot, which is taken over. `in_force`:
    Volcano's configuration, which says how the view counts volumes. `trail`: as in `opened`.
    """
    turn = opened(snapshot, in_force, clock, carry, trail)
    turn.take_all()
    return closed(turn)


def opened(
    snapshot: Snapshot, in_force: SchedulerConfig, clock: CycleClock, carry: Carry, trail: Silence = SILENCE
) -> OneByOne:
    """A session of this scheduler; `trail` is told of every look at the nodes."""
    pods, total = waiting(snapshot), total_allocatable(snapshot.derived).clone()
    session = Session(snapshot, profile(in_force), clock, carry.copy(), SessionOptions(), total, trail)
    session.action = NAME
    filters = KubeFilters({})
    for plugin in (filters, NodeOrder({})):
        plugin.on_session_open(session)
    return OneByOne(session, filters, pods)


def closed(turn: OneByOne) -> CycleResult:
    """What is to be done and written. The session is of no use afterwards."""
    session = turn.session
    session.trail.end()
    binds, evicts, conditions = tuple(session.binds), tuple(session.evicts), tuple(turn.conditions)
    result = CycleResult(
        cycle=session.clock.cycle,
        digest=digest(binds, evicts, conditions, (), ()),
        binds=binds,
        evicts=evicts,
        pod_conditions=conditions,
        carry=session.carry.to_dict(),
        report=CycleReport(created=tuple([task.created for task in session.bound]), pending=turn.pending),
    )
    let_go(session)
    return result
