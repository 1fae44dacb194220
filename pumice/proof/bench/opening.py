# SPDX-License-Identifier: Apache-2.0
"""`open`: the cost of opening a session on running pods, the first time and after a hundredth of them changed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from pumice.config.schema import SchedulerConfig
from pumice.core.cycle import let_go, open_session
from pumice.core.objects.metadata import Object
from pumice.core.session.carry import Carry, CycleClock
from pumice.core.state.view import View
from pumice.proof.bench import cluster
from pumice.proof.bench.cycle import stock_config
from pumice.proof.bench.figures import Advance, Parameters, Samples, settled
from pumice.proof.bench.steady import change, fill

DEFAULTS: Final = Parameters(nodes=5000, running=100_000, gang=8, queues=4)
TURNOVER: Final = 0.01
"""Number of gangs that leave between two cycles; as many come."""


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure openings. The view is filled once; `first_open_s` is the opening after that.

    Then, run by run: `open_s` after a hundredth of the pods reported something, `turnover_open_s` after a hundredth of
    the gangs left and as many came, `node_open_s` after a node's labels changed. Each has the processor's seconds
    beside it: the machine may have been busy.
    """
    config, view = stock_config(), fill(parameters, samples)
    with settled():
        _open(view, config, samples, 0, "first_open")
        for number in range(1, parameters.runs + 1):
            with samples.timed("apply_s"):
                change(view, parameters, number)
            _open(view, config, samples, number, "open")
            turn_over(view, parameters, number)
            _open(view, config, samples, number, "turnover_open")
            relabel(view, number)
            _open(view, config, samples, number, "node_open")
            advance(1)


def _open(view: View, config: SchedulerConfig, samples: Samples, number: int, figure: str) -> None:
    """Open a session that actions can work on from the view."""
    cpu, started = time.process_time(), time.perf_counter()
    session = open_session(view.snapshot(), config, CycleClock(cycle=number, now=cluster.NOW), Carry())
    samples.add(f"{figure}_s", time.perf_counter() - started, "s")
    samples.add(f"{figure}_cpu_s", time.process_time() - cpu, "s")
    let_go(session)


def turn_over(view: View, parameters: Parameters, number: int) -> None:
    """End the oldest gangs, and let new ones run in their place."""
    jobs = cluster.jobs_of(parameters.running, parameters.gang)
    count = max(1, int(jobs * TURNOVER))
    for obj in _gangs(parameters, (number - 1) * count, count):
        view.apply("DELETED", obj)
    for obj in _gangs(parameters, jobs + (number - 1) * count, count):
        view.apply("ADDED", obj)


def _gangs(parameters: Parameters, first: int, count: int) -> Iterator[Object]:
    pods, queues = count * parameters.gang, parameters.queues
    return cluster.running_jobs(pods, parameters.gang, parameters.nodes, first=first, queue_count=queues)


def relabel(view: View, number: int) -> None:
    """Give the first node one label more."""
    node = next(cluster.nodes(1))
    node["metadata"]["labels"]["run"] = str(number)
    view.apply("MODIFIED", node)
