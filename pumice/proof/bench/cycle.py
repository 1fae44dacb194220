# SPDX-License-Identifier: Apache-2.0
"""One measured cycle: open, actions, close, each with its seconds."""

from __future__ import annotations

import time

from pumice.config.schema import SchedulerConfig
from pumice.core.configuration import parse_scheduler_config
from pumice.core.cycle import Carry, CycleClock, close_session, open_session, run_action
from pumice.core.messages.decisions import CycleResult
from pumice.core.state.view import View
from pumice.proof.bench.cluster import NOW, STOCK
from pumice.proof.bench.figures import Samples


def stock_config() -> SchedulerConfig:
    """Return Volcano's stock configuration with all nodes examined."""
    return parse_scheduler_config(STOCK, source="bench")


def measured_cycle(view: View, config: SchedulerConfig, samples: Samples, *, number: int = 1) -> CycleResult:
    """Run one cycle on a snapshot of the view: cycle_s, open_s (snapshot included), one figure an action, close_s."""
    started, began = time.perf_counter(), time.process_time()
    with samples.timed("open_s"):
        snapshot = view.snapshot(kept=True)  # as a running system does
        session = open_session(snapshot, config, CycleClock(cycle=number, now=NOW), Carry())
    for action in config.actions:
        with samples.timed(f"{action}_s"):
            run_action(session, action)
    with samples.timed("close_s"):
        result = close_session(session)
    samples.add("cycle_s", time.perf_counter() - started, "s")
    samples.add("cycle_cpu_s", time.process_time() - began, "s")
    return result
