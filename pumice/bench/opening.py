"""`open`: what it costs to open a session on running pods, the first time and after a hundredth of them changed."""

from __future__ import annotations

from typing import Final

from core.cycle import open_session
from core.session.carry import Carry, Clock
from pumice.bench.cluster import NOW
from pumice.bench.cycle import stock_config
from pumice.bench.figures import Advance, Parameters, Samples, settled
from pumice.bench.steady import change, fill

DEFAULTS: Final = Parameters(nodes=5000, running=100_000, gang=8)


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """The view is filled once; `first_open_s` is the opening after that, `open_s` one after a change, run by run."""
    config, view = stock_config(), fill(parameters, samples)
    with settled():
        with samples.timed("first_open_s"):
            open_session(view.snapshot(), config, Clock(cycle=0, now=NOW), Carry())
        for number in range(1, parameters.runs + 1):
            with samples.timed("apply_s"):
                change(view, parameters, number)
            with samples.timed("snapshot_s"):
                snapshot = view.snapshot()
            with samples.timed("session_s"):
                open_session(snapshot, config, Clock(cycle=number, now=NOW), Carry())
            samples.add("open_s", samples.values["snapshot_s"][-1] + samples.values["session_s"][-1], "s")
            advance(1)
