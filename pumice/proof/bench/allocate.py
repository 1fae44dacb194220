"""`allocate`: one cycle from nothing, everything pending."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pumice.config.schema import SchedulerConfig
from pumice.core.state.view import View
from pumice.proof.bench import cluster
from pumice.proof.bench.cycle import measured_cycle, stock_config
from pumice.proof.bench.figures import Advance, Parameters, Samples, settled
from pumice.proof.bench.searching import measure_searches

DEFAULTS: Final = Parameters(nodes=5000, pods=2000, gang=8)


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Each run fills a fresh view (not measured) and runs one cycle on it; what single searches cost stands beside."""
    objects = [
        *cluster.nodes(parameters.nodes),
        *cluster.queues(),
        *cluster.pending_jobs(0, parameters.pods, parameters.gang),
    ]
    run_on_fresh_views(objects, stock_config(), parameters.runs, samples, advance)


def run_on_fresh_views(
    objects: Sequence[dict[str, Any]], config: SchedulerConfig, runs: int, samples: Samples, advance: Advance
) -> None:
    """One cycle on a view that has seen nothing but the objects, so many times."""
    for _ in range(runs):
        view = View()
        with samples.timed("load_s"):
            for obj in objects:
                view.apply("ADDED", obj)
        with settled():
            measure_searches(view, config, samples)
            result = measured_cycle(view, config, samples)
        samples.add("bound", len(result.binds), "pods")
        samples.add("pods_per_s", len(result.binds) / samples.values["cycle_s"][-1], "pods/s")
        advance(1)
