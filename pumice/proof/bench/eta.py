# SPDX-License-Identifier: Apache-2.0
"""`eta`: estimated starts of the waiting jobs of a full cluster."""

from __future__ import annotations

import time
from typing import Final

from pumice.proof.bench.figures import Advance, Parameters, Samples, settled
from pumice.proof.bench.whatif import full
from pumice.questions.eta.estimate import FutureSampling, estimates_of

DEFAULTS: Final = Parameters(nodes=60, pods=600, gang=8, runs=3)


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure `cpu_s`, processor seconds of this process for all estimates, and how many jobs have one. The pods say
    how long they run, and no earlier run is known.
    """
    fork = full(parameters)
    for _ in range(parameters.runs):
        with settled():
            began = time.process_time()
            with samples.timed("total_s"):
                found = estimates_of(fork, (), FutureSampling())
            samples.add("cpu_s", time.process_time() - began, "s")
        samples.add("estimates", len(found), "jobs")
        advance(1)
