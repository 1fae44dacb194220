"""Kubernetes' own scheduler after a one-shot cycle of Volcano's: its pods are placed, or have reasons, as in a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from pumice.core.default_scheduler.cycle import closed, opened
from pumice.core.default_scheduler.waiting import waiting
from pumice.core.session.carry import Carry
from pumice.core.session.trail.trail import SILENCE
from pumice.core.state.volumes import volume_rules
from pumice.questions.adviser.classes import WaitReason
from pumice.questions.adviser.ground import NodeRoom
from pumice.questions.adviser.judge import WaitFinding

if TYPE_CHECKING:
    from pumice.config.schema import SchedulerConfig
    from pumice.core.messages.decisions import CycleResult
    from pumice.core.session.carry import CycleClock
    from pumice.core.session.trail.trail import Silence
    from pumice.core.state.view import View


class OtherCycle(NamedTuple):
    """The decisions of Kubernetes' scheduler, and by pod the reasons of those for which it found no node."""

    result: CycleResult
    findings: dict[str, WaitFinding]


def has_others(view: View, config: SchedulerConfig) -> bool:
    """Return whether pods wait for it."""
    return bool(waiting(view.snapshot(volume_rules(config))))


def decide_others(
    view: View, config: SchedulerConfig, clock: CycleClock, first: CycleResult, trail: Silence = SILENCE
) -> OtherCycle | None:
    """Its cycle after that of Volcano's which came to `first`, on a view that is used up by it: what was decided is
    assumed there, as in a run. None where no pod waits for it.
    """
    for bind in first.binds:
        view.assume(bind.namespace, bind.name, bind.node, bind.pre_bind)
    for evict in first.evicts:
        view.evicting(evict.namespace, evict.name)
    snapshot = view.snapshot(volume_rules(config))
    pods = waiting(snapshot)
    if not pods:
        return None
    turn = opened(snapshot, config, clock, Carry.from_dict(first.carry), trail)
    room = turn.session.nodes.future.copy()
    turn.take_all()
    judge, findings = NodeRoom(turn.session, room), dict[str, WaitFinding]()
    making = {evict.preemptor for evict in turn.session.evicts}
    for task in pods:
        if task.key in making:
            findings[task.key] = WaitFinding(WaitReason.PROMISED, "room is being made for it")
        elif task.key in turn.pending:
            findings[task.key] = WaitFinding(*judge.verdict([task]))
    return OtherCycle(closed(turn), findings)


def together(first: CycleResult, other: CycleResult) -> CycleResult:
    """Merge both results: decisions, conditions, and the reasons of pods that wait."""
    report = replace(
        first.report,
        pending={**first.report.pending, **other.report.pending},
        created=(*first.report.created, *other.report.created),
    )
    return replace(
        first,
        binds=(*first.binds, *other.binds),
        evicts=(*first.evicts, *other.evicts),
        pod_conditions=(*first.pod_conditions, *other.pod_conditions),
        carry=other.carry,
        report=report,
    )
