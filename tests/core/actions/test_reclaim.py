"""reclaim: queues below what they deserve take from others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from pumice.core.actions import reclaim
from pumice.core.actions.victims import candidates
from pumice.core.actions.victims.on_node import asked
from pumice.core.cycle import Trail, open_session, run_action
from pumice.core.life.task import TaskStatus
from pumice.core.objects.metadata import parse_time
from pumice.core.session.carry import Carry, CycleClock, SessionOptions
from pumice.core.session.points.nodes import TaskBatch
from pumice.core.session.session import Session
from pumice.core.state.volumes import volume_rules
from tests.core.actions.crowds import after, classes, crowds, evictions, running, waiting
from tests.core.plugins.world import NOW, configuration, job_of, task_of, view_of
from tests.kit import node, nodes, queue

CONFIG = configuration(["gang", "conformance"], ["proportion", "predicates"])


def shared(*parts: Any, config: Any = CONFIG, **rich: Any) -> Session:
    """Queue `rich` has the whole node, `poor` nothing."""
    old = running("old", ["n0"] * 4, queue="rich", **rich)
    return after("reclaim", config, node("n0", cpu="4"), queue("rich"), queue("poor"), classes(), old, *parts)


def test_a_queue_takes_what_it_deserves() -> None:
    session = shared(waiting("new", 1, queue="poor", cpu="2"))
    assert evictions(session) == ["old-2", "old-1"]  # the gang may lose the first three, the last of them goes first
    assert {(e.preemptor, e.reason, e.score) for e in session.evicts} == {("default/new-0", "reclaim", 0.0)}


@pytest.mark.parametrize(("leaving", "victims", "nominated"), [(0, 1, "n0"), (1, 0, "")])
def test_a_pod_is_nominated_where_somebody_goes_for_it(leaving: int, victims: int, nominated: str) -> None:
    """Not where somebody goes anyhow."""
    old = running("old", ["n0"] * 4, queue="rich")
    for one in old[1 : 1 + leaving]:
        one["metadata"]["deletionTimestamp"] = "2026-01-01T11:59:00Z"
    parts = (node("n0", cpu="4"), queue("rich"), queue("poor"), classes(), old, waiting("new", 1, queue="poor"))
    session = after("reclaim", CONFIG, *parts)
    assert len(evictions(session)) == victims
    new = task_of(session, "new-0")
    assert session.jobs.status[new.row] == TaskStatus.PIPELINED
    assert session.fit.task_reason(job_of(session, "new"), new)[2] == nominated


def test_a_queue_of_higher_priority_that_has_more_than_it_deserves_keeps_no_other_from_its_turn() -> None:
    old = running("old", ["n0"] * 4, queue="rich")
    new = [*waiting("more", 1, queue="rich"), *waiting("new", 1, queue="poor")]
    queues = [queue("rich", priority=10, capability={"pods": "4"}), queue("poor")]
    session = after("reclaim", CONFIG, node("n0", cpu="4", memory="4Gi"), queues, classes(), old, new)
    assert [(e.name, e.preemptor) for e in session.evicts] == [("old-2", "default/new-0")]


def test_nodes_of_others_are_tried_though_those_of_its_own_shard_are_known_to_be_in_vain() -> None:
    """Of three nodes one is looked at in a turn: the first of the shard, where nobody may go, then one of the others'.

    Of the shard there is none left in the second turn, as there was none of the others' in the first.
    """
    parts = [*nodes(3, cpu="1"), queue("rich"), queue("poor"), *classes()]
    fixed = running("fixed", ["n0"], queue="rich", annotations={"volcano.sh/preemptable": "false"})
    old = [*fixed, *running("old", ["n1", "n2"], least=0, queue="rich")]
    new = waiting("new", 2, queue="poor", min_member=1)
    options = SessionOptions(
        percentage_of_nodes=1, minimum_feasible_nodes=1, minimum_percentage=1, shard=("soft", frozenset({"n0"}))
    )
    snapshot = view_of(parts, old, new).snapshot(volume_rules(CONFIG))
    session = open_session(snapshot, CONFIG, CycleClock(1, parse_time(NOW)), Carry(), options)
    run_action(session, "reclaim")
    assert [(e.node, e.preemptor) for e in session.evicts] == [("n2", "default/new-1")]


def test_not_more_than_it_deserves() -> None:
    assert evictions(shared(waiting("new", 1, queue="poor", cpu="3"))) == []


def test_not_from_its_own_queue() -> None:
    assert evictions(shared(waiting("new", 1, queue="rich", cpu="2"))) == []


def test_not_from_a_gang_that_needs_them() -> None:
    config = configuration(["gang", "proportion"], fix=["empty-answer-vetoes"])
    assert evictions(shared(waiting("new", 1, queue="poor"), config=config, least=4)) == []


def test_not_from_who_may_not_be_preempted() -> None:
    fixed = {"annotations": {"volcano.sh/preemptable": "false"}}
    assert evictions(shared(waiting("new", 1, queue="poor"), **fixed)) == []


def test_not_from_a_queue_that_is_not_reclaimable() -> None:
    closed = queue("rich")
    closed["spec"]["reclaimable"] = False
    old = running("old", ["n0"] * 4, queue="rich")
    parts = (node("n0", cpu="4"), closed, queue("poor"), classes(), old, waiting("new", 1, queue="poor"))
    assert evictions(after("reclaim", CONFIG, *parts)) == []


def test_not_for_a_pod_that_may_not_preempt() -> None:
    new = waiting("new", 2, queue="poor")
    for obj in new[1:2]:
        obj["spec"]["preemptionPolicy"] = "Never"
    new[0]["spec"]["minMember"] = 1
    session = shared(new)
    assert [e.preemptor for e in session.evicts] == ["default/new-1"]


def test_nothing_is_kept_of_a_job_that_could_not_run_even_so() -> None:
    session = shared(waiting("new", 2, queue="poor", cpu="2"))
    assert evictions(session) == []


def test_but_for_the_first_two_no_node_is_tried_where_nobody_may_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def noting(session: Session, rows: tuple[int], accepts: Any) -> TaskBatch:
        tried.extend(rows)
        return asked(session, rows, accepts)

    monkeypatch.setattr(reclaim, "asked", noting)
    after("reclaim", CONFIG, nodes(8, cpu="4"), queue("poor"), classes(), waiting("new", 1, queue="poor"))
    assert tried == list(range(candidates.TRIED_FIRST))


@given(crowds(queues=("q", "p")))
def test_screening_only_saves_time(objects: Any) -> None:
    """And says of every node why it is left, as a try would."""

    def outcome(tried_first: int) -> Any:
        trail, snapshot = Trail(), view_of(objects).snapshot(volume_rules(CONFIG))
        session = open_session(snapshot, CONFIG, CycleClock(1, parse_time(NOW)), Carry(), trail=trail)
        before, candidates.TRIED_FIRST = candidates.TRIED_FIRST, tried_first
        try:
            run_action(session, "reclaim")
        finally:
            candidates.TRIED_FIRST = before
        left = {(ended.who, ended.node, ended.ending) for endings in trail.endings.values() for ended in endings}
        return session.evicts, session.nodes.future.tolist(), left

    screened, tried = outcome(0), outcome(1000)
    assert screened[:2] == tried[:2]
    assert screened[2] >= tried[2]


@pytest.mark.parametrize(("fix", "promised"), [((), 0), (("reclaim-uses-what-leaves",), 2)])
def test_second_task_takes_the_rest_of_what_was_freed_under_the_fix(fix: tuple[str, ...], promised: int) -> None:
    """One victim of two cpu makes room for both tasks of a gang; a node without anybody to ask is passed over else."""
    config = configuration(["gang", "conformance"], ["capacity", "predicates"], fix=fix)
    old = running("old", ["n0"], least=0, queue="rich", cpu="2", memory="1Gi")
    new = waiting("new", 2, queue="poor", cpu="1", memory="1Gi")
    queues = [queue("rich", deserved={"cpu": "0"}), queue("poor", deserved={"cpu": "2"})]
    session = after("reclaim", config, node("n0", cpu="2"), queues, classes(), old, new)
    assert evictions(session) == ["old-0"] * (promised > 0)
    assert session.jobs.waiting_count(job_of(session, "new")) == promised


def test_reclaim_leaves_idle_room_to_allocate_under_the_fix() -> None:
    """allocate asks the queues; nobody is on the node, and nobody leaves it."""
    config = configuration(["gang"], ["proportion", "predicates"], fix=["reclaim-uses-what-leaves"])
    new = waiting("new", 1, queue="poor", cpu="1", memory="1Gi")
    session = after("reclaim", config, node("n0", cpu="2"), queue("rich"), queue("poor"), classes(), new)
    assert session.jobs.waiting_count(job_of(session, "new")) == 0
