"""Living through recorded inputs again under a configuration: the whole system on virtual time, node agents too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any

import anyio
from trio.testing import MockClock

from actors.runtime.clock import VirtualClock
from actors.system.settings import SystemSettings
from actors.system.system import System
from pumice.replay.inputs import Input, Inputs
from pumice.replay.measure import JobFigures, Measurer, QueueFigures, changes
from storage.memory import MemoryJournal

Plain = dict[str, Any]


@dataclass
class Lived:
    """One run: figures by job and by queue, and how many cycles it took."""

    jobs: dict[str, JobFigures] = field(default_factory=dict[str, JobFigures])
    queues: dict[str, QueueFigures] = field(default_factory=dict[str, QueueFigures])
    cycles: int = 0


@dataclass
class Comparison:
    """The inputs under the recorded configuration and under the other one, both on virtual time."""

    before: Lived
    after: Lived

    @property
    def changed(self) -> Plain:
        """Jobs and queues whose figures differ: figure -> before and after."""
        jobs = _changes(self.before.jobs, self.after.jobs, JobFigures())
        queues = _changes(self.before.queues, self.after.queues, QueueFigures())
        return {"jobs": jobs, "queues": queues}

    def to_dict(self) -> Plain:
        """For `pumice replay --config`."""
        return {
            "changed": self.changed,
            "before": {name: asdict(queue) for name, queue in self.before.queues.items()},
            "after": {name: asdict(queue) for name, queue in self.after.queues.items()},
        }


def _changes(before: dict[str, Any], after: dict[str, Any], nothing: Any) -> Plain:
    found = {name: changes(before.get(name, nothing), after.get(name, nothing)) for name in sorted({*before, *after})}
    return {name: changed for name, changed in found.items() if changed}


def live_through(inputs: Inputs, config_text: str, advance: Callable[[int], None] = lambda inputs: None) -> Lived:
    """The recorded inputs, each at its time, until the system is idle after the last one."""
    options = {"clock": MockClock(autojump_threshold=0)}
    return anyio.run(_live, inputs, config_text, advance, backend="trio", backend_options=options)


async def _live(inputs: Inputs, config_text: str, advance: Callable[[int], None]) -> Lived:
    journal = MemoryJournal()
    settings = SystemSettings(config_text=config_text, lenient=True, checkpoint_every=0)
    system = System(settings, journal, VirtualClock(inputs.started))
    async with system.running():
        began = anyio.current_time()
        for at, batch in groupby(inputs.requests, key=_time_of):
            requests = [one.request for one in batch]
            await anyio.sleep_until(began + at - inputs.started)
            await system.api.ask_many(requests)
            advance(len(requests))
        await system.until_idle()
        cycles = system.memory.cycle
    measured = await Measurer().read(journal)
    return Lived(measured.jobs(), measured.queues(), cycles)


def _time_of(one: Input) -> float:
    return one.at
