"""Kubernetes' own scheduler beside Volcano's in a whole system: one set of nodes, one journal."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import anyio
import pytest

from pumice.core.default_scheduler.profile import NAME
from pumice.core.messages.decisions import Decision
from pumice.core.messages.events import CycleRecord
from pumice.core.objects.metadata import Object
from pumice.questions.replay.verify import verify
from pumice.storage.memory import MemoryJournal
from tests.actors.rig import QUICK, cycles, idle, journaled, placed, started, stored, tampered, three_nodes
from tests.kit.jobs import gang
from tests.kit.pods import pod

pytestmark = pytest.mark.anyio


def mine(name: str, **options: Any) -> Object:
    return pod(name, scheduler=NAME, duration="0", **options)


def its_own(records: list[CycleRecord]) -> list[CycleRecord]:
    return [record for record in records if record.scheduler == NAME]


async def test_both_share_the_nodes_and_every_cycle_is_decided_again_alike() -> None:
    journal = MemoryJournal()
    async with started(journal) as system:
        await system.submit(three_nodes())
        for turn in range(4):
            await system.submit([mine(f"d{turn}-{number}", cpu="2") for number in range(3)])
            await system.submit(gang(f"g{turn}", pods=2, cpu="2", duration="0"))
        await idle(system)
        on_nodes = Counter(placed(system).values())
        assert sorted(on_nodes.values()) == [4, 4, 4]  # of 2 CPUs each, on nodes of 8
        assert len(placed(system)) == 12
        waiting = [each for each in stored(system, "Pod") if not each["spec"].get("nodeName")]
        assert len(waiting) == 8
    records = await cycles(journal)
    assert 0 < len(its_own(records)) < len(records)
    assert [record.cycle for record in records] == list(range(1, len(records) + 1))  # one count for both
    report = await verify(journal)
    assert report.identical, report.first_difference
    assert report.cycles == len(records)


async def test_a_pod_is_bound_once() -> None:
    journal = MemoryJournal()
    async with started(journal) as system:
        await system.submit([*three_nodes(), *[mine(f"p{number}") for number in range(20)]])
        await idle(system)
        assert len(placed(system)) == 20
    decisions = await journaled(journal, "decision", Decision)
    assert sorted(Counter(bind.uid for bind in decisions).values()) == [1] * 20
    assert {bind.job for bind in decisions} == {""}


async def test_who_waits_in_vain_leaves_the_system_idle_and_the_journal_alone() -> None:
    journal = MemoryJournal()
    async with started(journal) as system:
        await system.submit([*three_nodes(), mine("huge", cpu="9")])
        await idle(system)
        (waiting,) = stored(system, "Pod")
        (condition,) = [each for each in waiting["status"]["conditions"] if each["type"] == "PodScheduled"]
        assert condition["message"].startswith("0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes")
        quiet = system.memory.cycle
        await anyio.sleep(0.1)
        assert system.memory.cycle == quiet
        await system.run_cycle()
        await idle(system)
    records = await cycles(journal)
    assert len(its_own(records)) == 1  # it says the same of it in every cycle: once is enough
    assert len(records) > 2


async def test_room_is_made_for_priority() -> None:
    journal = MemoryJournal()
    async with started(journal) as system:
        await system.submit([*three_nodes(), *[mine(f"low{number}", cpu="8", grace_s=1) for number in range(3)]])
        await idle(system)
        await system.submit([mine("high", cpu="6", priority=1000)])
        await idle(system)
        assert len(placed(system)) == 3
        assert placed(system)["high"] in {"n0", "n1", "n2"}
    evicts = [each for each in await journaled(journal, "decision", Decision) if hasattr(each, "preemptor")]
    assert [(each.action, each.preemptor) for each in evicts] == [(NAME, "default/high")]
    assert (await verify(journal)).identical


@pytest.mark.parametrize("change", [{"default_scheduler": False}, {"scheduler": False}], ids=["its-own", "both"])
async def test_others_may_have_the_pods(change: dict[str, Any]) -> None:
    async with started(settings=replace(QUICK, **change)) as system:
        await system.submit([*three_nodes(), mine("p"), *gang("g", pods=1, duration="0")])
        await idle(system)
        assert list(placed(system)) == ([] if "scheduler" in change else ["g-0"])
        left = next(each for each in stored(system, "Pod") if each["metadata"]["name"] == "p")
        assert not left["status"].get("conditions")


async def test_a_bug_in_it_costs_a_cycle_and_nothing_else() -> None:
    broken = 0

    def fails_once(*given: Any) -> Any:
        nonlocal broken
        broken += 1
        if broken == 1:
            raise RuntimeError("a bug")
        return real.decide_others(*given)

    real = tampered(lambda run, session, action: run(session, action))
    async with started(decider=replace(real, decide_others=fails_once)) as system:
        await system.submit([*three_nodes(), mine("p")])
        await idle(system)
        assert (system.memory.lost, list(placed(system))) == (1, ["p"])


async def test_restarted_it_goes_on() -> None:
    journal = MemoryJournal()
    for turn in range(3):
        async with started(journal) as system:
            await system.submit([*([] if turn else three_nodes()), mine(f"p{turn}")])
            await idle(system)
            assert len(placed(system)) == turn + 1
    assert (await verify(journal)).identical
