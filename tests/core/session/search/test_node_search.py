"""A search that keeps up row by row says what a fresh search says, whatever is placed and undone in between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.configuration import parse_scheduler_config
from pumice.core.cycle import Carry, CycleClock, Session, SessionOptions, open_session
from pumice.core.life.task import TaskStatus
from pumice.core.objects.pod import Task
from pumice.core.session.reasons import FitFailure
from pumice.core.session.search.node_search import ErrorCache, NodeSearch
from pumice.core.session.statement import Statement
from pumice.core.state.view import View
from tests.core.plugins.world import open_world, task_of
from tests.kit.jobs import gang
from tests.kit.nodes import node
from tests.kit.pods import pod
from tests.kit.queues import queue
from tests.kit.storage import with_templates

CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
PREFER = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 7, "preference": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]}}
        ]
    }
}


def open_cluster(draw: Any) -> Session:
    view = View()
    view.apply("ADDED", queue("q"))
    for i in range(draw(st.integers(1, 9))):
        taints = [{"key": "soft", "effect": "PreferNoSchedule"}] if draw(st.booleans()) else []
        cpu, pods = str(draw(st.integers(1, 6))), str(draw(st.integers(2, 9)))
        view.apply("ADDED", node(f"n{i}", cpu=cpu, pods=pods, labels={"zone": f"z{i % 3}"}, taints=taints))
    kinds: dict[str, Any] = {
        "plain": {},
        "picky": {"affinity": PREFER},
        "big": {"cpu": "3"},
        "port": {"host_ports": [80]},
    }
    for name, each in kinds.items():
        for obj in gang(name, queue="q", pods=6, min_member=1, phase="Inqueue", **each):
            view.apply("ADDED", obj)
    for i in range(3):
        view.apply("ADDED", pod(f"old{i}", group="plain", node=f"n{i}"))
    config = parse_scheduler_config(CONF, source="test")
    return open_session(view.snapshot(), config, CycleClock(1, 0.0), Carry())


def same(kept: NodeSearch, fresh: NodeSearch, *, codes: bool) -> None:
    refused = kept.codes != 0
    assert np.array_equal(refused, fresh.codes != 0)
    if codes:
        assert np.array_equal(kept.codes, fresh.codes)
    assert np.array_equal(kept.idle, fresh.idle)
    assert kept.idle_count == int(np.count_nonzero(fresh.idle))
    best = kept.choose()[0]
    assert best == fresh.choose()[0]


def pick(session: Session, draw: Any, status: int) -> Task | None:
    tasks = [t for job in session.jobs.in_order for t in session.jobs.tasks_in(job, status)]
    return draw(st.sampled_from(tasks)) if tasks else None


def change(session: Session, draw: Any, open_statements: list[Statement]) -> None:
    what = draw(st.sampled_from(("allocate", "pipeline", "evict", "discard")))
    statement = session.statement()
    if what == "discard":
        if open_statements:
            open_statements.pop().discard()
        return
    task = pick(session, draw, TaskStatus.RUNNING if what == "evict" else TaskStatus.PENDING)
    if task is None:
        return
    row = draw(st.integers(0, session.nodes.count - 1))
    if what == "evict":
        statement.evict(task, "test")
    elif what == "allocate":
        statement.allocate(task, row)
    else:
        statement.pipeline(task, row, evicted=False)
    open_statements.append(statement)


@given(st.data())
def test_keeping_up_equals_starting_over(data: st.DataObject) -> None:
    session = open_cluster(data.draw)
    statements: list[Statement] = []
    for _ in range(data.draw(st.integers(1, 12))):
        for _ in range(data.draw(st.integers(0, 9))):
            change(session, data.draw, statements)
        task = pick(session, data.draw, TaskStatus.PENDING)
        if task is None:
            return
        kept, fresh = session.search_for(task), NodeSearch(session, task)
        kept.refresh(ErrorCache(enabled=data.draw(st.booleans())))
        same(kept, fresh, codes=True)


def test_candidates_are_ranked_once_as_long_as_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [node(f"n{i}", labels={"zone": f"z{i}"}) for i in range(3)]
    waits = gang("g", queue="q", pods=1, phase="Inqueue", affinity=PREFER)
    session = open_world(parse_scheduler_config(CONF, source="test"), queue("q"), nodes, waits)
    search, ranked = NodeSearch(session, task_of(session, "g-0")), list[int]()
    totals = search.scoring.totals

    def noted(rows: Any) -> Any:
        ranked.append(len(rows))
        return totals(rows)

    monkeypatch.setattr(search.scoring, "totals", noted)
    assert [search.choose()[0] for _ in range(3)] == [1] * 3
    assert ranked == [3]


@given(st.data())
def test_another_error_cache_has_no_memory_of_what_was_refused_under_the_one_before(data: st.DataObject) -> None:
    session = open_cluster(data.draw)
    cache, statements = ErrorCache(enabled=True), list[Statement]()
    task = pick(session, data.draw, TaskStatus.PENDING)
    assert task is not None
    for _ in range(data.draw(st.integers(1, 4))):
        for _ in range(data.draw(st.integers(0, 3))):
            change(session, data.draw, statements)
        session.search_for(task).refresh(cache)
    kept, fresh = session.search_for(task), NodeSearch(session, task)
    for search in (kept, fresh):
        search.refresh(ErrorCache(enabled=True))
    same(kept, fresh, codes=True)


def test_room_that_came_is_seen_under_another_error_cache_and_not_under_the_same() -> None:
    view = View()
    objects = [queue("q"), *[node(f"n{i}", cpu="1") for i in range(4)]]
    objects += [*gang("old", queue="q", pods=1, nodes=["n2"], phase="Running"), *gang("j", queue="q", pods=1)]
    for obj in objects:
        view.apply("ADDED", obj)
    session = open_session(view.snapshot(), parse_scheduler_config(CONF, source="test"), CycleClock(1, 0.0), Carry())
    waiting, running = (job.in_uid_order()[0] for job in session.jobs.in_order)
    search, cache = NodeSearch(session, waiting), ErrorCache(enabled=True)
    search.refresh(cache)
    session.statement().evict(running, "test")
    refused: list[list[int]] = []
    for each in (cache, cache, ErrorCache(enabled=True)):
        search.refresh(each)
        refused.append(np.flatnonzero(search.codes).tolist())
    assert refused == [[2], [2], []]


def test_a_node_that_was_touched_is_looked_at_a_single_time(monkeypatch: pytest.MonkeyPatch) -> None:
    view = View()
    for obj in (queue("q"), *[node(f"n{i}") for i in range(20)], *gang("j", queue="q", pods=3, phase="Inqueue")):
        view.apply("ADDED", obj)
    session = open_session(view.snapshot(), parse_scheduler_config(CONF, source="test"), CycleClock(1, 0.0), Carry())
    first, second, third = session.jobs.in_order[0].in_uid_order()
    search, asked = session.search_for(third), list[int]()
    reject_one = search.filters.reject_one

    def noting(row: int) -> int:
        asked.append(row)
        return reject_one(row)

    monkeypatch.setattr(search.filters, "reject_one", noting)
    for task, row in ((first, 3), (second, 8)):
        session.statement().allocate(task, row)
    for _ in range(2):
        search.refresh(ErrorCache(enabled=False))
    assert sorted(asked) == [3, 8]


def sampled(*nodes: dict[str, Any]) -> tuple[Session, Task]:
    """A session that looks for two nodes at a time, and a task."""
    view = View()
    for obj in (queue("q"), *nodes, *gang("j", queue="q", pods=1)):
        view.apply("ADDED", obj)
    options = SessionOptions(percentage_of_nodes=25, minimum_feasible_nodes=1)
    config = parse_scheduler_config(CONF, source="test")
    session = open_session(view.snapshot(), config, CycleClock(1, 0.0), Carry(), options=options)
    return session, session.jobs.in_order[0].in_uid_order()[0]


def test_a_sampled_search_chooses_among_the_nodes_it_has_looked_at_and_the_next_begins_behind_them() -> None:
    session, task = sampled(*[node(f"n{i}", cpu=str(2 + i)) for i in range(8)])
    chosen: list[int] = []
    for _ in range(3):
        search = NodeSearch(session, task)
        search.refresh(ErrorCache(enabled=False))
        chosen.append(search.choose()[0])
    assert chosen == [1, 4, 7], "the larger of two; the one node too many was looked at, too"


def test_what_sampled_searches_refuse_one_after_the_other_is_remembered_together() -> None:
    session, task = sampled(*[node(f"n{i}", cpu="500m" if i in {1, 5} else "2") for i in range(8)])
    search, cache = NodeSearch(session, task), ErrorCache(enabled=True)
    remembered: list[list[int]] = []
    for _ in range(2):
        search.refresh(cache)
        search.choose()
        remembered.append([row for row in range(8) if cache.remembers(task.role, row)])
    assert remembered == [[1], [1, 5]]


@given(st.data())
def test_within_one_error_cache_a_refused_node_stays_refused(data: st.DataObject) -> None:
    session = open_cluster(data.draw)
    cache = ErrorCache(enabled=True)
    statements: list[Statement] = []
    remembered: dict[str, dict[int, int]] = {}
    for _ in range(data.draw(st.integers(1, 8))):
        change(session, data.draw, statements)
        task = pick(session, data.draw, TaskStatus.PENDING)
        if task is None:
            return
        search = session.search_for(task)
        search.refresh(cache)
        known = remembered.setdefault(task.role, {})
        for row, code in known.items():
            assert search.codes[row] == code
        known.update({row: int(search.codes[row]) for row in np.flatnonzero(search.codes).tolist()})


def test_what_a_plain_template_does_not_concern_has_nothing_to_say_about_it() -> None:
    view = View()
    for obj in (queue("q"), node("n0"), *gang("plain", queue="q", pods=1, phase="Inqueue")):
        view.apply("ADDED", obj)
    particular: dict[str, Any] = {"port": {"host_ports": [80]}, "picky": {"affinity": PREFER}}
    for name, each in particular.items():
        for obj in gang(name, queue="q", pods=1, phase="Inqueue", **each):
            view.apply("ADDED", obj)
    session = open_session(view.snapshot(), parse_scheduler_config(CONF, source="test"), CycleClock(1, 0.0), Carry())
    tasks = {task.name: task for task in session.snapshot.tasks.handles if task is not None}
    assert {name for name, task in tasks.items() if task.template.plain} == {"plain-0"}
    left_out = 0
    points: tuple[Any, ...] = (session.points.predicate, session.points.node_order, session.points.batch_node_order)
    for point in points:
        everybody, asked, asked_of_port = (
            {f for _, group in groups for f in group}
            for groups in (
                point.named,
                session.searches.asked(point, tasks["plain-0"].template),
                session.searches.asked(point, tasks["port-0"].template),
            )
        )
        assert asked_of_port == everybody
        assert all(f.prepare(session, tasks["plain-0"]) is None for f in everybody - asked)
        left_out += len(everybody - asked)
    assert left_out > 3


def test_pods_without_claims_share_a_search_beside_pods_with_claims_of_their_own() -> None:
    view = View()
    claiming = with_templates(pod("own", group="plain"), "t")
    for obj in (queue("q"), node("n0"), *gang("plain", queue="q", pods=2, phase="Inqueue"), claiming):
        view.apply("ADDED", obj)
    session = open_session(view.snapshot(), parse_scheduler_config(CONF, source="test"), CycleClock(1, 0.0), Carry())
    own, *plain = (
        next(t for t in session.snapshot.tasks.handles if t and t.name == n) for n in ("own", "plain-0", "plain-1")
    )
    with pytest.raises(FitFailure):  # nobody has made its claim yet; now the filter knows of such claims
        session.search_for(own)
    assert session.search_for(plain[0]) is session.search_for(plain[1])


@pytest.mark.parametrize(("short_of", "fits"), [("-0.09", True), ("-0.1", False)])
def test_room_that_lacks_less_than_a_tenth_of_a_unit_is_room_by_all_accounts(short_of: str, fits: bool) -> None:
    lent = {"volcano.sh/oversubscription-cpu": short_of}
    view = View()
    for obj in (queue("q"), node("n0", cpu="0", annotations=lent), *gang("j", queue="q", pods=1, cpu=None)):
        view.apply("ADDED", obj)
    session = open_session(view.snapshot(), parse_scheduler_config(CONF, source="test"), CycleClock(1, 0.0), Carry())
    task = session.jobs.in_order[0].in_uid_order()[0]
    search = session.search_for(task)
    assert (search.codes[0] == 0, search.code_of(0) == 0) == (fits, fits)
    assert (session.nodes.fits_idle(0, task), session.nodes.fits_future(0, task)) == (fits, fits)
