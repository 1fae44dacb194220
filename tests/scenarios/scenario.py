"""A scenario and how it is run: one cycle over objects, with the default configuration unless told otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pumice.config.load import default_text
from pumice.core.configuration import parse_scheduler_config
from pumice.core.cycle import Carry, CycleClock, run_cycle
from pumice.core.messages.decisions import CycleResult
from pumice.core.objects.metadata import Object
from pumice.core.state.view import View


@dataclass(frozen=True)
class Scenario:
    """`binds`: pod -> node, all of them. `waits`: pod -> a part of why. `phases`: some jobs' phases."""

    name: str
    objects: Sequence[Object]
    binds: dict[str, str]
    waits: dict[str, str] = field(default_factory=dict[str, str])
    phases: dict[str, str] = field(default_factory=dict[str, str])
    config: str = ""

    def run(self) -> CycleResult:
        """One cycle."""
        view = View()
        for obj in self.objects:
            view.apply("ADDED", obj)
        config = parse_scheduler_config(self.config or default_text(), source=self.name)
        return run_cycle(view.snapshot(), config, CycleClock(1, 0.0), Carry(), report=True)

    def check(self) -> None:
        """Run it and compare."""
        result = self.run()
        assert {f"{b.namespace}/{b.name}": b.node for b in result.binds} == self.binds
        for pod, part in self.waits.items():
            assert part in result.report.pending[pod].message, result.report.pending[pod]
        for job, phase in self.phases.items():
            assert result.report.phases[job] == phase
        bound = {f"{b.namespace}/{b.name}" for b in result.binds}
        assert not bound & set(result.report.pending)
