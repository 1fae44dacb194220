"""A run that was killed after any of its appends, beside its twin that nobody killed: both decide the same.

The inputs come in waves, the next when the system is idle, on virtual time. Where a pod goes depends on where all the
others are, so whatever a restart got wrong would show in a placement or in a victim. No order is left to uids, for what
is created after the kill has other ones.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from pumice.actors.runtime.clock import VirtualClock
from pumice.actors.system.system import System
from pumice.core.messages.decisions import Bind, Decision, Evict
from pumice.core.objects.metadata import Object
from pumice.questions.replay.verify import verify
from pumice.storage.journal import Record
from pumice.storage.memory import MemoryJournal
from tests.actors.rig import QUICK, idle, journaled, placed, started, stored
from tests.kit.jobs import gang
from tests.kit.nodes import node

pytestmark = pytest.mark.trio
POINTS = int(os.environ.get("PUMICE_TEST_KILLS", "24"))
CONFIG = """\
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
SETTINGS = replace(QUICK, config_text=CONFIG, schedule_period_s=0.1, checkpoint_every=40)


class Telling(MemoryJournal):
    """Remembers where its appends ended."""

    def __init__(self) -> None:
        super().__init__()
        self.ends: list[int] = []

    async def append(self, records: Sequence[Record]) -> int:
        last = await super().append(records)
        self.ends.append(last)
        return last


@dataclass
class Lived:
    """What a run came to: pod -> node, as the api has it and as it was last decided, and who had to go."""

    placed: dict[str, str] = field(default_factory=dict[str, str])
    decided: dict[str, str] = field(default_factory=dict[str, str])
    evicted: set[str] = field(default_factory=set[str])


def waves() -> list[list[Object]]:
    """Pods of different sizes on unequal nodes; the last wave needs room that others have."""
    first = [node(f"n{number}", cpu=str(4 + number)) for number in range(4)]
    for number, name in enumerate("abcde"):
        first.append({"kind": "PriorityClass", "metadata": {"name": f"of-{name}"}, "value": 10**number})
        first[-1]["apiVersion"] = "scheduling.k8s.io/v1"
    later = [
        gang("a", pods=3, cpu="1500m", duration="0", priority_class="of-a", min_member=1),
        gang("b", pods=4, cpu="1", duration="0", priority_class="of-b", min_member=1),
        gang("c", pods=2, cpu="2", duration="0", priority_class="of-c", min_member=1),
        gang("d", pods=4, cpu="1500m", duration="0", priority_class="of-d", min_member=2),
        gang("e", pods=3, cpu="3", duration="0", priority_class="of-e"),
    ]
    for _, *pods in later:
        for number, each in enumerate(pods):
            each["metadata"]["annotations"]["volcano.sh/task-priority"] = str(number)
    return [first, *later]


async def live(journal: MemoryJournal, at: float) -> Lived:
    """All waves; what the journal has seen already is not handed in again."""
    async with started(journal, settings=SETTINGS, clock=VirtualClock(at)) as system:
        was_there = known(system)
        for wave in waves():
            new = [obj for obj in wave if identity(obj) not in was_there]
            if new:
                await idle(system, 3600)
                await system.submit(new)
        await idle(system, 3600)
        found = Lived(placed(system))
    for decision in await journaled(journal, "decision", Decision):
        if isinstance(decision, Bind):
            found.decided[decision.name] = decision.node
        elif isinstance(decision, Evict):
            found.evicted.add(decision.name)
    return found


def identity(obj: Object) -> tuple[str, str]:
    return obj["kind"], obj["metadata"]["name"]


def known(system: System) -> set[tuple[str, str]]:
    """What was ever created: a pod that had to go does not come again."""
    there = {identity(obj) for kind in ("Node", "PriorityClass", "PodGroup", "Pod") for obj in stored(system, kind)}
    groups = {name for kind, name in there if kind == "PodGroup"}
    complete = {("Pod", obj["metadata"]["name"]) for wave in waves() for obj in wave if whole_wave(obj, wave, groups)}
    return there | complete


def whole_wave(obj: Object, wave: list[Object], groups: set[str]) -> bool:
    """Whether a later wave has been handed in, so that this one was whole."""
    later = waves()[waves().index(wave) + 1 :]
    return obj["kind"] == "Pod" and any(each["metadata"]["name"] in groups for other in later for each in other)


async def prefix(journal: MemoryJournal, end: int) -> tuple[MemoryJournal, float]:
    """The journal as a kill after record `end` leaves it, checkpoints included, and the time of that record."""
    killed = MemoryJournal()
    records = [record for record in await journal.read(limit=100_000) if record.sequence <= end]
    await killed.append([Record(each.kind, each.payload, each.cause, each.at) for each in records])
    for checkpoint in reversed(await journal.checkpoints()):
        if checkpoint.sequence <= end:
            await killed.save_checkpoint(checkpoint)
    return killed, records[-1].at


@pytest.mark.slow
async def test_whenever_it_is_killed_it_goes_on_as_its_twin(autojump_clock: object) -> None:
    journal = Telling()
    twin = await live(journal, 1_000_000.0)
    assert len(twin.placed) >= 10
    assert twin.evicted
    assert set(twin.placed) == {name for name in twin.decided if name not in twin.evicted}
    step = max(1, len(journal.ends) // POINTS)
    for end in journal.ends[::step]:
        again, at = await prefix(journal, end)
        found = await live(again, at)
        assert found.placed == twin.placed, f"killed after record {end}"
        assert found.decided == twin.decided, f"killed after record {end}"
        assert found.evicted == twin.evicted, f"killed after record {end}"
        assert (await verify(again)).identical, f"killed after record {end}"
