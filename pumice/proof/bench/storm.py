# SPDX-License-Identifier: Apache-2.0
"""`storm`: simulated bind storms a second in one process; half of all binds refused, lost, late or doubled."""

from __future__ import annotations

import time
from typing import Final

from pumice.proof.bench.figures import Advance, Parameters, Samples
from pumice.proof.storm.script.workload import Size
from pumice.proof.storm.stress import StressPlan, run_seeds

DEFAULTS: Final = Parameters(nodes=20, pods=200)
SEEDS: Final = 20
"""Storms in one run."""


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure runs of the same seeds; the first storm of the process is left out."""
    plan = StressPlan("half", size=Size(parameters.nodes, parameters.pods))
    run_seeds(plan, range(1))
    for _ in range(parameters.runs):
        began, burned = time.perf_counter(), time.process_time()
        tally = run_seeds(plan, range(SEEDS))
        seconds = time.perf_counter() - began
        samples.add("seeds_per_s", SEEDS / seconds, "seeds/s")
        samples.add("cpu_s_per_seed", (time.process_time() - burned) / SEEDS, "s")
        samples.add("events_per_s", tally.events / seconds, "events/s")
        samples.add("violations", len(tally.failures), "storms")
        advance(1)
