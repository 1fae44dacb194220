"""A whole system in which gangs preempt, topology-aware: whoever tries the candidates, and whatever becomes of him, the
cycles decide the same, digest by digest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

import anyio
import pytest

from pumice.actors.dry_run.worker import DryRunWorker
from pumice.actors.system.settings import SystemSettings
from pumice.actors.system.system import System
from pumice.core.messages.commands import Chunk, Restart
from pumice.core.messages.decisions import Decision, Evict
from pumice.core.messages.replies import Candidates, DryRunFailed
from pumice.core.objects.metadata import Object
from pumice.storage.memory import MemoryJournal
from tests.actors.rig import PATIENCE_S, cycles, journaled, placed, started
from tests.core.actions.crowds import PREEMPTABLE, classes, running, waiting
from tests.kit import node, queue

CONFIG = """\
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: nodeorder}]
configurations:
- name: preempt
  arguments: {enableTopologyAwarePreemption: true, minCandidateNodesPercentage: 40}
"""
NODES = 24
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
        ]
    }
}
"""Whoever asks for this is tried node by node, not by columns."""

GOES_AT_ONCE = {**PREEMPTABLE, "pumice.dev/termination": "0s"}


class NoonClock:
    """Time stands still."""

    def now(self) -> float:
        return 1_767_268_800.0


def full_house() -> list[Object]:
    """Every node full: one job on all of them, one on every third node, and one whose pods keep others away."""
    names = [f"n{i:02}" for i in range(NODES)]
    each: Object = {"queue": "q", "duration": "0", "annotations": GOES_AT_ONCE}
    objects = [*classes(), queue("q"), *(node(name, cpu="4", memory="16Gi") for name in names)]
    objects += running("wide", names, **each, cpu="2")
    objects += running("some", names[::3], group="mid", **each, cpu="2", least=4)
    objects += running("rest", names[2::3], least=0, **each, cpu="2")
    return objects + running("x", [*names[1::3]] * 2, **each, cpu="1", labels={"app": "x"})


def newcomers() -> list[Object]:
    """Gangs that fit only where others go."""
    objects: list[Object] = []
    for i, cpu in enumerate(["2", "3", "1"]):
        objects += waiting(f"new{i}", 3, queue="q", duration="0", cpu=cpu)
    return objects + waiting("apart", 2, queue="q", duration="0", cpu="1", affinity=APART)


@dataclass
class Trouble:
    """What befalls the workers: seconds before the answer to a chunk, chunks over which one crashes or hangs."""

    delay: Callable[[], float] = lambda: 0.0
    crash: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    hang: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    kill: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    tried: list[str] = field(default_factory=list[str])


def troubled(trouble: Trouble, systems: list[System]) -> type[DryRunWorker]:
    class Troubled(DryRunWorker):
        async def handle(self, message: Chunk) -> Candidates | DryRunFailed:
            which = message.request, message.chunk
            trouble.tried.append(self.name)
            await anyio.sleep(trouble.delay())
            if which in trouble.crash:
                trouble.crash.discard(which)
                raise RuntimeError("planted")
            if which in trouble.hang:
                trouble.hang.discard(which)
                await anyio.sleep_forever()
            if which in trouble.kill:
                trouble.kill.discard(which)
                await systems[0].supervisor.mailbox.tell(Restart(self.name))
                await anyio.sleep_forever()
            return await super().handle(message)

    return Troubled


@dataclass(frozen=True)
class Outcome:
    digests: tuple[str, ...]
    evicted: tuple[Evict, ...]
    placed: dict[str, str]


async def settle(system: System) -> None:
    """Until everybody but the scheduler has done what there is to do."""
    waits = list[str]()
    with anyio.move_on_after(PATIENCE_S):
        while waits := [reason for reason in system.context.activity.reasons() if "scheduler" not in reason]:  # noqa: ASYNC110
            await anyio.sleep(0.001)
    assert not waits


async def live_through(settings: SystemSettings, systems: list[System]) -> Outcome:
    """Nobody but the test starts a cycle, so that every one of them sees the same."""
    journal = MemoryJournal()
    async with started(journal, settings=settings, clock=NoonClock()) as system:
        systems[:] = [system]
        await system.until_cycles(1)  # of its own accord; the next would be in an hour
        await settle(system)
        await system.run_cycle()  # it sees all first objects, of which that one may have seen some
        await settle(system)
        await system.submit(full_house())
        await settle(system)
        await system.submit(newcomers())
        for _ in range(3):
            await settle(system)
            await system.run_cycle()
        await settle(system)
        where = placed(system)
    decisions = await journaled(journal, "decision", Decision)
    evicted = tuple(each for each in decisions if isinstance(each, Evict))
    return Outcome(tuple(each.digest for each in await cycles(journal))[2:], evicted, where)


def outcome(monkeypatch: pytest.MonkeyPatch, backend: str, workers: int, trouble: Trouble) -> Outcome:
    systems: list[System] = []
    monkeypatch.setattr("pumice.actors.dry_run.crew.DryRunWorker", troubled(trouble, systems))
    settings = SystemSettings(
        config_text=CONFIG, schedule_period_s=3600.0, dry_run_workers=workers, dry_run_deadline_s=0.5, check_view=True
    )
    settings = replace(settings, dry_run_chunk_rows=2)
    return anyio.run(live_through, settings, systems, backend=backend)


@pytest.fixture(scope="module")
def expected() -> Outcome:
    """One worker, left in peace."""
    with pytest.MonkeyPatch.context() as patch:
        return outcome(patch, "asyncio", 1, Trouble())


def test_what_they_agree_on_is_worth_agreeing_on(expected: Outcome) -> None:
    assert len(expected.evicted) >= 8
    assert {evict.preemptor.split("-")[0] for evict in expected.evicted} >= {"default/new0", "default/apart"}
    assert all(evict.action == "preempt" and evict.score < 0 for evict in expected.evicted)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("workers", [1, 2, 8, 64])
def test_the_digest_does_not_depend_on_the_workers(
    monkeypatch: pytest.MonkeyPatch, expected: Outcome, backend: str, workers: int
) -> None:
    trouble = Trouble()
    assert outcome(monkeypatch, backend, workers, trouble) == expected
    assert len(set(trouble.tried)) >= min(workers, 6)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize(("workers", "seed"), [(2, 1), (8, 2), (64, 3)])
def test_nor_on_who_answers_first(
    monkeypatch: pytest.MonkeyPatch, expected: Outcome, backend: str, workers: int, seed: int
) -> None:
    random = Random(seed)
    shuffled = Trouble(delay=lambda: random.random() * 0.002)
    assert outcome(monkeypatch, backend, workers, shuffled) == expected


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("workers", [1, 2, 64])
def test_nor_on_workers_that_are_killed_crash_or_hang(
    monkeypatch: pytest.MonkeyPatch, expected: Outcome, backend: str, workers: int
) -> None:
    trouble = Trouble(crash={(1, 0), (3, 0)}, hang={(2, 0)}, kill={(4, 0), (5, 0)})
    assert outcome(monkeypatch, backend, workers, trouble) == expected
    assert not (trouble.crash | trouble.hang | trouble.kill)
