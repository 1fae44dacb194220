"""Topology-aware preemption: whole chunks in one batch say what node after node says, nobody goes for nothing, and
neither chunks nor the order of answers matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.core.actions.dry_runs import LIFT, Candidate, DryRun, select_victims
from pumice.core.actions.victims.on_node import available, fits
from pumice.core.session.session import Session
from tests.core.actions.crowds import PLAIN, TIERS, after, classes, crowds, evictions, running, waiting, with_arguments
from tests.core.actions.plainly_asked import of_other_jobs, of_own_job, tasks_that
from tests.core.plugins.world import configuration, open_world, task_of
from tests.kit import node, pod, queue

AWARE = {"enableTopologyAwarePreemption": True, "minCandidateNodesPercentage": 100}
CONFIG = with_arguments(PLAIN, "preempt", **AWARE)
OTHER_TIERS = (
    TIERS,
    (["gang", "conformance"], ["priority", "predicates"]),
    (["drf", "conformance"], ["gang", "priority"]),
    (["conformance"],),
)


class Loss(NamedTuple):
    """What is compared, smaller is better: the first victim's priority, the sum of all, how many, how long they ran."""

    highest_priority: int
    sum_of_priorities: int
    victims: int
    started_before: float
    node: int


def loss_of(candidate: Candidate, now: float) -> Loss:
    """The loss of evicting there. Pods' own priorities count; who has not started yet starts now."""
    priorities = [task.pod_priority or 0 for task in candidate.victims]
    highest = max(priorities)
    starts = (task.started or now for task, p in zip(candidate.victims, priorities, strict=True) if p == highest)
    total = sum(priorities) + LIFT * len(priorities)
    return Loss(priorities[0], total, len(priorities), -min(starts), candidate.node)


def choose(candidates: Iterable[Candidate], now: float) -> Candidate | None:
    """The least loss; of equals the node of lowest name. None when there is no candidate."""
    return min(candidates, key=lambda candidate: loss_of(candidate, now), default=None)


def dry_run(session: Session, preemptor: str, *, want: int = 100, own_job: bool = False) -> DryRun:
    nodes = np.arange(session.nodes.count)
    return DryRun(session, task_of(session, preemptor), nodes, want, own_job=own_job)


def one_by_one(session: Session, preemptor: str, *, own_job: bool = False) -> list[Candidate]:
    task = task_of(session, preemptor)
    job = session.job_of(task)
    assert job is not None
    accepts = (of_own_job if own_job else of_other_jobs)(session, task)
    found: list[Candidate] = []
    for node_row in range(session.nodes.count):
        candidates = session.points.preemptable(task, tasks_that(session, node_row, accepts))
        victims = select_victims(session, task, session.queue_of(job), node_row, candidates)
        found += [Candidate(node_row, tuple(victims))] if victims else []
    return found


@given(crowds(), st.sampled_from(OTHER_TIERS), st.booleans())
def test_columns_say_what_one_node_after_the_other_says(objects: Any, tiers: Any, own_job: bool) -> None:
    session = open_world(configuration(*tiers), objects)
    run = dry_run(session, "w0-0", own_job=own_job)
    assert run.candidates(0, session.nodes.count) == one_by_one(session, "w0-0", own_job=own_job)


@given(crowds())
def test_nobody_goes_for_nothing(objects: Any) -> None:
    session = open_world(PLAIN, objects)
    task = task_of(session, "w0-0")
    for node_row, victims in dry_run(session, "w0-0").candidates(0, session.nodes.count):
        assert fits(task, available(session, task, node_row, victims))
        for spared in victims:
            rest = [victim for victim in victims if victim is not spared]
            assert not fits(task, available(session, task, node_row, rest))


@given(crowds(), st.integers(1, 5), st.integers(1, 4), st.randoms())
def test_chunks_and_the_order_of_answers_change_nothing(objects: Any, want: int, chunk: int, random: Any) -> None:
    session = open_world(PLAIN, objects)
    run = dry_run(session, "w0-0", want=want)
    chunks = [(first, min(first + chunk, session.nodes.count)) for first in range(0, session.nodes.count, chunk)]
    random.shuffle(chunks)
    answers = [answer for first, last in chunks for answer in run.try_rows(first, last)]
    assert run.read(answers) == run.run()


@given(crowds(), st.integers(1, 5))
def test_the_columns_take_the_same_as_a_list(objects: Any, want: int) -> None:
    session = open_world(PLAIN, objects)
    now = session.clock.now
    assert dry_run(session, "w0-0", want=want).run() == choose(one_by_one(session, "w0-0")[:want], now)


@pytest.mark.parametrize(("short_of", "has_room"), [("-0.09", True), ("-0.1", False)])
def test_room_that_lacks_less_than_a_tenth_of_a_unit_is_room(short_of: str, has_room: bool) -> None:
    lent = {"volcano.sh/oversubscription-cpu": short_of}
    session = open_world(
        PLAIN, node("n0", cpu="0", annotations=lent), queue("q"), waiting("new", 1, queue="q", cpu=None)
    )
    task = task_of(session, "new-0")
    assert fits(task, available(session, task, 0, ())) is has_room


def columns(session: Session) -> dict[str, npt.NDArray[Any]]:
    kept = {name: getattr(session.nodes, name) for name in ("idle", "used", "releasing", "pipelined", "future")}
    kept |= {"status": session.snapshot.tasks.status, "counts": session.snapshot.jobs.counts}
    return {name: column.copy() for name, column in kept.items()}


@given(crowds())
def test_a_dry_run_leaves_no_trace(objects: Any) -> None:
    session = open_world(PLAIN, objects)
    before = columns(session)
    dry_run(session, "w0-0").run()
    one_by_one(session, "w0-0")
    now = columns(session)
    assert all(np.array_equal(before[name], now[name]) for name in before)


def crowded(*parts: Any, config: Any = CONFIG) -> Session:
    nodes = [node("n0", cpu="4"), node("n1", cpu="4")]
    return after("preempt", config, nodes, queue("q"), classes(), *parts)


def test_the_least_important_victims_are_the_least_loss() -> None:
    session = crowded(
        running("mid", ["n0", "n0"], group="mid", least=0, queue="q", cpu="2"),
        running("low", ["n1", "n1"], group="low", least=0, queue="q", cpu="2"),
        waiting("new", 1, queue="q", cpu="2"),
    )
    (evicted,) = session.evicts
    assert (evicted.node, evicted.job, evicted.preemptor) == ("n1", "default/low", "default/new-0")
    assert (evicted.reason, evicted.action, evicted.score) == ("preempt", "preempt", -10.0)


def test_fewer_victims_are_less_loss_than_many_small_ones() -> None:
    session = crowded(
        running("small", ["n0"] * 4, least=0, queue="q", cpu="1"),
        running("big", ["n1"] * 2, least=0, queue="q", cpu="2"),
        waiting("new", 1, queue="q", cpu="2"),
    )
    assert len(evictions(session)) == 1
    assert session.evicts[0].job == "default/big"


def test_several_far_below_nothing_are_less_loss_than_one_that_is_nothing() -> None:
    """Kubernetes adds 2**31 to each priority before it sums them up."""
    session = crowded(
        running("best", ["n0", "n1"], group="mid", least=0, queue="q", cpu="2"),
        running("lowest", ["n0", "n0"], least=0, queue="q", cpu="1", priority=-1_500_000_000),
        running("none", ["n1"], least=0, queue="q", cpu="2", priority=0),
        waiting("new", 1, queue="q", cpu="4"),
    )
    assert sorted(evictions(session)) == ["best-0", "lowest-0", "lowest-1"]


def test_who_started_last_goes_first_among_equals() -> None:
    early = running("early", ["n0"], least=0, queue="q", cpu="4")
    late = running("late", ["n1"], least=0, queue="q", cpu="4")
    early[1]["status"]["startTime"] = "2026-01-01T01:00:00Z"
    late[1]["status"]["startTime"] = "2026-01-01T02:00:00Z"
    assert evictions(crowded(early, late, waiting("new", 1, queue="q", cpu="2"))) == ["late-0"]


def test_no_more_candidates_are_looked_for_than_wanted() -> None:
    config = with_arguments(PLAIN, "preempt", **AWARE, maxCandidateNodesAbsolute=1)
    session = crowded(
        running("mid", ["n0", "n0"], group="mid", least=0, queue="q", cpu="2"),
        running("low", ["n1", "n1"], group="low", least=0, queue="q", cpu="2"),
        waiting("new", 1, queue="q", cpu="2"),
        config=config,
    )
    assert session.evicts[0].node == "n0"  # n1 would be less loss, but n0 is found first and is enough


def test_a_node_without_anybody_to_evict_is_no_candidate() -> None:
    session = crowded(running("old", ["n0"], least=0, queue="q", cpu="4"), waiting("new", 1, queue="q", cpu="2"))
    assert [(e.name, e.node) for e in session.evicts] == [("old-0", "n0")]  # though n1 is empty


ANTI = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
        ]
    }
}


def test_what_affinity_forbids_is_tried_out_too() -> None:
    session = crowded(
        running("loner", ["n0"], least=0, queue="q", cpu="1", labels={"app": "x"}),
        running("heavy", ["n0"], least=0, queue="q", cpu="3", group="mid"),
        pod("wall", node="n1", cpu="4"),
        waiting("new", 1, queue="q", cpu="1", affinity=ANTI),
    )
    assert evictions(session) == ["loner-0"]


def test_no_more_are_taken_away_than_it_takes_to_fit_lest_somebody_be_missed() -> None:
    """The preemptor is to run beside the more important one."""
    beside = {"podAffinity": ANTI["podAntiAffinity"]}
    session = crowded(
        running("low", ["n0"], least=0, queue="q", cpu="2"),
        running("friend", ["n0"], least=0, queue="q", cpu="2", group="mid", labels={"app": "x"}),
        pod("wall", node="n1", cpu="4"),
        waiting("new", 1, queue="q", cpu="2", affinity=beside),
    )
    assert evictions(session) == ["low-0"]


@pytest.mark.parametrize(("fix", "names"), [((), ["low-0"]), (("dry-run-asks-queue",), [])])
def test_a_queue_that_may_not_have_it(fix: tuple[str, ...], names: list[str]) -> None:
    config = with_arguments(configuration(["priority"], ["predicates", "proportion"], fix=fix), "preempt", **AWARE)
    session = after(
        "preempt",
        config,
        node("n0", cpu="4"),
        queue("q", weight=1),
        queue("p", weight=9),
        classes(),
        running("high", ["n0"], queue="q", cpu="2", group="high", annotations={}),
        running("low", ["n0"], queue="q", cpu="1"),
        waiting("rich", 1, queue="p", cpu="4"),
        waiting("new", 1, queue="q", cpu="1"),
    )
    assert evictions(session) == names
