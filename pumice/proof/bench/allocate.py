# SPDX-License-Identifier: Apache-2.0
"""`allocate`: one cycle from nothing, everything pending."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pumice.config.schema import SchedulerConfig
from pumice.core.cycle import let_go, open_session
from pumice.core.objects.metadata import Object
from pumice.core.session.carry import Carry, CycleClock
from pumice.core.session.search.node_search import ErrorCache, NodeSearch
from pumice.core.state.view import View
from pumice.proof.bench import cluster
from pumice.proof.bench.cycle import measured_cycle, stock_config
from pumice.proof.bench.figures import Advance, Parameters, Samples, settled

if TYPE_CHECKING:
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session

# --- The cost of one search

SEARCHES: Final = 20
FOLLOWERS: Final = 200


def measure_searches(view: View, config: SchedulerConfig, samples: Samples) -> None:
    """Measure `search_s`: filter and score every node for one task (mean of 20, derived columns of the nodes' specs
    kept).

    `next_search_s`: the same for a task like the one just placed (mean of up to 200). The view stays as it is.
    """
    session = open_session(view.snapshot(), config, CycleClock(cycle=1, now=cluster.NOW), Carry())
    waiting = [task for task in session.snapshot.tasks.handles if task is not None and not task.node_name]
    session.searches.current = waiting[0]  # scores of the moment ask for the task
    NodeSearch(session, waiting[0]).choose()
    started = time.perf_counter()
    for _ in range(SEARCHES):
        NodeSearch(session, waiting[0]).choose()
    samples.add("search_s", (time.perf_counter() - started) / SEARCHES, "s")
    alike = [task for task in waiting if task.template is waiting[0].template][:FOLLOWERS]
    samples.add("next_search_s", _one_after_the_other(session, alike), "s")
    let_go(session)


def _one_after_the_other(session: Session, tasks: list[Task]) -> float:
    """Return seconds a search, when each follows the placing of the one before; the placing itself is not counted."""
    cache, statement, spent = ErrorCache(enabled=True), session.statement(), 0.0
    for number, task in enumerate(tasks):
        started = time.perf_counter()
        search = session.search_for(task)
        search.refresh(cache)
        node, _ = search.choose()
        if number:  # the first one is a whole search
            spent += time.perf_counter() - started
        statement.allocate(task, node)
    return spent / max(len(tasks) - 1, 1)


DEFAULTS: Final = Parameters(nodes=5000, pods=2000, gang=8)


def measure(parameters: Parameters, samples: Samples, advance: Advance) -> None:
    """Measure runs: each fills a fresh view (not measured) and runs one cycle on it, and single searches are measured
    beside.
    """
    objects = [
        *cluster.nodes(parameters.nodes),
        *cluster.queues(),
        *cluster.pending_jobs(0, parameters.pods, parameters.gang),
    ]
    run_on_fresh_views(objects, stock_config(), parameters.runs, samples, advance)


def run_on_fresh_views(
    objects: Sequence[Object], config: SchedulerConfig, runs: int, samples: Samples, advance: Advance
) -> None:
    """Run one cycle on a view that has seen nothing but the objects, so many times."""
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
