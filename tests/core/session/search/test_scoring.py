"""Scores add up as Go adds them: what a plugin's own scorers make is one summand."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.core.session.points.nodes import Volatility
from pumice.core.session.points.per_node import PerNodeScorer
from pumice.core.session.search.node_search import ONE_BY_ONE, ErrorCache
from tests.core.plugins.world import configuration, open_world, task_of
from tests.kit import gang, node, queue


def scorer(score: float) -> PerNodeScorer:
    """Nodes score alike, and may score otherwise when something is placed there."""
    return PerNodeScorer("s", lambda _task, _node: score, volatility=Volatility.ROW, kind=lambda _: None)


@pytest.mark.parametrize(
    ("fix", "total"), [((), 0.1 + (0.2 + 0.3)), ((ONE_BY_ONE,), (0.1 + 0.2) + 0.3)], ids=["by plugin", "one by one"]
)
@pytest.mark.parametrize("point", ["node_order", "batch_node_order"])
def test_the_scorers_of_a_plugin_are_one_summand(point: str, fix: tuple[str, ...], total: float) -> None:
    config = configuration(["gang", "priority", "conformance"], fix=fix)
    nodes = [node("n0"), node("n1")]
    session = open_world(config, nodes, queue("q"), gang("j", queue="q", pods=3, phase="Inqueue"))
    scored = getattr(session.points, point)
    scored.add("priority", [scorer(0.1)])
    scored.add("conformance", [scorer(0.2), scorer(0.3)])
    search = session.search_for(task_of(session, "j-0"))
    search.refresh(ErrorCache(enabled=False))
    assert search.scoring.totals(np.arange(2)).tolist() == [total, total]
    search.choose()
    session.statement().allocate(task_of(session, "j-1"), 0)
    search.refresh(ErrorCache(enabled=False))
    search.choose()
    assert search.scoring.ranked.tolist() == [total, total]
