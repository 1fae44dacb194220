"""A trail changes nothing: with it and without it the conformance cases are decided alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import pytest

from pumice.core.life.task import LABELS, TaskStatus
from pumice.core.session.trail.trail import Trail
from pumice.proof.conformance.case import find_suites, read_raw, setup_of
from pumice.questions.oneshot.cycles import Cycle, run_cycles
from tests.pumice.proof.conformance.test_ratchet import CASES

Raw = dict[str, Any]
LARGE = 200_000  # bytes of case file by case: what is heavier takes its time

pytestmark = pytest.mark.skipif(
    not all(each.is_dir() for each in CASES), reason="the conformance cases are not beside the repository"
)


def cases(every: int) -> Iterator[tuple[str, Raw]]:
    """Of each file one case in `every`, if it holds objects."""
    for suite in find_suites(CASES):
        if suite.is_resources:
            continue
        for case in read_raw(suite.path)["cases"][::every]:
            yield f"{suite.suite}: {case['name']}", case


def decided(case: Raw, *, trails: bool) -> list[Cycle]:
    """The cycles of a case."""
    setup = setup_of(case, close_hooks="documentedOrder" not in case)
    return list(
        run_cycles(replace(setup, trail=partial(Trail, every_filter=True) if trails else None), case.get("cycles", 1))
    )


def check(every: int) -> int:
    """How many cycles were decided alike."""
    count = 0
    for name, case in cases(every):
        for plain, heard in zip(decided(case, trails=False), decided(case, trails=True), strict=True):
            assert plain.result.digest == heard.result.digest, name
            assert msgspec.json.encode(plain.result) == msgspec.json.encode(heard.result), name
            assert heard.trail is not None
            assert plain.trail is None
            holds_together(heard.trail, heard, name)
            count += 1
    return count


def holds_together(trail: Trail, cycle: Cycle, name: str) -> None:
    """What the trail says fits what was decided."""
    for looks in trail.looks.values():
        for look in looks:
            assert sum(look.by_reason().values()) == look.nodes, name
            if look.every:  # whom a filter refuses does not fit
                assert {node for node in look.names if look.refusers(node)} == look.refused().keys(), name
    for election in trail.elections.held:
        assert set(election.victims) <= set(election.candidates), name
        assert bool(election.tier) == bool(election.victims), name
        for opinion in election.opinions:
            assert opinion.gave <= set(election.candidates), name
            if opinion.tier == election.tier and not opinion.abstained:
                assert opinion.gave, name
    allocated = {LABELS[status] for status in (TaskStatus.BINDING, TaskStatus.ALLOCATED, TaskStatus.PIPELINED)}
    for bind in cycle.result.binds:
        assert trail.statuses[f"{bind.namespace}/{bind.name}"] in allocated, name
        looks = trail.looks[f"{bind.namespace}/{bind.name}"]
        assert bind.node in {look.chosen for look in looks}, name
    for evict in cycle.result.evicts:
        if evict.preemptor:
            assert trail.elections.of(f"{evict.namespace}/{evict.name}", evict.preemptor) is not None, name


@pytest.mark.slow
def test_a_spread_of_cases_is_decided_alike() -> None:
    assert check(every=60) > 13


@pytest.mark.slow
def test_every_case_is_decided_alike() -> None:
    assert check(every=1) > 700
