"""Filters of several plugins over the same nodes, against the plain way: node by node, plugin by plugin."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pumice.config.schema import PluginOption, SchedulerConfig, Tier
from pumice.core.session.points.all_points import FilterPoint
from pumice.core.session.points.nodes import TEMPLATE_ONLY
from pumice.core.session.points.point import Listed
from pumice.core.session.points.rules import Check, ColumnRule
from pumice.core.session.reasons import Code, Reason
from pumice.core.session.search.filters import Filters
from pumice.core.session.session import Session
from tests.core.plugins.world import Option, configuration, open_world, task_of
from tests.kit import gang, node, queue

NODES = 4
MEASURED = {
    "kind": "NodeMetrics",
    "metadata": {"name": "n"},
    "usage": {"cpu": "8", "memory": "1Gi"},
    "timestamp": "2026-01-01T12:00:00Z",
}
CODES = (None, Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.ERROR)

Verdicts = list[list[list[Code | None]]]  # plugin -> filter -> node

verdicts = st.lists(
    st.lists(st.lists(st.sampled_from(CODES), min_size=NODES, max_size=NODES), min_size=1, max_size=3), max_size=3
)


class Filter:
    """Says what it was told to."""

    name, reads = "told", TEMPLATE_ONLY

    def __init__(self, plugin: int, number: int, says: list[Code | None]) -> None:
        self._reasons = [None if c is None else Reason("told", c, f"{plugin}.{number}") for c in says]

    def prepare(self, session: Session, task: Any) -> Check:
        numbers = [0 if reason is None else session.reasons.intern(reason) for reason in self._reasons]
        return ColumnRule(np.array(numbers, dtype=np.int32))


def plain(told: Verdicts, row: int) -> list[str]:
    """PredicateFn, and the list of statuses in predicates."""
    for plugin, filters in enumerate(told):
        texts: list[str] = []
        for number, says in enumerate(filters):
            code = says[row]
            if code is not None:
                texts.append(f"{plugin}.{number}")
                if code is not Code.UNSCHEDULABLE:
                    return texts
        if texts:
            return texts
    return []


@given(verdicts, st.permutations(range(NODES)))
def test_the_first_plugin_that_refuses_has_said_all(told: Verdicts, order: list[int]) -> None:
    nodes = [node(f"n{i}") for i in range(NODES)]
    session = open_world(configuration(["gang"]), nodes, queue("q"), gang("j", queue="q", pods=1))
    options = tuple(PluginOption(f"p{plugin}", {"Predicate": True}) for plugin in range(len(told)))
    config = SchedulerConfig(("allocate",), (Tier(options),))
    point = FilterPoint("Predicate", Listed(config))
    for p, filters_told in enumerate(told):
        point.add(f"p{p}", [Filter(p, n, says) for n, says in enumerate(filters_told)])
    session.points.predicate = point
    filters = Filters(session, task_of(session, "j-0"))

    def texts(code: int) -> list[str]:
        return [reason.text for reason in session.reasons.reasons(code)]

    expected = [plain(told, row) for row in range(NODES)]
    assert [texts(code) for code in filters.reject(slice(None), NODES).tolist()] == expected
    assert [texts(filters.reject_one(row)) for row in range(NODES)] == expected
    some = np.array(order[:2], dtype=np.intp)
    assert [texts(code) for code in filters.reject(some, 2).tolist()] == [expected[row] for row in some.tolist()]


def test_a_later_plugin_adds_no_words() -> None:
    """usage refuses a busy node; predicates, in a later tier, would have had something to say about it too."""
    usage: Option = {"name": "usage", "arguments": {"thresholds": {"cpu": 50, "mem": 50}}}
    loaded = node("n", unschedulable=True)
    orders: list[tuple[list[list[Option]], list[str]]] = [
        ([[usage], ["predicates"]], ["CPU load"]),
        ([["predicates"], [usage]], ["unschedulable"]),
    ]
    for tiers, said in orders:
        objects = (loaded, MEASURED, queue("q"), gang("j", queue="q", pods=1))
        session = open_world(configuration(*tiers), *objects)
        search = session.search_for(task_of(session, "j-0"), room=False)
        texts = [reason.text for reason in session.reasons.reasons(int(search.codes[0]))]
        assert len(texts) == len(said)
        assert all(word in text for word, text in zip(said, texts, strict=True)), texts
