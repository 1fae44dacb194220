"""Whole actions on random crowds: in topology-aware mode everybody who goes must go, and no guarded gang breaks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.config.schema import SchedulerConfig
from pumice.core.actions.dry_runs import Candidate, DryRun, NodeTrial
from pumice.core.actions.preempt import steps
from pumice.core.actions.victims.on_node import available
from pumice.core.cycle import run_action
from pumice.core.objects.metadata import Object
from pumice.core.session.session import Session
from tests.core.actions.crowds import crowds, evictions, running, with_arguments
from tests.core.plugins.world import configuration, open_world

ASKS = ("dry-run-asks-queue",)
MENDED = (*ASKS, "empty-answer-vetoes", "intersection-stays-empty")
"""With the last two each node is tried by itself, without them by columns where plugins can answer so."""
AWARE = {"enableTopologyAwarePreemption": True, "minCandidateNodesPercentage": 100}
TIERS = (
    (["priority", "gang", "conformance"], ["drf", "predicates", "nodeorder"]),
    (["priority", "gang"], ["predicates", "proportion"]),
    (["priority"], ["predicates", "capacity"]),
)
COLUMNS = (["priority", "conformance"], ["predicates", "nodeorder"])
LONELY = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
        ]
    }
}


def aware(tiers: tuple[list[str], ...], fix: tuple[str, ...] = MENDED) -> SchedulerConfig:
    return with_arguments(configuration(*tiers, fix=fix), "preempt", **AWARE)


@st.composite
def lonely_crowds(draw: st.DrawFn) -> list[Object]:
    """Crowds in which some who wait, and some who run, keep pods of an application away."""
    objects = draw(crowds())
    for obj in objects:
        if obj["kind"] == "Pod" and draw(st.integers(0, 3)) == 0:
            obj["metadata"]["labels"] = {"app": "x"}
        if obj["kind"] == "Pod" and not obj["spec"].get("nodeName") and draw(st.booleans()):
            obj["spec"]["affinity"] = LONELY
    if draw(st.booleans()):
        objects += running("lonely", ["n0"], queue="q", cpu="500m", affinity=LONELY, labels={"app": "x"})
    return objects


def fits_without(dry_run: DryRun, candidate: Candidate, spared: int | None) -> bool:
    """Whether the preemptor fits on the node once all victims but this one have gone."""
    session, preemptor = dry_run.session, dry_run.preemptor
    job = session.job_of(preemptor)
    assert job is not None
    room = available(session, preemptor, candidate.node, ())
    trial = NodeTrial(session, preemptor, session.queue_of(job), candidate.node, room)
    for place, victim in enumerate(candidate.victims):
        assert place == spared or trial.remove(victim)
    return trial.fits()


def checked(session: Session) -> int:
    """Run preempt with every choice checked; how many there were."""
    action, answer, chosen = steps(session), None, 0
    try:
        asked = next(action)
        while True:
            answer = asked.run()
            if answer is not None:
                chosen += 1
                assert fits_without(asked, answer, None)
                needless = [i for i in range(len(answer.victims)) if fits_without(asked, answer, i)]
                assert not needless
            asked = action.send(answer)
    except StopIteration:
        return chosen


@settings(max_examples=80)
@given(crowds() | lonely_crowds(), st.sampled_from(TIERS))
def test_whoever_goes_must_go(objects: list[Object], tiers: tuple[list[str], ...]) -> None:
    checked(open_world(aware(tiers), objects))


@settings(max_examples=80)
@given(crowds())
def test_also_where_victims_are_found_by_columns(objects: list[Object]) -> None:
    checked(open_world(aware(COLUMNS, ASKS), objects))


@pytest.mark.parametrize("tiers", TIERS, ids=["drf", "proportion", "capacity"])
@pytest.mark.parametrize("crowd", [crowds(), lonely_crowds()], ids=["crowds", "lonely"])
def test_these_crowds_put_it_to_the_test(crowd: st.SearchStrategy[list[Object]], tiers: tuple[list[str], ...]) -> None:
    """Somebody goes in a good part of them."""
    chosen: list[int] = []

    @settings(max_examples=60, derandomize=True, database=None)
    @given(crowd)
    def count(objects: list[Object]) -> None:
        chosen.append(checked(open_world(aware(tiers), objects)))

    count()
    assert sum(1 for each in chosen if each) >= 6


GUARDED = {
    "preempt": configuration(["gang", "priority"], ["predicates", "nodeorder"], fix=MENDED),
    "reclaim": configuration(["gang", "conformance"], ["proportion", "predicates"], fix=MENDED),
}
ALONE = configuration(["gang"], ["predicates", "nodeorder"])
"""Nobody overrules the guard here, with no switch on: victims are found by columns."""


def ready_below(config: SchedulerConfig, action: str, objects: list[Object]) -> tuple[list[str], int]:
    """Gangs that were whole, or lost a task, and are below their minimum now; how many tasks were evicted."""
    session = open_world(config, objects)
    ready = {job.key: session.jobs.ready_count(job) for job in session.jobs.in_order}
    run_action(session, action)
    hurt = [
        job.key
        for job in session.jobs.in_order
        if session.jobs.ready_count(job) < min(job.pod_group.min_member, ready[job.key])
    ]
    return hurt, len(evictions(session))


@given(crowds(queues=("q", "p")), st.sampled_from([*GUARDED]), st.booleans())
def test_no_guarded_gang_falls_below_its_minimum(objects: list[Object], action: str, by_topology: bool) -> None:
    config: Any = GUARDED[action]
    if by_topology:
        config = with_arguments(config, "preempt", **AWARE)
    assert ready_below(config, action, objects)[0] == []


@given(crowds())
def test_no_gang_does_where_victims_are_found_by_columns(objects: list[Object]) -> None:
    assert ready_below(with_arguments(ALONE, "preempt", **AWARE), "preempt", objects)[0] == []


@pytest.mark.parametrize("action", [*GUARDED])
def test_gangs_are_put_to_the_test_as_well(action: str) -> None:
    evicted: list[int] = []

    @settings(max_examples=80, derandomize=True, database=None)
    @given(crowds(queues=("q", "p")))
    def count(objects: list[Object]) -> None:
        evicted.append(ready_below(GUARDED[action], action, objects)[1])

    count()
    assert sum(1 for each in evicted if each) >= 4
