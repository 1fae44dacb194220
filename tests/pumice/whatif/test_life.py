"""A life without actors decides what the whole system decides on virtual time, cycle by cycle."""

from __future__ import annotations

from dataclasses import asdict

import anyio
import pytest
from trio.testing import MockClock

from actors.runtime.clock import VirtualClock
from actors.system.settings import SystemSettings
from actors.system.system import System
from core.messages.decisions import Bind, CycleResult, Decision, Evict
from core.messages.events import CycleRecord
from core.messages.replies import Refused
from pumice.runtime.determinism import deterministic
from pumice.runtime.order import in_order
from pumice.whatif.life import Life
from pumice.whatif.living import live
from pumice.whatif.state import Fork
from storage import codec
from storage.journal import CYCLE, DECISION
from storage.memory import MemoryJournal
from tests.pumice.whatif.clusters import BEGAN, contested, fork

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
@pytest.mark.parametrize("first", range(0, 200, 25))
def test_decides_what_the_whole_system_decides_in_two_hundred_clusters(first: int) -> None:
    for number in range(first, first + 25):
        check(fork(number))


def test_the_same_question_has_the_same_answer() -> None:
    assert asdict(live(fork(5), HORIZON_S)) == asdict(live(fork(5), HORIZON_S))
