"""Binds that wait for their volumes, beside each other: what one meets, the others do not feel."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
import trio.testing

from pumice.actors.effects.pre_bind_worker import PreBindWorker, WaitingBinds
from pumice.actors.runtime.actor import Context
from pumice.actors.runtime.clock import RealClock, VirtualClock
from pumice.actors.runtime.mailbox import Mailbox
from pumice.cluster.kernel.pre_bind import Place, claim_place
from pumice.core.kube.storage import BIND_COMPLETED, SELECTED_NODE
from pumice.core.messages.commands import BindOrder, BindPod, Get, Pull, Pulled, ReadRevision, RevisionRead, Update
from pumice.core.messages.decisions import Bind, BindContext
from pumice.core.messages.events import BindRefused, BindTimedOut, Bound, TasksBound
from pumice.core.messages.replies import Accepted, Done, Refused
from pumice.core.objects.metadata import Object
from pumice.storage import codec
from tests.actors.effects.told import Told
from tests.kit.pods import pod
from tests.kit.storage import claim, volume

REVISION = 7
UNKNOWN = -1


def place_of(obj: Object) -> Place:
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


class Api:
    """Objects by place. Nobody but the worker writes, so a pull that is held is never answered.

    `refuses`: the codes with which it refuses the first updates. `pulled_since`: from which revisions on it was asked
    for changes.
    """

    def __init__(
        self, *objects: Object, loses: Callable[[Any], bool] = lambda request: False, refuses: Sequence[int] = ()
    ) -> None:
        self.objects = {place_of(obj): obj for obj in objects}
        self.loses = loses
        self.refusals = iter(refuses)
        self.pulled_since: list[int] = []
        self.held = anyio.Event()

    async def ask_many(self, requests: Sequence[Any], *, within_s: float) -> list[Any]:
        return [None if self.loses(request) else self.answer(request) for request in requests]

    async def ask(self, pull: Pull) -> Pulled:
        self.pulled_since.append(pull.since)
        assert len(self.pulled_since) < 100, "it asks all the time"
        if pull.since >= REVISION:
            self.held.set()
            await anyio.sleep_forever()
        return Pulled(REVISION)

    def answer(self, request: Any) -> Any:
        match request:
            case Get(kind, namespace, name):
                found = self.objects.get((kind, namespace, name))
                return Refused(404, "NotFound", "") if found is None else Accepted(REVISION, codec.pack(found))
            case Update(blob):
                code = next(self.refusals, None)
                if code is not None:
                    return Refused(code, "Planted", "planted")
                obj = codec.unpack(blob)
                self.objects[place_of(obj)] = obj
            case ReadRevision():
                return RevisionRead(REVISION)
            case _:
                assert isinstance(request, BindPod)
        return Accepted(REVISION)

    def chosen_node(self, name: str) -> str | None:
        """For the volume that is to be made for a claim."""
        annotations: dict[str, str] = self.objects[claim_place(f"default/{name}")]["metadata"].get("annotations", {})
        return annotations.get(SELECTED_NODE)


def hired(api: Api, told: Told, context: Context) -> PreBindWorker:
    """A worker without binds that wait, whose outcomes are told, and how long they took."""
    mailbox: Mailbox[BindOrder, Done] = Mailbox("w", BindOrder, Done)
    other = Told()
    ports: dict[str, Any] = {"api": api, "cache": told, "recorder": other, "status": other, "metrics": told}
    return PreBindWorker("w", mailbox, context, waiting=WaitingBinds(), timeout_s=1.0, **ports)


@asynccontextmanager
async def outcomes(api: Api, *orders: tuple[Bind, ...]) -> AsyncGenerator[Told]:
    """Of these binds; the worker sees an order once it waits for news about the one before."""
    told = Told()
    worker = hired(api, told, Context(RealClock()))
    mailbox = worker.mailbox
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        for cycle, binds in enumerate(orders):
            if cycle:
                await api.held.wait()
            await mailbox.tell(BindOrder(cycle, 1, binds))
        yield told
        mailbox.close()
    mailbox.abort()


def bind(name: str, **needs: Any) -> Bind:
    return Bind("default", name, name, "n0", "default/j", BindContext(**needs))


def bound_claim(name: str) -> Object:
    made = claim(name, volumeName="pv")
    made["metadata"]["annotations"] = {BIND_COMPLETED: "yes"}
    return made


def first_about_the_pod(number: int) -> Callable[[Any], bool]:
    """So many answers about pod p are lost."""
    lost = iter(range(number))
    return lambda request: isinstance(request, Get) and request.name == "p" and next(lost, None) is not None


OTHER = bind("q", provisions=("default/else",))


@pytest.mark.anyio
@pytest.mark.parametrize("others", [[], [(OTHER,)]], ids=["alone", "beside another"])
async def test_claims_that_could_not_be_read_are_read_again_though_nothing_changes(others: list[Any]) -> None:
    objects = [pod("p", uid="p"), bound_claim("c"), pod("q", uid="q"), claim("else")]
    api = Api(*objects, loses=first_about_the_pod(1))
    async with outcomes(api, *others, (bind("p", provisions=("default/c",)),)) as told:
        assert isinstance(await told.outcome(0), Bound)
    assert not api.loses(Get("Pod", "default", "p")), "none was lost"


@pytest.mark.anyio
async def test_a_bind_is_given_up_in_time_beside_one_that_has_more() -> None:
    objects = [pod("p", uid="p"), claim("c"), pod("q", uid="q"), claim("else")]
    hasty = bind("p", provisions=("default/c",), timeout_s=0.02)
    async with outcomes(Api(*objects), (OTHER,), (hasty,)) as told:
        given_up = await told.outcome(0)
    assert (given_up.name, given_up.message) == ("p", "its volumes were not bound in time")


@pytest.mark.anyio
async def test_a_bind_that_never_will_be_holds_up_none_after_it() -> None:
    api = Api(pod("q", uid="q"), bound_claim("c"))
    needs = {"provisions": ("default/c",)}
    async with outcomes(api, (bind("gone", **needs), bind("q", **needs))) as told:
        await told.outcome(1)
    assert {each.name: isinstance(each, Bound) for each in told.outcomes} == {"gone": False, "q": True}


@pytest.mark.anyio
@pytest.mark.parametrize("sharing", [True, False])
async def test_what_a_failed_bind_wrote_is_taken_back_unless_another_waits_for_the_same_claim(sharing: bool) -> None:
    """Two claims: of one the volume is there, that of the other is to be made."""
    api = Api(pod("q", uid="q"), claim("made"), claim("there"), claim("else"), volume("pv"))
    needs = {"provisions": ("default/made",), "volumes": (("pv", "default/there"),)}
    other = needs if sharing else {"provisions": ("default/else",)}
    async with outcomes(api, (bind("q", **other), bind("gone", **needs))) as told:
        refused = await told.outcome(0)
        assert (refused.name, type(refused)) == ("gone", BindRefused)
        assert api.chosen_node("made") == ("n0" if sharing else None)
        kept = api.objects["PersistentVolume", "", "pv"]["spec"].get("claimRef", {})
        assert kept.get("name") == ("there" if sharing else None)


@pytest.mark.anyio
@pytest.mark.parametrize(("silent", "pulls"), [(False, [REVISION]), (True, [UNKNOWN, REVISION])])
async def test_who_begins_to_wait_reads_nothing_that_was_long_ago(silent: bool, pulls: list[int]) -> None:
    """Where the api does not say how far it has come, it lists first."""
    api = Api(pod("q", uid="q"), claim("else"), loses=lambda request: silent and isinstance(request, ReadRevision))
    async with outcomes(api, (OTHER,)):
        with anyio.fail_after(5):
            await api.held.wait()
    assert api.pulled_since == pulls


@pytest.mark.trio
async def test_a_bind_is_given_up_at_the_moment_its_time_is_up(autojump_clock: trio.testing.MockClock) -> None:
    began = autojump_clock.current_time()
    slow = bind("p", provisions=("default/c",), timeout_s=2.0)
    async with outcomes(Api(pod("p", uid="p"), claim("c")), (slow,)) as told:
        assert (await told.outcome(0)).message == "its volumes were not bound in time"
        assert autojump_clock.current_time() - began == 2.0


@pytest.mark.trio
async def test_who_had_no_answer_asks_again_soon(autojump_clock: trio.testing.MockClock) -> None:
    began = autojump_clock.current_time()
    api = Api(pod("p", uid="p"), bound_claim("c"), loses=first_about_the_pod(3))
    async with outcomes(api, (bind("p", provisions=("default/c",)),)) as told:
        await told.outcome(0)
        assert 0 < autojump_clock.current_time() - began < 0.1


@pytest.mark.anyio
async def test_who_comes_after_a_crash_over_the_last_bind_leaves_nothing_to_be_waited_for() -> None:
    """The one before had it on the board, and settled it, and did not come to take it away."""
    context = Context(RealClock())
    context.activity.timers("w", 1)
    hired(Api(), Told(), context)
    assert context.activity.is_idle()


@pytest.mark.anyio
async def test_a_bind_whose_answer_is_lost_may_have_come_true_so_nothing_is_taken_back() -> None:
    objects = [pod("p", uid="p"), bound_claim("c"), volume("pv")]
    api = Api(*objects, loses=lambda request: isinstance(request, BindPod))
    async with outcomes(api, (bind("p", volumes=(("pv", "default/c"),)),)) as told:
        assert isinstance(await told.outcome(0), BindTimedOut)
    assert api.objects["PersistentVolume", "", "pv"]["spec"]["claimRef"]["name"] == "c"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("objects", "needs", "why"),
    [
        ([claim("c")], {"volumes": (("pv", "default/c"),)}, "PersistentVolume pv is gone"),
        ([volume("pv")], {"volumes": (("pv", "default/c"),)}, "PersistentVolumeClaim default c is gone"),
        ([], {"provisions": ("default/c",)}, "PersistentVolumeClaim default c is gone"),
    ],
    ids=["volume", "claim", "claim without a volume"],
)
async def test_who_cannot_be_bound_hears_what_is_gone(objects: list[Object], needs: Object, why: str) -> None:
    async with outcomes(Api(pod("p", uid="p"), *objects), (bind("p", **needs),)) as told:
        assert (await told.outcome(0)).message == why


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("refuses", "why"),
    [
        ([409] * 4, ""),
        ([409] * 5, "PersistentVolume pv is written by others all the time"),
        ([500], "planted"),
    ],
    ids=["a few conflicts", "nothing but conflicts", "another refusal"],
)
async def test_what_others_wrote_meanwhile_is_read_and_written_again_five_times_in_all(
    refuses: list[int], why: str
) -> None:
    api = Api(pod("p", uid="p"), bound_claim("c"), volume("pv"), refuses=refuses)
    async with outcomes(api, (bind("p", volumes=(("pv", "default/c"),)),)) as told:
        outcome = await told.outcome(0)
    assert (outcome.message if isinstance(outcome, BindRefused) else "") == why
    assert ("claimRef" in api.objects["PersistentVolume", "", "pv"]["spec"]) is not bool(why)


@pytest.mark.anyio
async def test_who_asks_for_binds_is_answered_once_each_was_looked_at() -> None:
    told = Told()
    worker = hired(Api(pod("p", uid="p"), bound_claim("c")), told, Context(RealClock()))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker.run)
        assert await worker.mailbox.ask(BindOrder(1, 1, (bind("p", provisions=("default/c",)),))) == Done()
        assert [type(each) for each in told.outcomes] == [Bound]
        worker.mailbox.close()
    worker.mailbox.abort()


@pytest.mark.anyio
@pytest.mark.parametrize(("created", "since_created"), [((995.0,), (5.0,)), ((), ())])
async def test_how_long_a_bind_took_is_told_in_seconds_since_the_decision_and_since_its_pod_was_made(
    created: tuple[float, ...], since_created: tuple[float, ...]
) -> None:
    told = Told()
    worker = hired(Api(pod("p", uid="p"), bound_claim("c")), told, Context(VirtualClock(1000.0, lambda: 0.0)))
    await worker.handle(BindOrder(1, 1, (bind("p", provisions=("default/c",)),), 997.0, created))
    worker.mailbox.abort()
    assert [each for each in told.messages if isinstance(each, TasksBound)] == [TasksBound((3.0,), since_created)]
