# SPDX-License-Identifier: Apache-2.0
"""`eta`: estimated starts of the waiting jobs of a full cluster, over sampled futures of a day each, by all cores."""

from __future__ import annotations

import time
from typing import Final

from pumice.cluster.kubelets.pod_runs import DURATION
from pumice.core.objects.metadata import Object, text_map
from pumice.proof.bench.figures import Advance, Parameters, Samples, settled
from pumice.proof.bench.whatif import full
from pumice.questions.eta.estimate import FutureSampling, estimates_of
from pumice.questions.eta.futures import PodsOfFork
from pumice.questions.eta.runs import EndedRun

DEFAULTS: Final = Parameters(nodes=60, pods=600, gang=8, runs=3)
KNOWN: Final = 3
"""Of every so many pods, an earlier run of one like it is known: without any, the futures end immediately."""


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure `total_s` of all estimates, `cpu_s`, processor seconds of this process for its part of the futures, and
    how many jobs have an estimate.
    """
    fork = full(parameters)
    alike = [*PodsOfFork(fork, ()).pods.items()][::KNOWN]
    known = [EndedRun(pod.keys, _lasts_s(fork.objects[place]), fork.now - 1, f"bench/{place}") for place, pod in alike]
    for _ in range(parameters.runs):
        with settled():
            began = time.process_time()
            with samples.timed("total_s"):
                found = estimates_of(fork, known, FutureSampling(), alone=False)
            samples.add("cpu_s", time.process_time() - began, "s")
        samples.add("estimates", len(found), "jobs")
        advance(1)


def _lasts_s(pod: Object) -> float:
    return float(text_map(pod["metadata"].get("annotations"))[DURATION].removesuffix("s"))
