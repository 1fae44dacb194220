"""What one search costs: the first task of a kind over all nodes, and each one more of the same kind."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from pumice.core.cycle import let_go, open_session
from pumice.core.session.carry import Carry, CycleClock
from pumice.core.session.search.node_search import ErrorCache, NodeSearch
from pumice.proof.bench import cluster

if TYPE_CHECKING:
    from pumice.config.schema import SchedulerConfig
    from pumice.core.objects.pod import Task
    from pumice.core.session.session import Session
    from pumice.core.state.view import View
    from pumice.proof.bench.figures import Samples

SEARCHES: Final = 20
FOLLOWERS: Final = 200


def measure_searches(view: View, config: SchedulerConfig, samples: Samples) -> None:
    """`search_s`: filter and score every node for one task (mean of 20, what is known of the nodes' specs kept).

    `next_search_s`: the same for a task like the one just placed (mean of up to 200). The view stays as it is.
    """
    session = open_session(view.snapshot(), config, CycleClock(cycle=1, now=cluster.NOW), Carry())
    waiting = [task for task in session.snapshot.tasks.handles if task is not None and not task.node_name]
    session.searches.current = waiting[0]  # scores of the moment ask whom they are for
    NodeSearch(session, waiting[0]).choose()
    started = time.perf_counter()
    for _ in range(SEARCHES):
        NodeSearch(session, waiting[0]).choose()
    samples.add("search_s", (time.perf_counter() - started) / SEARCHES, "s")
    alike = [task for task in waiting if task.template is waiting[0].template][:FOLLOWERS]
    samples.add("next_search_s", _one_after_the_other(session, alike), "s")
    let_go(session)


def _one_after_the_other(session: Session, tasks: list[Task]) -> float:
    """Seconds a search, when each follows the placing of the one before; the placing itself is not counted."""
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
