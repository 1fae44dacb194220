"""Actors taken away at any moment, on virtual time: whatever was in hand, every gang is bound whole and once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest

from pumice.actors.errors import ActorFailedError
from pumice.actors.runtime.clock import VirtualClock
from pumice.actors.system.roles import LINKS
from pumice.actors.system.system import System
from pumice.core.messages.commands import BindPod, Restart, StoreRequest
from pumice.core.messages.decisions import Bind, Decision
from pumice.core.messages.events import BindTimedOut, Mutation, Outcome
from pumice.core.messages.replies import ApiReply
from pumice.storage import codec
from pumice.storage.memory import MemoryJournal
from tests.actors.rig import QUICK, cycles, idle, journaled, placed, started, stored, three_nodes
from tests.kit.jobs import gang

pytestmark = pytest.mark.trio
MORTAL = sorted(set(LINKS) - {"recorder", "supervisor"})  # the end of these is the process's
GANGS = 8


async def take_away(system: System, chance: random.Random, crashes: int) -> None:
    """Restart actors at random, at random moments."""
    names = [name for name in system.switchboard.mailboxes if name.partition(":")[0] in MORTAL]
    for _ in range(crashes):
        await anyio.sleep(chance.random() * 0.004)
        for _ in range(chance.randrange(4)):
            await anyio.lowlevel.checkpoint()
        await system.supervisor.mailbox.tell(Restart(chance.choice(names)))


async def submit(system: System, objects: Sequence[dict[str, Any]]) -> None:
    """Submit until it is accepted or refused: the api may be taken away while it has the request."""
    for each in objects:
        while True:
            try:
                await system.submit([each])
                break
            except ActorFailedError:
                await anyio.sleep(0.001)


async def bindings(journal: MemoryJournal) -> Counter[str]:
    """How often a pod was put on a node, by uid, as the api's changes tell it."""
    nodes: dict[str, str] = {}
    counted: Counter[str] = Counter()
    for mutation in await journaled(journal, "api", Mutation):
        if mutation.kind == "Pod":
            pod = codec.unpack(mutation.blob)
            uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
            counted[uid] += node != nodes.get(uid, "")
            nodes[uid] = node
    return counted


@pytest.mark.parametrize("seed", range(20))
async def test_whoever_crashes_every_gang_is_bound_whole_and_once(seed: int, autojump_clock: object) -> None:
    chance = random.Random(seed)
    journal = MemoryJournal()
    settings = replace(QUICK, answer_timeout_s=1.0)
    async with started(journal, settings=settings, clock=VirtualClock()) as system:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take_away, system, chance, 40)
            await submit(system, three_nodes())
            for number in range(GANGS):
                await submit(system, gang(f"g{number}", pods=3, cpu="500m", duration="0"))
                await anyio.sleep(0.01)
        await idle(system, 3600)
        assert sum(system.supervisor.restarts.values()) >= 20
        assert len(placed(system)) == GANGS * 3
        assert all(pod["status"]["phase"] == "Running" for pod in stored(system, "Pod"))
    assert set((await bindings(journal)).values()) == {1}
    numbers = [record.cycle for record in await cycles(journal)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert (await journal.check()).whole


async def test_an_outcome_that_never_comes_is_given_up_and_the_pod_bound_all_the_same(autojump_clock: object) -> None:
    """The bind orders of the first cycle vanish, as if the session runner had crashed right before sending them."""
    journal = MemoryJournal()
    settings = replace(QUICK, bind_workers=1, answer_timeout_s=2.0)
    async with started(journal, settings=settings, clock=VirtualClock()) as system:
        binder = system.switchboard.mailboxes["bind-worker:0"]
        tell = binder.tell
        vanished: list[Any] = []

        async def swallow(*messages: Any, through: bool) -> None:
            if vanished:
                await tell(*messages, through=through)
            vanished.append(messages)

        setattr(binder, "tell", swallow)  # noqa: B010
        began = anyio.current_time()
        await system.submit([*three_nodes(), *gang("g", pods=3, duration="0")])
        await idle(system, 100)
        assert len(placed(system)) == 3
        assert 6.0 <= anyio.current_time() - began < 8.0
    decisions: list[Bind] = await journaled(journal, "decision", Decision)
    assert len(decisions) == 6


@pytest.mark.parametrize("carried_out", [False, True])
async def test_a_bind_worker_that_crashes_hands_its_orders_on(carried_out: bool, autojump_clock: object) -> None:
    """It crashes before the api has the request, or when it waits for the answer to one that was carried out."""
    journal = MemoryJournal()
    settings = replace(QUICK, bind_workers=1)
    async with started(journal, settings=settings, clock=VirtualClock()) as system:
        ask_many = cast("Callable[..., Awaitable[Sequence[ApiReply | None]]]", system.api.ask_many)
        crashes = 0

        async def crash_once(messages: Sequence[StoreRequest], **within: float) -> Sequence[ApiReply | None]:
            nonlocal crashes
            if isinstance(messages[0], BindPod) and not crashes:
                crashes += 1
                if carried_out:
                    await ask_many(messages, **within)
                raise RuntimeError("planted")
            return await ask_many(messages, **within)

        setattr(system.api, "ask_many", crash_once)  # noqa: B010
        await system.submit([*three_nodes(), *gang("g", pods=3, duration="0")])
        await idle(system, 100)
        assert len(placed(system)) == 3
        assert system.supervisor.restarts["bind-worker:0"] == 1
    assert len(await journaled(journal, "decision", Decision)) == 3
    outcomes = await journaled(journal, "outcome", Outcome)
    assert not [outcome for outcome in outcomes if isinstance(outcome, BindTimedOut)]
    assert len(outcomes) == 3
