"""A life without actors decides what the whole system decides on virtual time, cycle by cycle."""

from __future__ import annotations

from dataclasses import asdict, replace

import anyio
import pytest
from trio.testing import MockClock

import pumice
from pumice.actors.runtime.clock import VirtualClock
from pumice.actors.system.settings import SystemSettings
from pumice.actors.system.system import System
from pumice.cluster.kernel.fork import NOTHING_TOLD, Fork
from pumice.cluster.kernel.intake import in_order
from pumice.cluster.kernel.life import Life
from pumice.cluster.kube.statuses import timestamp
from pumice.core.messages.decisions import Bind, CycleResult, Decision, Evict
from pumice.core.messages.events import CycleRecord, Mutation
from pumice.core.messages.replies import Refused
from pumice.core.objects.metadata import section
from pumice.questions.whatif.ask import live
from pumice.questions.whatif.sources import handed_in
from pumice.runtime.determinism import deterministic
from pumice.storage import codec
from pumice.storage.journal import CYCLE, DECISION
from pumice.storage.memory import MemoryJournal
from tests.kit.jobs import gang
from tests.kit.nodes import nodes
from tests.kit.queues import queue
from tests.pumice.questions.whatif.clusters import BEGAN, CLUSTERS, contested, fork

FIRST_S = 5.0
HORIZON_S = 60.0
Told = tuple[float, str, str, str]


async def _whole_system(fork: Fork) -> list[Told]:
    journal, found, now = MemoryJournal(), list[Told](), 0.0
    settings = SystemSettings(config_text=fork.told.text, checkpoint_every=0, default_duration_s=0)
    async with System(settings, journal, VirtualClock(BEGAN)).running() as system:
        await anyio.sleep(FIRST_S)  # its first cycles have nothing but queues
        for answer in await system.submit(in_order(fork.objects)):
            assert not isinstance(answer, Refused), answer.message
        await anyio.sleep(HORIZON_S)
    journal.reopen()
    for stored in await journal.read(limit=10**9):
        if stored.kind == CYCLE:
            now = codec.decode(stored.payload, CycleRecord).now - FIRST_S
        elif stored.kind == DECISION:
            found.append(_told(codec.decode(stored.payload, Decision), now))
    return found


def _told(decision: Decision, now: float) -> Told:
    pod = f"{decision.namespace}/{decision.name}"
    return (round(now - BEGAN, 3), type(decision).__name__, pod, decision.node)


def _alone(fork: Fork) -> list[Told]:
    found = list[Told]()

    def decided(result: CycleResult, now: float) -> None:
        decisions: tuple[Bind | Evict, ...] = (*result.binds, *result.evicts)
        found.extend(_told(decision, now) for decision in decisions)

    life = Life(fork, 0, lambda mutation, at: None, decided)
    life.run(HORIZON_S)
    assert not life.refused
    return found


def check(fork: Fork) -> None:
    """Both decide the same, at the same time."""
    options = {"clock": MockClock(autojump_threshold=0)}
    with deterministic(0):
        whole = anyio.run(_whole_system, fork, backend="trio", backend_options=options)
    assert _alone(fork) == whole


@pytest.mark.parametrize("number", range(6))
def test_decides_what_the_whole_system_decides(number: int) -> None:
    check(fork(number))


@pytest.mark.parametrize("number", [9, 12, 13, 16, 23, 32, 33])
def test_decides_the_same_where_controllers_answer_to_what_a_cycle_is_decided_by(number: int) -> None:
    """A pod that has left makes its job delete those that the cycle binds, and make its PodGroup again."""
    check(contested(number))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, CLUSTERS, 25))
def test_decides_what_the_whole_system_decides_in_many_clusters(first: int) -> None:
    for number in range(first, first + 25):
        check(fork(number))


def test_the_same_question_has_the_same_answer() -> None:
    assert asdict(live(fork(5), HORIZON_S)) == asdict(live(fork(5), HORIZON_S))


def _ends(fork: Fork) -> list[float]:
    """After how many seconds pods end."""
    found = list[float]()

    def hears(mutation: Mutation, at: float) -> None:
        if mutation.kind == "Pod" and section(codec.unpack(mutation.blob), "status").get("phase") == "Succeeded":
            found.append(round(at - BEGAN, 3))

    Life(fork, 0, hears, lambda result, at: None).run(HORIZON_S * 5)
    return found


@pytest.mark.parametrize("since", [None, BEGAN - 30])
def test_a_fork_of_a_life_goes_on_with_pods_that_ran_from_its_beginning(since: float | None) -> None:
    running = gang("r", pods=1, cpu="1", phase="Running", nodes=["n0"], duration="200s")
    if since is not None:
        running[1]["status"]["startTime"] = timestamp(since)
    begun = handed_in([*nodes(1, cpu="4"), queue("default"), *running], BEGAN, NOTHING_TOLD)
    life = Life(begun, 0, lambda mutation, at: None, lambda result, at: None)
    life.run(60)
    assert _ends(begun) == _ends(life.fork()) == [200.0 if since is None else 170.0]


def test_a_late_arrival_that_the_api_refuses_is_told() -> None:
    late = pumice.gang("late", pods=1)
    late["spec"]["minAvailable"] = 7
    life = Life(replace(fork(0), later=((5.0, late),)), 0, lambda mutation, at: None, lambda result, at: None)
    life.run(4.0)
    assert (life.refused, [obj for _, obj in life.fork().later]) == ([], [late])
    life.run(6.0)
    [(refused, answer)] = life.refused
    assert (refused, "minAvailable" in answer.message) == (late, True)
