"""What queues deserve over time, as the plugins that share among queues reckon it when a session opens."""

from __future__ import annotations

from collections import defaultdict
from math import inf
from typing import TYPE_CHECKING, Final

from pumice.config.load import default_text, parse_scheduler_config
from pumice.core.actions import ACTIONS
from pumice.core.cycle import let_go, open_session, tables_later
from pumice.core.fold.shown import Shown
from pumice.core.messages.events import ConfigLoaded, CycleRecord, Mutation
from pumice.core.messages.queue_gauges import gauged
from pumice.core.messages.queue_tables import readable
from pumice.core.outside import Supposing
from pumice.core.plugins import PLUGINS
from pumice.core.session.carry import Carry, CycleClock
from pumice.core.state.view import View
from pumice.core.state.volumes import volume_rules
from pumice.core.state.watched import WATCHED
from pumice.questions.measures.over_time import Steps
from pumice.storage import codec
from pumice.storage.contents import content

if TYPE_CHECKING:
    from pumice.config.schema import SchedulerConfig
    from pumice.questions.measures.over_time import Grid
    from pumice.storage.journal import Stored

DESERVED: Final = "deserved"
_WATCHED: Final = frozenset(WATCHED)


class Deserved:
    """By (queue, resource) an amount (cores, bytes, pieces) as a series. It is asked for once in every stretch of time
    in which there were cycles, of the last of them, and holds until the next.
    """

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self.series: defaultdict[tuple[str, str], Steps] = defaultdict(lambda: Steps(grid))
        self._last: CycleClock | None = None

    def decided(self, clock: CycleClock) -> None:
        """A cycle of Volcano's."""
        self._last = clock

    def until(self, at: float, view: View, config: SchedulerConfig) -> None:
        """Time comes to this moment, and all before it is in the view: where that ends the stretch of a cycle, open a
        session and hear what the plugins have reckoned.
        """
        last = self._last
        if last is None or at < self._end_of(last.now):
            return
        self._last = None
        session = open_session(view.snapshot(volume_rules(config)), config, last, Carry(), ask=Supposing())
        gauges = readable(tables_later(session)()).by_queue()
        let_go(session)
        told = {
            (queue, resource): amount
            for queue, of in gauges.items()
            for resource, amount in gauged(of, DESERVED).items()
        }
        for key in {*self.series, *told}:
            self.series[key].set(told.get(key, 0.0), last.now)

    def _end_of(self, now: float) -> float:
        began, width = self._grid.began, self._grid.width
        return began + ((now - began) // width + 1) * width


class DeservedInJournal:
    """Follows a journal."""

    def __init__(self, deserved: Deserved) -> None:
        self._deserved = deserved
        self._shown: Shown[View] = Shown(View)
        self._config = _parsed("")

    def note(self, mutation: Mutation) -> None:
        """A change of the api's truth."""
        if mutation.kind in _WATCHED:
            self._shown.see(mutation.type, codec.unpack(mutation.blob))

    def follow(self, stored: Stored) -> None:
        """The next record."""
        self._deserved.until(stored.at, self._shown.view, self._config)
        match content(stored):
            case Mutation() as mutation:
                self.note(mutation)
            case ConfigLoaded(text=text, error=error) if not error:
                self._config = _parsed(text)
            case CycleRecord(scheduler="") as cycle:
                self._deserved.decided(CycleClock(cycle.cycle, cycle.now, cycle.seed))
            case _:
                pass

    def end(self) -> None:
        """No more records."""
        self._deserved.until(inf, self._shown.view, self._config)


def _parsed(text: str) -> SchedulerConfig:
    """That of a journal was good once, and is read leniently."""
    return parse_scheduler_config(
        text or default_text(), source="journal", lenient=True, built_plugins=PLUGINS, built_actions=ACTIONS
    )
