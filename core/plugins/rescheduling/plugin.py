"""The plugin: when its time has come, which strategies run, with which thresholds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from pumice.config.durations import parse_duration
from pumice.core.objects.node_usage import KIND, usage_of
from pumice.core.plugins.rescheduling.low_node_utilization import Load, Thresholds, victims

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session

NAME: Final = "rescheduling"
STRATEGY: Final = "lowNodeUtilization"
DEFAULT_INTERVAL_S: Final = 300.0
DEFAULT_PERIOD: Final = "5m"
FILLED_PERIOD: Final = "10m"  # what collectors fill in
LAST: Final = "last"  # in the carry: seconds since the epoch
UPTIME_S: Final = 1.0  # how long a scheduler is held to have run before its first cycle


class Rescheduling:
    """`interval` (a Go duration, 5m), `metricsPeriod` ("5m"; which average of the load is read) and `strategies`
    ([{name: lowNodeUtilization, params: {thresholds, targetThresholds: {cpu, memory: per cent}}}], 100 each).
    """

    name = NAME

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._interval_s = _interval(arguments.get("interval"))
        self._given_period = str(arguments.get("metricsPeriod") or "")
        self._strategies = _strategies(arguments.get("strategies"))

    def on_session_open(self, session: Session) -> None:
        """Register for shuffle when the interval has passed since the last time."""
        self._session = session
        usual = FILLED_PERIOD if "rescheduling-default-period" in session.config.pumice.fix else DEFAULT_PERIOD
        self._period = self._given_period or usual
        state: dict[str, float] = session.carry.plugins.setdefault(self.name, {})
        now, last = session.clock.now, state.setdefault(LAST, session.clock.now - UPTIME_S)
        if last + self._interval_s >= now:
            session.wake(last + self._interval_s)
            return
        state[LAST] = now
        session.points.victim_tasks.add(self.name, [self._strategy(limits) for limits in self._strategies])

    def on_session_close(self, session: Session) -> None:
        """Nothing to write."""

    def _strategy(self, limits: tuple[Thresholds, Thresholds]) -> Callable[[Sequence[Task]], list[Task]]:
        return lambda tasks: victims(self._session, self._loads(), *limits, tasks)

    def _loads(self) -> list[Load]:
        """Every node's load, in name order; what nobody measured is 0."""
        session = self._session
        handed_in, metrics = session.options.node_usage or {}, session.objects.get(KIND, {})
        loads: list[Load] = []
        for row, spec in enumerate(session.nodes.specs):
            usage = usage_of(spec, handed_in, metrics, session.clock.now)
            if usage is None:
                loads.append(Load(row, spec, 0.0, 0.0))
            else:
                loads.append(Load(row, spec, usage.cpu.get(self._period, 0.0), usage.memory.get(self._period, 0.0)))
        return loads


def _interval(given: object) -> float:
    try:
        return parse_duration(given) if isinstance(given, str) else DEFAULT_INTERVAL_S
    except ValueError:
        return DEFAULT_INTERVAL_S


def _strategies(given: object) -> list[tuple[Thresholds, Thresholds]]:
    """(thresholds, targetThresholds) of every lowNodeUtilization; the default one where no strategy is given."""
    if not isinstance(given, list) or not given:
        return [(_thresholds(None), _thresholds(None))]
    entries = (cast("Mapping[str, Any]", e) for e in cast("list[object]", given) if isinstance(e, dict))
    known = [entry for entry in entries if entry.get("name") == STRATEGY]
    # The last of that name says the parameters for all of them, as Volcano's registry has it.
    params: Mapping[str, Any] = (known[-1].get("params") or {}) if known else {}
    return [(_thresholds(params.get("thresholds")), _thresholds(params.get("targetThresholds")))] * len(known)


def _thresholds(given: object) -> Thresholds:
    numbers = cast("Mapping[str, Any]", given if isinstance(given, dict) else {})
    return Thresholds(float(numbers.get("cpu", 100)), float(numbers.get("memory", 100)))
