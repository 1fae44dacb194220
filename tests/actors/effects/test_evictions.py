"""Evictions, planted into what the core decides: carried out once, told in the conditions, let go when refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import anyio
import msgspec
import pytest

from pumice.actors.effects.evict_worker import EvictWorker
from pumice.actors.runtime.actor import Context
from pumice.actors.runtime.clock import RealClock
from pumice.actors.runtime.envelope import Received
from pumice.actors.runtime.mailbox import Mailbox
from pumice.actors.scheduling.core_decider import core_decider
from pumice.actors.scheduling.decider import Decider, always
from pumice.core.messages.commands import EvictOrder, EvictPod, StoreRequest
from pumice.core.messages.decisions import CycleResult, Decision, Evict
from pumice.core.messages.events import Evicted, EvictRefused, EvictTimedOut, Mutation, Outcome
from pumice.core.messages.replies import Accepted, ApiReply, Done, Listing, Refused
from pumice.storage import codec
from pumice.storage.memory import MemoryJournal
from tests.actors.effects.told import Told
from tests.actors.rig import idle, journaled, placed, started, stored, three_nodes
from tests.kit.jobs import gang

pytestmark = pytest.mark.anyio


def evicting(victims: Callable[[], list[Evict]]) -> Decider:
    """The real core, whose next result also evicts these."""
    real = core_decider()

    def close(session: Any) -> CycleResult:
        result = real.close_session(session)
        return msgspec.structs.replace(result, evicts=(*result.evicts, *victims()))

    return replace(real, close_session=close, may_skip_no_op=always)


async def test_an_eviction_is_told_in_the_conditions_and_the_pod_goes() -> None:
    journal = MemoryJournal()
    planted: list[Evict] = []

    def victims() -> list[Evict]:
        taken = planted[:]
        planted.clear()
        return taken

    async with started(journal, decider=evicting(victims)) as system:
        await system.submit([*three_nodes(), *gang("g", pods=2, duration="0", grace_s=1)])
        await idle(system)
        victim = next(pod for pod in stored(system, "Pod") if pod["metadata"]["name"] == "g-0")
        node = victim["spec"]["nodeName"]
        planted.append(
            Evict("default", "g-0", victim["metadata"]["uid"], node, "default/g", "a test", action="preempt")
        )
        await system.run_cycle()
        await idle(system)
        assert sorted(placed(system)) == ["g-1"]
    (decision,) = [each for each in await journaled(journal, "decision", Decision) if isinstance(each, Evict)]
    (outcome,) = [each for each in await journaled(journal, "outcome", Outcome) if isinstance(each, Evicted)]
    assert (decision.uid, outcome.uid) == (victim["metadata"]["uid"],) * 2
    changes = [codec.unpack(each.blob) for each in await journaled(journal, "api", Mutation) if each.name == "g-0"]
    told = [{each["type"]: each for each in one["status"].get("conditions", ())} for one in changes]
    assert told[-1]["DisruptionTarget"]["reason"] == "PreemptionByScheduler"
    conditions = next(each for each in told if "DisruptionTarget" in each)  # the node agent writes others at the end
    assert conditions["Ready"]["message"] == "Pod is evicted, because of a test"


async def test_a_refused_eviction_leaves_the_pod_where_it_is() -> None:
    journal = MemoryJournal()
    planted: list[Evict] = []
    refused: list[str] = []

    def api(request: StoreRequest, apply: Callable[[StoreRequest, float], ApiReply], now: float) -> ApiReply:
        if isinstance(request, EvictPod):
            refused.append(request.name)
            return Refused(429, "TooManyRequests", "a budget forbids it")
        return apply(request, now)

    def victims() -> list[Evict]:
        taken = planted[:]
        planted.clear()
        return taken

    async with started(journal, decider=evicting(victims), api=api) as system:
        await system.submit([*three_nodes(), *gang("g", pods=2, duration="0")])
        await idle(system)
        before = placed(system)
        pods = stored(system, "Pod")
        planted.extend(
            Evict("default", pod["metadata"]["name"], pod["metadata"]["uid"], pod["spec"]["nodeName"], "default/g", "x")
            for pod in pods
        )
        await system.run_cycle()
        await idle(system)
        assert placed(system) == before
        assert sorted(refused) == ["g-0", "g-1"]
    outcomes = await journaled(journal, "outcome", Outcome)
    assert len([each for each in outcomes if isinstance(each, EvictRefused)]) == 2


class Mute:
    """Gives every request the same answer, whatever it is worth."""

    def __init__(self, reply: ApiReply | None) -> None:
        self._reply = reply

    async def ask_many(self, requests: Sequence[EvictPod], *, within_s: float) -> list[ApiReply | None]:
        return [self._reply for _ in requests]


ORDER = EvictOrder(3, 5, (Evict("default", "p", "u", "n0", "default/g", "a test"),))


def hired(api: Mute, cache: Told) -> EvictWorker:
    mailbox: Mailbox[EvictOrder, Done] = Mailbox("w", EvictOrder, Done)
    ports: dict[str, Any] = {"api": api, "cache": cache, "recorder": Told(), "timeout_s": 30.0}
    return EvictWorker("w", mailbox, Context(RealClock()), **ports)


@pytest.mark.parametrize(("reply", "why"), [(None, "no answer"), (Listing(7, ()), "not an answer: Listing")])
async def test_what_became_of_an_eviction_nobody_knows_without_an_answer_to_it(
    reply: ApiReply | None, why: str
) -> None:
    cache = Told()
    worker = hired(Mute(reply), cache)
    await worker.handle_batch([Received(ORDER, b"", None, 0)])
    worker.mailbox.abort()
    assert cache.outcomes == [EvictTimedOut("3/u", 5, "default", "p", "u", why)]


async def test_who_asks_for_evictions_is_answered_once_their_outcomes_are_told() -> None:
    cache = Told()
    worker = hired(Mute(Accepted(7)), cache)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        assert await worker.mailbox.ask(ORDER) == Done()
        assert cache.outcomes == [Evicted("3/u", 5, "default", "p", "u", 7)]
        worker.mailbox.close()
    worker.mailbox.abort()
