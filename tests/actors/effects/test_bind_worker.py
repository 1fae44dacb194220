"""A worker of plain binds: what it measures, and when it may say that one was refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from pumice.actors.effects.bind_worker import BindWorker
from pumice.actors.runtime.actor import Context
from pumice.actors.runtime.envelope import Received
from pumice.actors.runtime.mailbox import Mailbox
from pumice.actors.system.ports import ApiPort
from pumice.core.messages.commands import ApiRequest, BindOrder, BindPod, WriteStatus
from pumice.core.messages.decisions import Bind, PodCondition
from pumice.core.messages.events import BindRefused, Bound, TasksBound
from pumice.core.messages.replies import Accepted, ApiReply, Done, Refused
from tests.actors.effects.told import Told

pytestmark = pytest.mark.anyio
NOW = 1000.0


class Clock:
    def now(self) -> float:
        return NOW


@dataclass
class Api:
    """Refuses these pods with a code, and all whose time is up when they come."""

    codes: dict[str, int]

    async def ask_many(self, requests: Sequence[BindPod], *, within_s: float) -> list[ApiReply | None]:
        now = anyio.current_time()
        codes = [self.codes.get(each.name) if now < each.until else 504 for each in requests]
        return [Accepted(7) if code is None else Refused(code, "Planted", "") for code in codes]


def order(cycle: int, *pods: str, created: tuple[float, ...] = (), attempts: int = 0) -> Received[Any, Any]:
    """As it comes out of the mailbox; `attempts`: how many instances have crashed over it."""
    binds = tuple(Bind("default", name, name, "n0", "default/j") for name in pods)
    message = BindOrder(cycle, 1, binds, NOW - cycle, created)
    return Received(message, b"", None, 0, attempts=attempts)


def hired(mailbox: Mailbox[BindOrder, Done], timeout_s: float = 30.0, **others: Any) -> BindWorker:
    ports: dict[str, Any] = {"recorder": Told(), "status": Told(), "timeout_s": timeout_s, **others}
    return BindWorker("w", mailbox, Context(Clock()), **ports)


async def carried_out(
    batch: Sequence[Received[Any, Any]], codes: dict[str, int], timeout_s: float = 30.0
) -> tuple[Told, Told]:
    """What the cache and the metrics were told."""
    mailbox: Mailbox[BindOrder, Done] = Mailbox("w", BindOrder, Done)
    cache, metrics = Told(), Told()
    await hired(mailbox, timeout_s, api=Api(codes), cache=cache, metrics=metrics).handle_batch(batch)
    mailbox.abort()
    return cache, metrics


async def test_how_long_binds_took_is_told_in_seconds_since_the_decision_and_since_the_pods_were_made() -> None:
    batch = [order(3, "a", "b", created=(NOW - 5, NOW - 4)), order(2, "c")]
    _, metrics = await carried_out(batch, {})
    assert metrics.messages == [TasksBound((3.0, 3.0, 2.0), (5.0, 4.0))]


@pytest.mark.parametrize(
    ("attempts", "codes", "waits"),
    [
        pytest.param((1, 0), {"a": 500}, True, id="the bind that was sent before may still be under way"),
        pytest.param((0, 1), {"a": 500}, True, id="whichever order it was"),
        pytest.param((1, 0), {"a": 404, "b": 409}, False, id="it can come true no more"),
        pytest.param((1, 0), {}, False, id="it has come true"),
        pytest.param((0, 0), {"a": 500, "b": 500}, False, id="nothing was sent before"),
    ],
)
async def test_after_a_crash_a_refusal_is_told_once_the_bind_of_the_instance_before_can_no_longer_come_true(
    attempts: tuple[int, int], codes: dict[str, int], waits: bool
) -> None:
    batch = [order(1, name, attempts=each) for name, each in zip("ab", attempts, strict=True)]
    began, timeout_s = anyio.current_time(), 0.05 if waits else 30.0
    with anyio.fail_after(15):
        cache, _ = await carried_out(batch, codes, timeout_s)
    assert (anyio.current_time() - began >= timeout_s) is waits
    assert [type(each) for each in cache.outcomes] == [BindRefused if name in codes else Bound for name in "ab"]


async def test_binds_are_carried_out_in_a_turn_of_their_own_while_the_api_is_at_work() -> None:
    """On virtual time, where others carry them out in the turn of who sends: there, waiting is a crash."""
    mailbox: Mailbox[BindOrder, Done] = Mailbox("w", BindOrder, Done)
    api: ApiPort = Mailbox("api-server", ApiRequest, ApiReply)
    cache = Told()
    told = {"recorder": Told(), "metrics": Told(), "status": Told()}
    ports: dict[str, Any] = {"api": api, "cache": cache, **told, "timeout_s": 30.0}
    worker = BindWorker("w", mailbox, Context(Clock(), inline_delivery=True), **ports)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker.run)
            await anyio.wait_all_tasks_blocked()
            await mailbox.tell(order(1, "a").message)
            (asked,) = await api.receive()
            asked.reply(Accepted(7))
            mailbox.close()
    mailbox.abort()
    assert [type(each) for each in cache.outcomes] == [Bound]


class Broken(Told):
    async def tell(self, *messages: Any, through: bool = False) -> None:
        raise RuntimeError("planted")


async def test_what_is_reported_is_not_carried_out_again_when_a_crash_follows() -> None:
    mailbox: Mailbox[BindOrder, Done] = Mailbox("w", BindOrder, Done)
    cache = Told()
    await mailbox.tell(order(1, "a").message)
    mailbox.close()
    with pytest.raises(RuntimeError, match="planted"):
        await hired(mailbox, api=Api({}), cache=cache, metrics=Broken()).run()
    await hired(mailbox, api=Api({}), cache=cache, metrics=Told()).run()
    mailbox.abort()
    assert [type(each) for each in cache.outcomes] == [Bound]


async def test_refused_bind_is_said_to_the_pod_by_the_cycle_that_decided() -> None:
    mailbox: Mailbox[BindOrder, Done] = Mailbox("w", BindOrder, Done)
    status = Told()
    worker = hired(mailbox, api=Api({"a": 503, "c": 404}), cache=Told(), metrics=Told(), status=status)
    await worker.handle_batch([order(3, "a", "b"), order(4, "c")])
    mailbox.abort()
    why = "failed to bind to node n0: "
    assert status.messages == [
        WriteStatus(3, (PodCondition("default", "a", "a", "SchedulerError", why),)),
        WriteStatus(4, (PodCondition("default", "c", "c", "SchedulerError", why),)),
    ]
