# SPDX-License-Identifier: Apache-2.0
"""One-shot cycles over a list of objects, Volcano's and then that of Kubernetes' own scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from pumice.config.schema import SchedulerConfig
from pumice.core.cycle import Trail, close_session, open_session, run_action
from pumice.core.default_scheduler.cycle import closed, opened, waiting
from pumice.core.messages.decisions import Bind, CycleResult, Evict
from pumice.core.objects.metadata import Object
from pumice.core.outside import Ask
from pumice.core.session.carry import Carry, CycleClock, SessionOptions
from pumice.core.session.trail.trail import NULL_TRAIL
from pumice.core.state.view import View
from pumice.core.state.volumes import volume_rules
from pumice.questions.adviser.free_capacity import NodeRoom
from pumice.questions.adviser.reasons import WaitCode, WaitReason, waits_for
from pumice.questions.adviser.wait_reasons import OpeningState, ReasonFinder, WaitReasons
from pumice.questions.oneshot.between import next_objects
from pumice.questions.oneshot.outcome import Outcome, outcome_of, standings_of
from pumice.questions.oneshot.supposing import AskAbout, of_nobody, supposed

if TYPE_CHECKING:
    from pumice.core.session.trail.trail import NullTrail

# --- Kubernetes' own scheduler


class OtherCycle(NamedTuple):
    """The decisions of Kubernetes' scheduler, and by pod the reasons of those for which it found no node."""

    result: CycleResult
    reasons: dict[str, WaitReason]


def has_others(view: View, config: SchedulerConfig) -> bool:
    """Return whether pods wait for it."""
    return bool(waiting(view.snapshot(volume_rules(config))))


def decide_others(
    view: View, config: SchedulerConfig, clock: CycleClock, first: CycleResult, trail: NullTrail = NULL_TRAIL
) -> OtherCycle | None:
    """Return its cycle after that of Volcano's which gave `first`, on a view that it uses up: decisions are assumed
    there, as in a run. None where no pod waits for it.
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
    node_room, reasons = NodeRoom(turn.session, room), dict[str, WaitReason]()
    making = {evict.preemptor for evict in turn.session.evicts}
    for task in pods:
        if task.key in making:
            reasons[task.key] = waits_for(WaitCode.PROMISED, "room is being made for it")
        elif task.key in turn.pending:
            reasons[task.key] = node_room.verdict([task])
    return OtherCycle(closed(turn), reasons)


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


@dataclass(frozen=True, slots=True)
class Setup:
    """The inputs of a one-shot run.

    `objects` in order of arrival; `now` in seconds since the epoch; `first` is the number of the first cycle, `carry`
    and `in_flight` (decisions that the objects do not show yet) are what it starts from, `view` the very view of the
    first cycle when that is more than the objects say; without `close_hooks` the session ends after the job status
    update (as Volcano's test harness reads it); `trail` makes the one that a cycle keeps; `ask` says which process it
    asks outside; with `others` Kubernetes' own scheduler decides after each cycle, as in a run.
    """

    objects: Sequence[Object]
    config: SchedulerConfig
    now: float
    first: int = 1
    seed: int = 0
    carry: Carry = field(default_factory=Carry)
    in_flight: tuple[Bind | Evict, ...] = ()
    view: View | None = None
    options: SessionOptions = field(default_factory=SessionOptions)
    close_hooks: bool = True
    trail: Callable[[], Trail] | None = None
    ask: AskAbout = of_nobody
    others: bool = False


@dataclass(frozen=True, slots=True)
class Cycle:
    """One cycle: its objects, core's result, and the same as an OUTCOME. `trail`: if requested. `reasons`: why jobs
    wait, if there is a trail. `supposed`: sentences on the answers that it had to assume.
    """

    objects: Sequence[Object]
    result: CycleResult
    outcome: Outcome
    trail: Trail | None = None
    supposed: Sequence[str] = ()
    reasons: WaitReasons = field(default_factory=lambda: WaitReasons({}, {}))


def fill(objects: Iterable[Object], in_flight: Sequence[Bind | Evict] = ()) -> View:
    """Return a fresh view that has seen the objects, in order, and assumes the decisions in flight."""
    view = View()
    for obj in objects:
        view.apply("ADDED", obj)
    assume(view, in_flight)
    return view


def assume(view: View, in_flight: Sequence[Bind | Evict]) -> None:
    """Assume the decisions in flight in the view, where it does not yet."""
    for decision in in_flight:
        if isinstance(decision, Bind):
            view.assume(decision.namespace, decision.name, decision.node, decision.pre_bind)
        else:
            view.evicting(decision.namespace, decision.name)


def run_cycles(setup: Setup, cycles: int) -> Iterator[Cycle]:
    """Run the given number of cycles, one by one, with the rules of `pumice.questions.oneshot.between` between them."""
    objects, carry, in_flight = setup.objects, setup.carry, setup.in_flight
    for number in range(setup.first, setup.first + cycles):
        view = setup.view if setup.view is not None and number == setup.first else fill(objects, in_flight)
        trail = None if setup.trail is None else setup.trail()
        clock, ask = CycleClock(number, setup.now, setup.seed), setup.ask(objects)
        result, reasons = _run(setup, view, clock, carry, trail, ask)
        if setup.others and (other := decide_others(view, setup.config, clock, result)) is not None:
            result = together(result, other.result)
            reasons.pods.update(other.reasons)
        outcome, unasked = outcome_of(result, standings_of(objects)), supposed(ask, setup.config)
        yield Cycle(objects, result, outcome, trail, unasked, reasons)
        objects, carry, in_flight = (
            next_objects(objects, result, setup.now),
            Carry.from_dict(result.carry),
            setup.in_flight,
        )


def _run(
    setup: Setup, view: View, clock: CycleClock, carry: Carry, trail: Trail | None, ask: Ask
) -> tuple[CycleResult, WaitReasons]:
    snapshot, options = view.snapshot(volume_rules(setup.config, setup.options.ignored_provisioners)), setup.options
    follows = trail or NULL_TRAIL
    session = open_session(snapshot, setup.config, clock, carry, options, report=True, trail=follows, ask=ask)
    opening, reasons = OpeningState.of(session) if trail else None, WaitReasons({}, {})
    for action in setup.config.actions:
        run_action(session, action)
    if trail is not None and opening is not None:
        with trail.paused():
            reasons = ReasonFinder(session, trail, opening).reasons(view, trail.jobs)
    if not setup.close_hooks:
        session.plugins.clear()  # no plugin left, no hook to run
    return close_session(session), reasons
