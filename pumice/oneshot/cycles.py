"""One-shot cycles over a list of objects: what happens to them when they are all there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from config.schema import SchedulerConfig
from core.cycle import close_session, open_session, run_action
from core.messages.decisions import CycleResult
from core.session.carry import Carry, Clock, SessionOptions
from core.state.view import View
from pumice.oneshot.between import Object, next_objects
from pumice.oneshot.outcome import Outcome, outcome_of
from pumice.oneshot.standing import standings_of


@dataclass(frozen=True, slots=True)
class Setup:
    """Everything that a one-shot run depends on.

    `objects` in order of arrival; `now` in seconds since the epoch; without `close_hooks` the session ends after the
    job status update (as Volcano's test harness reads it).
    """

    objects: Sequence[Object]
    config: SchedulerConfig
    now: float
    options: SessionOptions = field(default_factory=SessionOptions)
    close_hooks: bool = True


@dataclass(frozen=True, slots=True)
class Cycle:
    """One cycle: the objects it saw, what core returned, and the same as an OUTCOME."""

    objects: Sequence[Object]
    result: CycleResult
    outcome: Outcome


def fill(objects: Sequence[Object]) -> View:
    """A fresh view that has seen the objects, in order."""
    view = View()
    for obj in objects:
        view.apply("ADDED", obj)
    return view


def run_cycles(setup: Setup, cycles: int) -> Iterator[Cycle]:
    """Run the given number of cycles, one by one; between them the rules of :mod:`pumice.oneshot.between` hold."""
    objects, carry = setup.objects, Carry()
    for number in range(1, cycles + 1):
        result = _run(setup, objects, Clock(cycle=number, now=setup.now), carry)
        yield Cycle(objects, result, outcome_of(result, standings_of(objects)))
        if number < cycles:
            objects = next_objects(objects, result, setup.now)
            carry = Carry.from_dict(result.carry)


def _run(setup: Setup, objects: Sequence[Object], clock: Clock, carry: Carry) -> CycleResult:
    session = open_session(fill(objects).snapshot(), setup.config, clock, carry, setup.options, report=True)
    for action in setup.config.actions:
        run_action(session, action)
    if not setup.close_hooks:
        session.plugins.clear()  # no plugin left, no hook to run
    return close_session(session)
